"""Audit verification: incremental from a checkpoint, one at a time, on its own connection."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from builders.auth import WriteEntry, assert_seals
from harness import Harness
from tapgate.core.vault import Vault
from tapgate.events.audit import chain, verification
from tapgate.events.audit.chain import Sealer
from tapgate.events.audit.verification import Verifier
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.clock import system_clock
from tapgate_client.errors import ApiError

VERIFY_URL = "/api/v1/audit/verify"
DISABLE_TRIGGERS_SQL = """
    ALTER TABLE audit_entries DISABLE TRIGGER USER;
    ALTER TABLE audit_head DISABLE TRIGGER USER;
"""


@pytest.fixture(autouse=True)
def _checkpoint_once_at_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "CHECKPOINT_LAG", 0)
    monkeypatch.setattr(chain, "CHECKPOINT_INTERVAL", 1)


@pytest.fixture
def verifier(database: Database) -> Verifier:
    return Verifier(database, Vault("k" * 32), system_clock)


@pytest.fixture
def create_entries(database: Database, write_entry: WriteEntry) -> Callable[[int], Any]:
    async def create(count: int) -> None:
        async with database.transaction() as tx:
            for number in range(count):
                await write_entry(tx, resource_id=f"TAP-{number}")
        await assert_seals(Sealer(database), count)

    return create


@pytest.fixture
def rehashed_entries(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect the sequence numbers of the entries whose hashes are recomputed."""
    numbers: list[int] = []
    is_linked = chain.is_linked

    def record_and_check(row: Any, *arguments: Any) -> bool:
        numbers.append(row["sequence"])
        return is_linked(row, *arguments)

    monkeypatch.setattr(chain, "is_linked", record_and_check)
    return numbers


async def test_incremental_verification_hashes_only_new_entries_and_counts_all(
    verifier: Verifier, create_entries: Callable[[int], Any], rehashed_entries: list[int]
) -> None:
    await create_entries(5)
    assert (await verifier.verify(full=False)).entries == 5
    assert rehashed_entries == [1, 2, 3, 4, 5]
    await create_entries(2)
    rehashed_entries.clear()
    result = await verifier.verify(full=False)
    assert (result.valid, result.entries, result.unsealed) == (True, 7, 0)
    assert rehashed_entries == [6, 7]
    rehashed_entries.clear()
    assert (await verifier.verify(full=True)).entries == 7
    assert rehashed_entries == [1, 2, 3, 4, 5, 6, 7]


async def test_newest_entries_are_always_verified(
    verifier: Verifier,
    create_entries: Callable[[int], Any],
    rehashed_entries: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chain, "CHECKPOINT_LAG", 4)
    monkeypatch.setattr(chain, "CHECKPOINT_INTERVAL", 2)
    for count, expected in ((3, 1), (4, 1), (3, 3), (2, 7)):
        await create_entries(count)
        rehashed_entries.clear()
        assert (await verifier.verify(full=False)).valid
        assert rehashed_entries[0] == expected


async def test_unsealed_entries_are_counted_but_not_covered_by_the_checkpoint(
    verifier: Verifier,
    create_entries: Callable[[int], Any],
    database: Database,
    write_entry: WriteEntry,
) -> None:
    await create_entries(2)
    async with database.transaction() as tx:
        await write_entry(tx)
    for _ in range(2):
        result = await verifier.verify(full=False)
        assert (result.valid, result.entries, result.unsealed) == (True, 3, 1)
    await assert_seals(Sealer(database), 1)
    result = await verifier.verify(full=False)
    assert (result.valid, result.entries, result.unsealed) == (True, 3, 0)


