"""What is refused before a body has arrived, and on the connection itself."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edge import meter
from messenger.routes.stage import BRIDGE, FLOWS, TEMPLATE, WEBHOOK, Stage, stage
from tapgate.messenger.app import App
from tapgate.messenger.http_protocol import MessengerHttpProtocol

SECRETS = {
    "TAPGATE_MESSENGER_BRIDGE_TOKEN": "the bridge's token",
    "TAPGATE_MESSENGER_APP_SECRET": "the app's secret",
}


@pytest.fixture
async def closed(tmp_path: Path, database_url: str) -> AsyncIterator[Stage]:
    """A messenger that has all its secrets."""
    async with stage(tmp_path, database_url, **SECRETS) as made:
        yield made


def head(path: str, *lines: bytes) -> bytes:
    first = b"POST %b HTTP/1.1\r\nHost: x\r\n" % path.encode()
    return first + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


@pytest.mark.parametrize(
    ("path", "status"), [(BRIDGE, 401), (WEBHOOK, 401), (FLOWS, 432), (TEMPLATE, 401)]
)
@pytest.mark.parametrize("framing", [b"Content-Length: 100", b"Transfer-Encoding: chunked"])
async def test_a_credential_is_checked_before_the_body_arrives(
    closed: Stage, path: str, status: int, framing: bytes
) -> None:
    app = App(closed.services)
    assert await meter.send(MessengerHttpProtocol, app, [head(path, framing)]) == status
    assert (
        await meter.send(MessengerHttpProtocol, app, [head(path, b"Content-Length: 99999999")])
        == 413
    )


async def test_a_signed_delivery_waits_for_its_body(closed: Stage) -> None:
    app = App(closed.services)
    signed = head(WEBHOOK, b"Content-Length: 2", b"X-Hub-Signature-256: sha256=" + b"0" * 64)
    assert await meter.send(MessengerHttpProtocol, app, [signed]) is None
    assert await meter.send(MessengerHttpProtocol, app, [signed, b"{}"]) == 401


async def test_a_request_without_a_host_and_an_endless_trailer_are_refused(closed: Stage) -> None:
    app = App(closed.services)
    assert await meter.send(MessengerHttpProtocol, app, [b"GET /health HTTP/1.1\r\n\r\n"]) == 400
    signature = b"X-Hub-Signature-256: sha256=" + b"0" * 64
    chunked = head(WEBHOOK, b"Transfer-Encoding: chunked", signature)
    trailer = [chunked + b"0\r\nX: ", *[b"a" * 10_000] * 100]
    assert await meter.send(MessengerHttpProtocol, app, trailer) == 400
