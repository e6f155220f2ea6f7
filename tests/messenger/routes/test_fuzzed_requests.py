"""Fuzzed requests get no 5xx status, and JSON errors are well-formed and echo no content."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.messenger import (
    BRIDGE_PATH,
    CODE_BODY,
    FLOWS_PATH,
    HEALTH_PATH,
    MESSAGE_BODY,
    OUTBOX_PATH,
    TEMPLATE_PATH,
    WEBHOOK_PATH,
    MessengerApp,
    build_delivery,
    run_messenger_app,
)
from examples import limit_examples

CANARY = "cAnArY"

texts = st.text(max_size=20) | st.sampled_from([CANARY, CANARY * 1000, CANARY + "\0", "\ud800"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
media = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(["data", "mimetype", "filename", "size"], values)
)
near_messages = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(["event", "from", "phoneE164", "message", "messageType"], values),
        "hasMedia": st.booleans() | values,
        "media": media | values,
    },
).map(lambda changes: MESSAGE_BODY | changes)
near_codes = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(["to", "template", "language", "parameters"], values)
).map(lambda changes: CODE_BODY | changes)
many_examples = settings(max_examples=limit_examples(100))


@pytest.fixture
async def unthrottled_messenger(tmp_path: Path, database_url: str) -> AsyncIterator[MessengerApp]:
    """Yield a messenger with a rate limit above the number of examples."""
    async with run_messenger_app(tmp_path, database_url, TAPGATE_MESSENGER_RATE="1000000") as app:
        yield app


def encode_json(value: object) -> bytes:
    return json.dumps(value).encode()


def assert_valid_response(response: httpx2.Response) -> None:
    assert response.status_code < 500, response.text
    assert response.headers["x-request-id"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    if response.status_code >= 400 and response.headers["content-type"] == "application/json":
        body = response.json()
        assert body.keys() == {"error", "status"}
        assert body["status"] == "error"
        assert CANARY not in response.text


@many_examples
@given(content=(near_messages | values).map(encode_json) | st.binary(max_size=60))
async def test_any_bridge_body_gets_a_valid_response(
    unthrottled_messenger: MessengerApp, content: bytes
) -> None:
    assert_valid_response(await unthrottled_messenger.client.post(BRIDGE_PATH, content=content))


@many_examples
@given(content=(near_codes | values).map(encode_json) | st.binary(max_size=60))
async def test_any_template_body_gets_a_valid_response(
    unthrottled_messenger: MessengerApp, content: bytes
) -> None:
    response = await unthrottled_messenger.client.post(
        TEMPLATE_PATH, content=content, auth=unthrottled_messenger.get_service_auth()
    )
    assert_valid_response(response)


def change_delivery(path: list[str | int], value: object) -> bytes:
    """Build a delivery with one nested value replaced."""
    delivery: dict[str, object] = build_delivery("wamid.1")
    part: object = delivery
    for key in path[:-1]:
        assert isinstance(part, dict | list)
        part = part[key]  # type: ignore[index]
    assert isinstance(part, dict | list)
    part[path[-1]] = value  # type: ignore[index]
    return encode_json(delivery)


_VALUE_PATH = ["entry", 0, "changes", 0, "value"]
value_paths = st.sampled_from(
    [
        ["entry"],
        ["entry", 0],
        ["entry", 0, "changes"],
        ["entry", 0, "changes", 0],
        _VALUE_PATH,
        [*_VALUE_PATH, "contacts"],
        [*_VALUE_PATH, "messages"],
        [*_VALUE_PATH, "messages", 0],
        *(
            [*_VALUE_PATH, "messages", 0, name]
            for name in ("from", "id", "timestamp", "type", "text")
        ),
        [*_VALUE_PATH, "messages", 0, "text", "body"],
    ]
)


@many_examples
@given(content=st.builds(change_delivery, value_paths, values) | st.binary(max_size=60))
async def test_any_delivery_gets_a_valid_response(
    unthrottled_messenger: MessengerApp, content: bytes
) -> None:
    response = await unthrottled_messenger.client.post(WEBHOOK_PATH, content=content)
    assert_valid_response(response)
    assert response.status_code in (200, 400)


@many_examples
@given(content=values.map(encode_json) | st.binary(max_size=60))
async def test_any_flow_body_gets_a_valid_response(
    unthrottled_messenger: MessengerApp, content: bytes
) -> None:
    assert_valid_response(await unthrottled_messenger.client.post(FLOWS_PATH, content=content))


#: Values that an HTTP server passes on: no line breaks, no NUL.
header_values = st.binary(max_size=40).map(
    lambda value: value.translate(None, b"\0\r\n").strip(b" \t")
)
headers = st.dictionaries(
    st.sampled_from(
        [
            "Authorization",
            "X-Hub-Signature-256",
            "X-Service-Name",
            "X-Service-Timestamp",
            "X-Service-Signature",
            "X-Request-ID",
            "Idempotency-Key",
            "Content-Type",
        ]
    ),
    header_values,
)


@pytest.fixture
async def protected_messenger(tmp_path: Path, database_url: str) -> AsyncIterator[MessengerApp]:
    """Yield a messenger that requires the bridge token and provider signatures."""
    secrets = {"TAPGATE_MESSENGER_BRIDGE_TOKEN": "b", "TAPGATE_MESSENGER_APP_SECRET": "a"}
    async with run_messenger_app(tmp_path, database_url, **secrets) as app:
        yield app


@many_examples
@given(
    route=st.sampled_from([("POST", path) for path in
                           (BRIDGE_PATH, WEBHOOK_PATH, FLOWS_PATH, TEMPLATE_PATH)]
                          + [("GET", path) for path in (OUTBOX_PATH, WEBHOOK_PATH, HEALTH_PATH)]),
    headers=headers,
)  # fmt: skip
async def test_any_headers_get_a_valid_response(
    protected_messenger: MessengerApp, route: tuple[str, str], headers: dict[str, bytes]
) -> None:
    response = await protected_messenger.client.request(*route, headers=headers)
    assert_valid_response(response)
    if route != ("GET", HEALTH_PATH):
        assert response.status_code in (401, 403, 432)


queries = st.lists(
    st.tuples(
        st.sampled_from(["hub.mode", "hub.verify_token", "hub.challenge", "to", "x"]),
        st.sampled_from(["subscribe", "dev-verify-token", "%2B23276123456", "%ff", "%00", "+"])
        | st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#&"),
                  max_size=9),
    ).map("=".join),
    max_size=4,
).map("&".join)  # fmt: skip


@many_examples
@given(query=queries)
async def test_any_query_gets_a_valid_response(
    unthrottled_messenger: MessengerApp, query: str
) -> None:
    for path in (WEBHOOK_PATH, OUTBOX_PATH, HEALTH_PATH):
        url = httpx2.URL(f"http://messenger{path}").copy_with(query=query.encode())
        assert_valid_response(
            await unthrottled_messenger.client.get(
                url, auth=unthrottled_messenger.get_service_auth()
            )
        )
