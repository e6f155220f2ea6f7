"""Signed requests from terminals, processors and partners: key, signature, timestamp and status."""

from collections.abc import Awaitable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.auth import (
    FakeClock,
    GatewayProcess,
    OwnerBuilder,
    catch_api_error,
    catch_unauthorized,
)
from tapgate.auth.hmac_keys import NewHmacKey
from tapgate.auth.principals import Principal
from tapgate.core.vault import Vault, VaultError
from tapgate_client import ids, signing
from tapgate_client.clock import format_rfc3339
from tapgate_client.errors import Code

PATH = "/api/v1/pos/payment"
BODY = b'{"amount":"25.00"}'
INVALID_SIGNATURE_MESSAGE = "The key is unknown or inactive, or the signature is invalid."

Headers = dict[bytes, bytes]


def sign_headers(
    key: NewHmacKey, clock: FakeClock, *, timestamp: str | None = None, partner: int | None = None
) -> Headers:
    timestamp = timestamp or format_rfc3339(clock())
    signature = signing.sign(key.secret.encode(), "POST", PATH, timestamp, BODY)
    headers = {
        b"x-api-key-id": ids.encode(ids.KEY, key.id).encode(),
        b"x-timestamp": timestamp.encode(),
        b"x-signature": signature.encode(),
    }
    if partner is not None:
        headers[b"x-partner-id"] = ids.encode(ids.PARTNER, partner).encode()
    return headers


def authenticate(
    process: GatewayProcess,
    headers: Headers,
    method: str = "POST",
    path: str = PATH,
    body: bytes = BODY,
) -> Awaitable[Principal | None]:
    return process.authenticator.authenticate(method, path, b"", headers, body)


@pytest.fixture
async def processor_id(owners: OwnerBuilder) -> int:
    return await owners.create_processor()


@pytest.fixture
async def key(process: GatewayProcess, processor_id: int) -> NewHmacKey:
    async with process.transaction() as tx:
        return await process.authenticator.hmac_keys.create(tx, processor_id=processor_id)


@pytest.fixture
async def partner_id(owners: OwnerBuilder) -> int:
    return await owners.create_partner()


@pytest.fixture
async def partner_key(process: GatewayProcess, partner_id: int) -> NewHmacKey:
    async with process.transaction() as tx:
        return await process.authenticator.hmac_keys.create(tx, partner_id=partner_id)


async def test_processor_key_identifies_the_processor(
    process: GatewayProcess, processor_id: int, key: NewHmacKey, clock: FakeClock
) -> None:
    principal = await authenticate(process, sign_headers(key, clock))
    assert principal == Principal(
        kind="processor",
        id=ids.encode(ids.KEY, key.id),
        name="Corner Shop",
        key_id=key.id,
        processor_id=processor_id,
        owner_scope=ids.encode(ids.PROCESSOR, processor_id),
    )
    assert principal.idempotency_scope == ids.encode(ids.PROCESSOR, processor_id)
    assert principal.rate_limit_key == ids.encode(ids.KEY, key.id)


async def test_terminal_key_identifies_the_terminal(
    process: GatewayProcess, owners: OwnerBuilder, processor_id: int, clock: FakeClock
) -> None:
    terminal_id = await owners.create_terminal(processor_id)
    async with process.transaction() as tx:
        key = await process.authenticator.hmac_keys.create(
            tx, processor_id=processor_id, terminal_id=terminal_id
        )
    principal = await authenticate(process, sign_headers(key, clock))
    assert principal is not None
    assert (principal.kind, principal.processor_id, principal.terminal_id) == (
        "processor",
        processor_id,
        terminal_id,
    )


async def test_partner_key_identifies_the_partner(
    process: GatewayProcess, partner_id: int, partner_key: NewHmacKey, clock: FakeClock
) -> None:
    principal = await authenticate(process, sign_headers(partner_key, clock, partner=partner_id))
    assert principal is not None
    assert (principal.kind, principal.partner_id, principal.name) == (
        "partner",
        partner_id,
        "Big Bank",
    )


async def test_hmac_secret_is_stored_sealed(
    process: GatewayProcess, key: NewHmacKey, vault: Vault
) -> None:
    stored = await process.database.fetchval("SELECT secret FROM hmac_keys")
    assert key.secret.encode() not in stored
    with pytest.raises(VaultError):
        vault.open(stored, b"hmac_key 1")


@given(data=st.data())
async def test_signed_request_with_a_changed_byte_is_rejected(
    data: st.DataObject, process: GatewayProcess, key: NewHmacKey, clock: FakeClock
) -> None:
    headers = sign_headers(key, clock)
    parts = {
        "method": b"POST",
        "path": PATH.encode(),
        "body": BODY,
        "signature": headers[b"x-signature"],
        "timestamp": headers[b"x-timestamp"],
        "key": headers[b"x-api-key-id"],
    }
    name = data.draw(st.sampled_from(sorted(parts)))
    changed = bytearray(parts[name])
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    parts[name] = bytes(changed)
    message = await catch_unauthorized(
        authenticate(
            process,
            {
                b"x-api-key-id": parts["key"],
                b"x-timestamp": parts["timestamp"],
                b"x-signature": parts["signature"],
            },
            parts["method"].decode("latin-1"),
            parts["path"].decode("latin-1"),
            parts["body"],
        )
    )
    if name == "timestamp":
        assert message == INVALID_SIGNATURE_MESSAGE or "X-Timestamp" in str(message)
    else:
        assert message == INVALID_SIGNATURE_MESSAGE


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"x-api-key-id", "X-API-Key-ID is missing."),
        (b"x-timestamp", "X-Timestamp is missing."),
        (b"x-signature", "X-Signature is missing."),
    ],
)
async def test_missing_header_is_reported(
    process: GatewayProcess, key: NewHmacKey, clock: FakeClock, header: bytes, message: str
) -> None:
    headers = sign_headers(key, clock)
    del headers[header]
    assert await catch_unauthorized(authenticate(process, headers)) == message