async def test_change_after_the_checkpoint_is_detected_and_the_checkpoint_does_not_move(
    verifier: Verifier, create_entries: Callable[[int], Any], database: Database
) -> None:
    await create_entries(3)
    await verifier.verify(full=False)
    await create_entries(3)
    await database.execute(DISABLE_TRIGGERS_SQL)
    changed = await database.fetchval(
        "UPDATE audit_entries SET reason = 'forged' WHERE sequence = 5 RETURNING id"
    )
    for _ in range(2):
        result = await verifier.verify(full=False)
        assert (result.valid, result.entries) == (False, 6)
        assert result.first_broken == ids.encode(ids.AUDIT_ENTRY, changed)
    assert await database.fetchval("SELECT sequence FROM audit_checkpoint") == 3


async def test_change_before_the_checkpoint_is_detected_by_a_full_verification(
    verifier: Verifier, create_entries: Callable[[int], Any], database: Database
) -> None:
    await create_entries(4)
    await verifier.verify(full=False)
    await database.execute(DISABLE_TRIGGERS_SQL)
    changed = await database.fetchval(
        "UPDATE audit_entries SET reason = 'forged' WHERE sequence = 2 RETURNING id"
    )
    assert (await verifier.verify(full=False)).valid
    result = await verifier.verify(full=True)
    assert (result.valid, result.first_broken) == (False, ids.encode(ids.AUDIT_ENTRY, changed))


@pytest.mark.parametrize("column", ["sequence", "hash", "entries", "mac"])
async def test_forged_checkpoint_is_not_trusted(
    verifier: Verifier, create_entries: Callable[[int], Any], database: Database, column: str
) -> None:
    await create_entries(4)
    await verifier.verify(full=False)
    await database.execute(DISABLE_TRIGGERS_SQL)
    await database.execute("UPDATE audit_entries SET reason = 'forged' WHERE sequence = 2")
    forged = {"sequence": "3", "hash": "sha256('x')", "entries": "9", "mac": "sha256('x')"}
    await database.execute(f"UPDATE audit_checkpoint SET {column} = {forged[column]}")
    assert not (await verifier.verify(full=False)).valid


async def test_history_replaced_with_valid_hashes_does_not_match_the_checkpoint(
    verifier: Verifier, create_entries: Callable[[int], Any], database: Database
) -> None:
    await create_entries(4)
    await verifier.verify(full=False)
    await create_entries(2)
    await database.execute(DISABLE_TRIGGERS_SQL)
    await database.execute(
        """UPDATE audit_entries SET reason = 'forged', hash = NULL, previous_hash = NULL
           WHERE sequence >= 2"""
    )
    await database.execute(
        """UPDATE audit_head SET (sequence, hash) =
               (SELECT sequence, hash FROM audit_entries WHERE sequence = 1)"""
    )
    await assert_seals(Sealer(database), 5)
    assert (await chain.verify(database)).valid  # the chain itself is valid
    for full in (False, True):
        assert not (await verifier.verify(full=full)).valid


async def test_log_truncated_before_the_checkpoint_is_detected(
    verifier: Verifier, create_entries: Callable[[int], Any], database: Database
) -> None:
    await create_entries(4)
    await verifier.verify(full=False)
    await database.execute(DISABLE_TRIGGERS_SQL)
    await database.execute("DELETE FROM audit_entries WHERE sequence > 2")
    await database.execute(
        """UPDATE audit_head SET (sequence, hash) =
               (SELECT sequence, hash FROM audit_entries WHERE sequence = 2)"""
    )
    for full in (False, True):
        result = await verifier.verify(full=full)
        assert (result.valid, result.first_broken) == (False, "2")


