"""API keys: valid until deleted, expired or rotated, and only in one environment."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import asyncpg
import pytest

from builders.auth import FakeClock, GatewayProcess, OwnerBuilder, catch_unauthorized
from tapgate.auth.api_keys import ApiKey, ApiKeys
from tapgate.core.vault import Vault
from tapgate.runtime.background import run_background_tasks
from tapgate_client import ids

INVALID_KEY_MESSAGE = "The API key is unknown, expired or deleted."

CreateKey = Callable[..., Awaitable[tuple[ApiKey, str]]]


@pytest.fixture
async def create_key(process: GatewayProcess, owners: OwnerBuilder) -> CreateKey:
    admin_id = await owners.create_admin()

    async def create(
        expires_at: datetime | None = None, keys: ApiKeys | None = None
    ) -> tuple[ApiKey, str]:
        async with process.transaction() as tx:
            return await (keys or process.authenticator.api_keys).create(
                tx,
                name="Till system",
                scopes=["payments:write", "cards:read", "cards:read"],
                expires_at=expires_at,
                created_by=admin_id,
            )

    return create


async def get_rejection_message(process: GatewayProcess, key: str) -> str | None:
    return await catch_unauthorized(process.authenticator.api_keys.authenticate(key))


async def test_api_key_has_43_random_characters_after_its_prefix(create_key: CreateKey) -> None:
    record, key = await create_key()
    assert re.fullmatch(r"svc_test_[A-Za-z0-9_-]{43}", key)
    assert record.prefix == key[:13]
    assert (await create_key())[1] != key


async def test_principal_has_the_id_name_and_scopes_of_the_key(
    process: GatewayProcess, create_key: CreateKey
) -> None:
    record, key = await create_key()
    principal = await process.authenticator.api_keys.authenticate(key)
    assert principal.kind == "api_key"
    assert principal.id == principal.idempotency_scope == ids.encode(ids.KEY, record.id)
    assert principal.name == "Till system"
    assert principal.scopes == {"cards:read", "payments:write"}
    assert principal.key_id == record.id


async def test_api_key_is_not_stored_in_plaintext(
    process: GatewayProcess, create_key: CreateKey
) -> None:
    _, key = await create_key()
    stored = str(dict((await process.database.fetch("SELECT * FROM api_keys"))[0]))
    assert key not in stored
    assert key[13:] not in stored


async def test_unknown_key_is_rejected(process: GatewayProcess, create_key: CreateKey) -> None:
    _, key = await create_key()
    for unknown in (key[:-1], key + "x", "svc_test_", "svc_test_" + "é" * 40):
        assert await get_rejection_message(process, unknown) == INVALID_KEY_MESSAGE


async def test_process_without_signals_does_not_use_its_cache(
    process: GatewayProcess, other_process: GatewayProcess, create_key: CreateKey
) -> None:
    record, key = await create_key()
    await other_process.authenticator.api_keys.authenticate(key)
    await other_process.signals.stop()
    async with process.transaction() as tx:
        await process.authenticator.api_keys.delete(tx, record.id)
    assert await get_rejection_message(other_process, key) == INVALID_KEY_MESSAGE


async def test_rolled_back_deletion_leaves_the_key_valid(
    process: GatewayProcess, create_key: CreateKey
) -> None:
    record, key = await create_key()
    with pytest.raises(ZeroDivisionError):
        async with process.transaction() as tx:
            await process.authenticator.api_keys.delete(tx, record.id)
            raise ZeroDivisionError
    await process.authenticator.api_keys.authenticate(key)


async def test_key_is_rejected_from_its_expiry_time_on(
    process: GatewayProcess, create_key: CreateKey, clock: FakeClock
) -> None:
    _, key = await create_key(expires_at=clock() + timedelta(hours=1))
    clock.advance(hours=1, microseconds=-1)
    await process.authenticator.api_keys.authenticate(key)
    clock.advance(microseconds=1)
    assert await get_rejection_message(process, key) == INVALID_KEY_MESSAGE


async def test_keys_are_valid_only_in_their_environment(
    process: GatewayProcess, create_key: CreateKey, clock: FakeClock, vault: Vault
) -> None:
    live_keys = ApiKeys(process.database, process.signals, vault, clock, production=True)
    _, test_key = await create_key()
    _, live_key = await create_key(keys=live_keys)
    assert live_key.startswith("svc_live_")
    await live_keys.authenticate(live_key)
    rejection_message = await get_rejection_message(process, live_key)
    assert rejection_message == "API keys start with svc_test_ in this environment."
    message = await catch_unauthorized(live_keys.authenticate(test_key))
    assert message == "API keys start with svc_live_ in this environment."


async def test_keys_are_listed_newest_first_without_deleted_ones(
    process: GatewayProcess, create_key: CreateKey
) -> None:
    created = [(await create_key())[0] for _ in range(4)]
    keys = process.authenticator.api_keys
    async with process.transaction() as tx:
        await keys.delete(tx, created[2].id)
    first = await keys.list_page(before=None, limit=2)
    assert first == [created[3], created[1]]
    assert await keys.list_page(before=first[-1].id, limit=2) == [created[0]]


async def rotate_key(process: GatewayProcess, record: ApiKey, grace_seconds: int = 0) -> str:
    keys = process.authenticator.api_keys
    async with process.transaction() as tx:
        locked = await keys.get(tx, record.id, for_update=True)
        owner_id = await tx.fetchval("SELECT created_by FROM api_keys WHERE id = $1", record.id)
        _, key = await keys.rotate(tx, locked, grace_seconds=grace_seconds, rotated_by=owner_id)
    return key


async def test_rotation_without_grace_period_invalidates_the_old_key_in_every_process(
    process: GatewayProcess, other_process: GatewayProcess, create_key: CreateKey
) -> None:
    record, old = await create_key()
    await other_process.authenticator.api_keys.authenticate(old)
    new = await rotate_key(process, record)
    for gateway in (other_process, process):
        assert await get_rejection_message(gateway, old) == INVALID_KEY_MESSAGE
        principal = await gateway.authenticator.api_keys.authenticate(new)
        assert principal.idempotency_scope == ids.encode(ids.KEY, record.id)


async def test_old_key_works_until_the_grace_period_ends(
    process: GatewayProcess, other_process: GatewayProcess, create_key: CreateKey, clock: FakeClock
) -> None:
    record, old = await create_key()
    new = await rotate_key(process, record, grace_seconds=60)
    clock.advance(seconds=60, microseconds=-1)
    for gateway in (process, other_process):
        for key in (old, new):
            await gateway.authenticator.api_keys.authenticate(key)
    clock.advance(microseconds=1)
    for gateway in (process, other_process):
        assert await get_rejection_message(gateway, old) == INVALID_KEY_MESSAGE
        await gateway.authenticator.api_keys.authenticate(new)


@pytest.mark.parametrize("grace_seconds", [0, 60])
async def test_second_rotation_invalidates_the_first_key(
    process: GatewayProcess,
    other_process: GatewayProcess,
    create_key: CreateKey,
    grace_seconds: int,
) -> None:
    record, first = await create_key()
    second = await rotate_key(process, record, grace_seconds=60)
    await other_process.authenticator.api_keys.authenticate(first)
    third = await rotate_key(process, record, grace_seconds=grace_seconds)
    for gateway in (other_process, process):
        assert await get_rejection_message(gateway, first) == INVALID_KEY_MESSAGE
        await gateway.authenticator.api_keys.authenticate(third)
        if grace_seconds:
            await gateway.authenticator.api_keys.authenticate(second)
        else:
            await get_rejection_message(gateway, second)


async def test_grace_period_does_not_extend_the_expiry(
    process: GatewayProcess, create_key: CreateKey, clock: FakeClock
) -> None:
    record, old = await create_key(expires_at=clock() + timedelta(seconds=30))
    new = await rotate_key(process, record, grace_seconds=60)
    clock.advance(seconds=30)
    for key in (old, new):
        await get_rejection_message(process, key)


async def test_deletion_during_the_grace_period_invalidates_both_keys(
    process: GatewayProcess, other_process: GatewayProcess, create_key: CreateKey
) -> None:
    record, old = await create_key()
    new = await rotate_key(process, record, grace_seconds=60)
    async with process.transaction() as tx:
        await process.authenticator.api_keys.delete(tx, record.id)
    for gateway in (process, other_process):
        for key in (old, new):
            await get_rejection_message(gateway, key)


async def test_last_use_is_recorded_by_every_process_and_never_moves_back(
    process: GatewayProcess, other_process: GatewayProcess, create_key: CreateKey, clock: FakeClock
) -> None:
    record, key = await create_key()

    async def use(gateway: GatewayProcess) -> None:
        principal = await gateway.authenticator.api_keys.authenticate(key)
        gateway.authenticator.authorize_api_key(principal, "203.0.113.7")

    async def get_last_used_at() -> datetime | None:
        (listed,) = await process.authenticator.api_keys.list_page(before=None, limit=10)
        return listed.last_used_at

    assert await get_last_used_at() is None
    await use(process)
    clock.advance(seconds=10)
    await use(other_process)
    await other_process.authenticator.api_keys.last_used.flush()
    assert await get_last_used_at() == clock()
    await process.authenticator.api_keys.last_used.flush()
    assert await get_last_used_at() == clock()
    assert record.last_used_at is None


async def test_last_use_is_kept_after_a_failed_write_and_written_by_the_next_flush(
    process: GatewayProcess,
    create_key: CreateKey,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, key = await create_key()
    keys = process.authenticator.api_keys
    process.authenticator.authorize_api_key(await keys.authenticate(key), "203.0.113.7")
    with monkeypatch.context() as patch:
        patch.setattr(keys.last_used, "update_sql", "SELECT 1 / 0, $1::bigint[], $2::timestamptz[]")
        with pytest.raises(asyncpg.DivisionByZeroError):
            await keys.last_used.flush()
    await keys.last_used.flush()
    (listed,) = await keys.list_page(before=None, limit=10)
    assert listed.last_used_at == clock()


async def test_last_use_is_written_when_the_process_stops(
    process: GatewayProcess, create_key: CreateKey, clock: FakeClock
) -> None:
    _, key = await create_key()
    keys = process.authenticator.api_keys
    async with run_background_tasks(keys.last_used.run()):
        await asyncio.sleep(0)  # run the first flush, which writes nothing
        process.authenticator.authorize_api_key(await keys.authenticate(key), "203.0.113.7")
    (listed,) = await keys.list_page(before=None, limit=10)
    assert listed.last_used_at == clock()