async def test_unknown_key_and_wrong_signature_get_the_same_error(
    process: GatewayProcess, key: NewHmacKey, clock: FakeClock
) -> None:
    headers = sign_headers(key, clock)
    wrong = headers | {b"x-signature": b"0" * 64}
    assert await catch_unauthorized(authenticate(process, wrong)) == INVALID_SIGNATURE_MESSAGE
    for unknown in (b"key_0000000000001", b"key_zzzzzzzzzzzzz", b"key_1", b"", b"\xff\x00"):
        message = await catch_unauthorized(
            authenticate(process, headers | {b"x-api-key-id": unknown})
        )
        assert message == INVALID_SIGNATURE_MESSAGE


async def test_placeholder_secret_of_an_unknown_key_is_not_accepted(
    process: GatewayProcess, clock: FakeClock
) -> None:
    """An unknown key is checked against a placeholder all-zero secret."""
    timestamp = format_rfc3339(clock())
    headers = {
        b"x-api-key-id": b"key_0000000000001",
        b"x-timestamp": timestamp.encode(),
        b"x-signature": signing.sign(bytes(32), "POST", PATH, timestamp, BODY).encode(),
    }
    assert await catch_unauthorized(authenticate(process, headers)) == INVALID_SIGNATURE_MESSAGE


async def test_partner_header_must_match_the_key(
    process: GatewayProcess,
    key: NewHmacKey,
    partner_id: int,
    partner_key: NewHmacKey,
    clock: FakeClock,
) -> None:
    for headers in (
        sign_headers(partner_key, clock),
        sign_headers(partner_key, clock, partner=partner_id + 1),
        sign_headers(partner_key, clock) | {b"x-partner-id": b"Big Bank"},
        sign_headers(key, clock, partner=partner_id),
    ):
        message = await catch_unauthorized(authenticate(process, headers))
        assert message == "X-Partner-ID does not match the key."


async def update_and_publish(process: GatewayProcess, sql: str, *arguments: object) -> None:
    """Change a key owner's status and publish the change, as the operations do."""
    async with process.transaction() as tx:
        await tx.execute(sql, *arguments)
        await process.authenticator.hmac_keys.publish_owner_change(tx)


SET_ACCOUNT_STATUS_SQL = "UPDATE accounts SET status = $2 WHERE owner_id = $1"
SET_TERMINAL_STATUS_SQL = "UPDATE terminals SET status = $2 WHERE id = $1"


async def test_blocked_terminal_is_rejected_by_another_process_immediately(
    process: GatewayProcess,
    other_process: GatewayProcess,
    owners: OwnerBuilder,
    processor_id: int,
    clock: FakeClock,
) -> None:
    terminal_id = await owners.create_terminal(processor_id)
    async with process.transaction() as tx:
        key = await process.authenticator.hmac_keys.create(
            tx, processor_id=processor_id, terminal_id=terminal_id
        )
    headers = sign_headers(key, clock)
    await authenticate(other_process, headers)
    await update_and_publish(process, SET_TERMINAL_STATUS_SQL, terminal_id, "blocked")
    error = await catch_api_error(authenticate(other_process, headers))
    assert error.code is Code.TERMINAL_BLOCKED
    await update_and_publish(process, SET_ACCOUNT_STATUS_SQL, processor_id, "blocked")
    error = await catch_api_error(authenticate(other_process, headers))
    assert error.code is Code.PROCESSOR_SUSPENDED


async def test_suspension_is_disclosed_only_with_a_valid_signature(
    process: GatewayProcess, processor_id: int, key: NewHmacKey, clock: FakeClock
) -> None:
    await update_and_publish(process, SET_ACCOUNT_STATUS_SQL, processor_id, "blocked")
    headers = sign_headers(key, clock) | {b"x-signature": b"0" * 64}
    assert await catch_unauthorized(authenticate(process, headers)) == INVALID_SIGNATURE_MESSAGE


async def test_key_can_be_deleted_only_once_and_only_for_its_owner(
    process: GatewayProcess, owners: OwnerBuilder, processor_id: int, key: NewHmacKey
) -> None:
    other_processor_id = await owners.create_processor()
    keys = process.authenticator.hmac_keys
    async with process.transaction() as tx:
        assert await keys.delete(tx, key.id, owner_id=other_processor_id) is False
        assert await keys.delete(tx, key.id, owner_id=processor_id) is True
        assert await keys.delete(tx, key.id, owner_id=processor_id) is False


async def test_key_and_timestamp_are_checked_without_the_body(
    process: GatewayProcess, key: NewHmacKey, clock: FakeClock
) -> None:
    check = process.authenticator.signatures.require_known_key
    headers = sign_headers(key, clock)
    await check(headers)
    message = await catch_unauthorized(check(headers | {b"x-api-key-id": b"key_0000000000001"}))
    assert message == INVALID_SIGNATURE_MESSAGE
    message = await catch_unauthorized(
        check(sign_headers(key, clock, timestamp="2020-01-31T12:00:00Z"))
    )
    assert "5 minutes" in message
    for name, text in ((b"x-signature", "X-Signature"), (b"x-timestamp", "X-Timestamp")):
        without = {item: value for item, value in headers.items() if item != name}
        assert await catch_unauthorized(check(without)) == f"{text} is missing."