@pytest.fixture
def opened_connections(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Collect one item for each dedicated connection that is opened."""
    opened: list[None] = []
    open_connection = Database.dedicated_connection

    def record_and_open(self: Database) -> Any:
        opened.append(None)
        return open_connection(self)

    monkeypatch.setattr(Database, "dedicated_connection", record_and_open)
    return opened


async def test_concurrent_requests_share_one_verification_and_leave_the_pool_free(
    harness: Harness, opened_connections: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    admin, proceed = await harness.create_admin("C"), asyncio.Event()
    verify_from = verification.verify_from_checkpoint

    async def wait_and_verify(*arguments: Any) -> Any:
        await proceed.wait()
        return await verify_from(*arguments)

    monkeypatch.setattr(verification, "verify_from_checkpoint", wait_and_verify)
    tasks = [asyncio.create_task(harness.get(VERIFY_URL, auth=admin)) for _ in range(40)]
    async with asyncio.timeout(30):
        while sum(task.done() for task in tasks) < 40 - verification.MAX_WAITING_CALLERS:
            await asyncio.sleep(0.01)
    # All pooled connections are free for other requests.
    list_responses = await asyncio.gather(
        *(harness.get("/api/v1/subscribers", auth=admin) for _ in range(20))
    )
    assert {response.status_code for response in list_responses} == {200}
    proceed.set()
    responses = [await task for task in tasks]
    assert sorted(response.status_code for response in responses) == [200] * 16 + [503] * 24
    found = [response for response in responses if response.status_code == 503]
    assert all(response.headers["retry-after"] == "1" for response in found)
    assert len(opened_connections) == 1


async def test_incremental_request_joins_a_full_verification(
    verifier: Verifier,
    create_entries: Callable[[int], Any],
    rehashed_entries: list[int],
    opened_connections: list[None],
) -> None:
    await create_entries(3)
    results = await asyncio.gather(
        verifier.verify(full=True), verifier.verify(full=False), verifier.verify(full=True)
    )
    assert [result.entries for result in results] == [3, 3, 3]
    assert (rehashed_entries, len(opened_connections)) == ([1, 2, 3], 1)


async def test_full_request_does_not_join_an_incremental_verification(
    verifier: Verifier, create_entries: Callable[[int], Any], rehashed_entries: list[int]
) -> None:
    await create_entries(3)
    await verifier.verify(full=False)
    rehashed_entries.clear()
    await asyncio.gather(verifier.verify(full=False), verifier.verify(full=True))
    assert rehashed_entries == [1, 2, 3]


async def test_canceled_caller_does_not_end_the_verification_of_other_callers(
    verifier: Verifier, create_entries: Callable[[int], Any]
) -> None:
    await create_entries(3)
    first = asyncio.create_task(verifier.verify(full=False))
    await asyncio.sleep(0)
    second = asyncio.create_task(verifier.verify(full=False))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).valid


async def test_request_gets_503_if_another_process_verifies_longer_than_the_wait_timeout(
    verifier: Verifier, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "WAIT_TIMEOUT_SECONDS", 0.05)
    async with database.connection() as other:
        await other.execute("SELECT pg_advisory_lock($1)", verification.LOCK_KEY)
        with pytest.raises(ApiError) as raised:
            await verifier.verify(full=False)
        await other.execute("SELECT pg_advisory_unlock($1)", verification.LOCK_KEY)
    assert (raised.value.status, raised.value.headers) == (503, {"Retry-After": "1"})
    assert (await verifier.verify(full=False)).valid


async def test_full_parameter_must_be_a_boolean(harness: Harness) -> None:
    admin = await harness.create_admin("C")
    for query in ("", "?full=true", "?full=false"):
        response = await harness.get(f"{VERIFY_URL}{query}", auth=admin)
        assert response.status_code == 200
        assert list(response.json()) == ["valid", "entries", "unsealed", "first_broken"]
    response = await harness.get(f"{VERIFY_URL}?full=perhaps", auth=admin)
    assert (response.status_code, list(response.json()["details"]["fields"])) == (422, ["full"])


async def test_each_accepted_ledger_verification_opens_one_connection(
    harness: Harness, opened_connections: list[None]
) -> None:
    admin = await harness.create_admin()
    requests = [harness.post("/api/v1/ledger/verify", auth=admin) for _ in range(30)]
    responses = await asyncio.gather(*requests)
    statuses = [response.status_code for response in responses]
    assert set(statuses) == {200, 429}
    assert len(opened_connections) == statuses.count(200)
