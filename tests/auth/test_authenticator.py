"""Credential precedence, service signatures, and bearer tokens."""

from collections.abc import Awaitable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.auth import FakeClock, GatewayProcess, OwnerBuilder, catch_unauthorized
from tapgate.auth.principals import Principal
from tapgate_client import signing

PATH, QUERY = "/api/v1/subscribers", b"phone_number=%2B23276000001"
SECRET = b"the messenger's secret"
INVALID_SIGNATURE_MESSAGE = "The service is unknown, or the signature is invalid."

Headers = dict[bytes, bytes]


def sign_headers(clock: FakeClock, query: bytes = QUERY, timestamp: str | None = None) -> Headers:
    timestamp = timestamp or str(int(clock().timestamp()))
    signature = signing.sign_service(SECRET, "GET", PATH, query, timestamp)
    return {
        b"x-service-name": b"messenger",
        b"x-service-timestamp": timestamp.encode(),
        b"x-service-signature": signature.encode(),
    }


def authenticate(
    process: GatewayProcess,
    headers: Headers,
    method: str = "GET",
    path: str = PATH,
    query: bytes = QUERY,
) -> Awaitable[Principal | None]:
    return process.authenticator.authenticate(method, path, query, headers, b"")


async def test_request_without_a_credential_has_no_principal(process: GatewayProcess) -> None:
    assert await authenticate(process, {b"host": b"localhost", b"x-timestamp": b"now"}) is None


async def test_service_is_identified_by_its_name(process: GatewayProcess, clock: FakeClock) -> None:
    principal = await authenticate(process, sign_headers(clock))
    assert principal == Principal(kind="service", id="messenger", name="messenger")
    assert principal.idempotency_scope == "service:messenger"


async def test_service_signature_covers_the_query_even_if_it_is_absent(
    process: GatewayProcess, clock: FakeClock
) -> None:
    assert await authenticate(process, sign_headers(clock, query=b""), query=b"") is not None
    message = await catch_unauthorized(authenticate(process, sign_headers(clock, query=b"")))
    assert message == INVALID_SIGNATURE_MESSAGE
    message = await catch_unauthorized(authenticate(process, sign_headers(clock), query=b""))
    assert message == INVALID_SIGNATURE_MESSAGE


@given(data=st.data())
async def test_service_request_with_a_changed_byte_is_rejected(
    data: st.DataObject, process: GatewayProcess, clock: FakeClock
) -> None:
    headers = sign_headers(clock)
    parts = {"method": b"GET", "path": PATH.encode(), "query": QUERY} | {
        name.decode(): value for name, value in headers.items()
    }
    name = data.draw(st.sampled_from(sorted(parts)))
    changed = bytearray(parts[name])
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    parts[name] = bytes(changed)
    message = await catch_unauthorized(
        authenticate(
            process,
            {header: parts[header.decode()] for header in headers},
            parts["method"].decode("latin-1"),
            parts["path"].decode("latin-1"),
            parts["query"],
        )
    )
    assert message == INVALID_SIGNATURE_MESSAGE or "X-Service-Timestamp" in str(message)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"x-service-name", "X-Service-Name is missing."),
        (b"x-service-timestamp", "X-Service-Timestamp is missing."),
        (b"x-service-signature", "X-Service-Signature is missing."),
    ],
)
async def test_missing_header_is_reported(
    process: GatewayProcess, clock: FakeClock, header: bytes, message: str
) -> None:
    headers = sign_headers(clock)
    del headers[header]
    assert await catch_unauthorized(authenticate(process, headers)) == message


@pytest.mark.parametrize("name", [b"courier", b"", b"\xff", b"MESSENGER"])
async def test_unknown_service_and_wrong_signature_get_the_same_error(
    process: GatewayProcess, clock: FakeClock, name: bytes
) -> None:
    headers = sign_headers(clock)
    message = await catch_unauthorized(authenticate(process, headers | {b"x-service-name": name}))
    assert message == INVALID_SIGNATURE_MESSAGE
    wrong = headers | {b"x-service-signature": headers[b"x-service-signature"].upper()}
    assert await catch_unauthorized(authenticate(process, wrong)) == INVALID_SIGNATURE_MESSAGE


