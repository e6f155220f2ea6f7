"""Requests rejected before the body arrives, and at the connection level."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from builders.messenger import (
    BRIDGE_PATH,
    FLOWS_PATH,
    TEMPLATE_PATH,
    WEBHOOK_PATH,
    MessengerApp,
    run_messenger_app,
)
from builders.worst_case_requests import send_request
from tapgate.messenger.app import App

ALL_SECRETS = {
    "TAPGATE_MESSENGER_BRIDGE_TOKEN": "the bridge's token",
    "TAPGATE_MESSENGER_APP_SECRET": "the app's secret",
}


@pytest.fixture
async def protected_messenger(tmp_path: Path, database_url: str) -> AsyncIterator[MessengerApp]:
    """Yield a messenger that requires the bridge token and provider signatures."""
    async with run_messenger_app(tmp_path, database_url, **ALL_SECRETS) as app:
        yield app


def build_head(path: str, *lines: bytes) -> bytes:
    first = b"POST %b HTTP/1.1\r\nHost: x\r\n" % path.encode()
    return first + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


@pytest.mark.parametrize(
    ("path", "status"),
    [(BRIDGE_PATH, 401), (WEBHOOK_PATH, 401), (FLOWS_PATH, 432), (TEMPLATE_PATH, 401)],
)
@pytest.mark.parametrize("framing", [b"Content-Length: 100", b"Transfer-Encoding: chunked"])
async def test_credential_and_content_length_are_checked_before_the_body_arrives(
    protected_messenger: MessengerApp, path: str, status: int, framing: bytes
) -> None:
    app = App(protected_messenger.services)
    assert await send_request(app, [build_head(path, framing)]) == status
    assert await send_request(app, [build_head(path, b"Content-Length: 99999999")]) == 413


async def test_signature_of_a_delivery_is_checked_after_its_body_has_arrived(
    protected_messenger: MessengerApp,
) -> None:
    app = App(protected_messenger.services)
    signed = build_head(
        WEBHOOK_PATH, b"Content-Length: 2", b"X-Hub-Signature-256: sha256=" + b"0" * 64
    )
    assert await send_request(app, [signed]) is None
    assert await send_request(app, [signed, b"{}"]) == 401