@pytest.mark.parametrize(
    "authorization", [b"", b"Bearer", b"Bearer ", b"Basic YTpi", b"svc_test_x", b"\xff \xff"]
)
async def test_authorization_must_be_a_bearer_token(
    process: GatewayProcess, authorization: bytes
) -> None:
    message = await catch_unauthorized(authenticate(process, {b"authorization": authorization}))
    assert message == "Authorization must be a Bearer token: an API key or an access token."


@pytest.mark.parametrize(
    ("credential", "message"),
    [
        (b"svc_test_x", "The API key is unknown, expired or deleted."),
        (b"svc_live_x", "API keys start with svc_test_ in this environment."),
        (b"svc_x", "API keys start with svc_test_ in this environment."),
        (b"a.b.c", "The access token is malformed or its signature is invalid."),
        (b"\xff\x00", "The access token is malformed or its signature is invalid."),
    ],
)
async def test_bearer_token_must_be_an_api_key_or_an_access_token(
    process: GatewayProcess, credential: bytes, message: str
) -> None:
    rejection_message = await catch_unauthorized(
        authenticate(process, {b"authorization": b"Bearer " + credential})
    )
    assert rejection_message == message


async def test_bearer_scheme_is_case_insensitive(
    process: GatewayProcess, owners: OwnerBuilder
) -> None:
    admin_id = await owners.create_admin()
    async with process.transaction() as tx:
        tokens = await process.authenticator.sessions.start(tx, admin_id)
    for scheme in ("Bearer ", "bearer  ", "BEARER "):
        principal = await authenticate(
            process, {b"authorization": (scheme + tokens.token).encode()}
        )
        assert principal is not None
        assert principal.admin_id == admin_id


async def test_credential_kinds_have_a_fixed_precedence(
    process: GatewayProcess, owners: OwnerBuilder, clock: FakeClock
) -> None:
    admin_id = await owners.create_admin()
    async with process.transaction() as tx:
        tokens = await process.authenticator.sessions.start(tx, admin_id)
    bearer = {b"authorization": f"Bearer {tokens.token}".encode()}

    hmac = dict.fromkeys((b"x-api-key-id", b"x-signature", b"x-timestamp"), b"x")
    service = dict.fromkeys((b"x-service-name", b"x-service-signature"), b"x")
    for other in (hmac, service, sign_headers(clock), hmac | sign_headers(clock)):
        principal = await authenticate(process, bearer | other)
        assert principal is not None
        assert principal.kind == "admin"
        assert not process.authenticator.has_body_signature(bearer | other)
    # An invalid token is never replaced by a valid signature.
    invalid = {b"authorization": b"Bearer a.b.c"}
    message = await catch_unauthorized(authenticate(process, invalid | sign_headers(clock)))
    assert message == "The access token is malformed or its signature is invalid."
    for header in (b"x-api-key-id", b"x-signature"):
        text = str(
            await catch_unauthorized(authenticate(process, sign_headers(clock) | {header: b"x"}))
        )
        assert "is missing" in text
    # Proxies add other schemes than Bearer for their own purposes.
    principal = await authenticate(process, sign_headers(clock) | {b"authorization": b"Basic YTpi"})
    assert principal is not None
    assert principal.kind == "service"


async def test_empty_credential_headers_count_as_absent(
    process: GatewayProcess, clock: FakeClock
) -> None:
    empty = dict.fromkeys((b"x-api-key-id", b"x-signature", b"x-partner-id"), b"")
    principal = await authenticate(process, empty | sign_headers(clock))
    assert principal is not None
    assert principal.kind == "service"
    services = dict.fromkeys((b"x-service-name", b"x-service-signature"), b"")
    assert await authenticate(process, empty | services) is None


async def test_rejection_message_does_not_contain_the_credential(process: GatewayProcess) -> None:
    secret = "hunter2hunter2"
    for headers in (
        {b"authorization": secret.encode()},
        {b"authorization": f"Bearer {secret}".encode()},
        {b"authorization": f"Bearer svc_{secret}".encode()},
        {b"authorization": f"Bearer svc_test_{secret}".encode()},
        dict.fromkeys((b"x-api-key-id", b"x-timestamp", b"x-signature"), secret.encode()),
        dict.fromkeys(
            (b"x-service-name", b"x-service-timestamp", b"x-service-signature"), secret.encode()
        ),
    ):
        assert secret not in str(await catch_unauthorized(authenticate(process, headers)))
