"""Ledger verification over HTTP, and the stored result."""

import asyncio
from typing import Any

import pytest

from builders.payments import PosDriver
from harness import Harness
from tapgate.business.reporting.operations import LOCK_KEY
from tapgate.ledger.verification.checkpoints import UNCHANGED
from tapgate.ledger.verification.closed_days import CLOSED_DAYS
from tapgate.ledger.verification.invariants import INVARIANTS

URL = "/api/v1/ledger/verify"

#: Sessions that wait for a table lock in this database; other tests use other databases.
_VERIFY_LOCKS_SQL = """
    SELECT pid FROM pg_locks JOIN pg_database d ON d.oid = database
    WHERE locktype = 'relation' AND NOT granted AND datname = current_database()"""


async def get_last_proof(harness: Harness) -> Any:
    response = await harness.get("/api/v1/overview", auth=await harness.create_admin("S"))
    return response.json()["ledger"]["last_proof"]


async def test_valid_books_are_verified_and_the_result_is_stored(harness: Harness) -> None:
    await (await PosDriver.create(harness)).pay("100.00")
    response = await harness.post(URL, auth=await harness.create_admin())
    proof = response.json()
    assert (response.status_code, proof["holds"]) == (200, True)
    assert (proof["transactions"], proof["entries"]) == (2, 3)
    assert [claim["claim"] for claim in proof["claims"]] == [*INVARIANTS, UNCHANGED, CLOSED_DAYS]
    assert not [claim for claim in proof["claims"] if claim["broken"] or claim["examples"]]
    last_proof = await get_last_proof(harness)
    expected = {
        name: proof[name]
        for name in ("proven_at", "holds", "seconds", "transactions", "entries", "accounts")
    }
    assert last_proof == expected
    result_sql = "SELECT result FROM audit_entries WHERE event = 'ledger.verified'"
    assert await harness.database.fetchval(result_sql) == "success"


async def test_broken_books_are_reported_and_the_result_is_stored(harness: Harness) -> None:
    await harness.create_subscriber(balance="100")
    await harness.database.execute("UPDATE accounts SET balance = 5 WHERE kind = 'wallet'")
    response = await harness.post(URL, auth=await harness.create_admin())
    proof = response.json()
    assert (response.status_code, proof["holds"]) == (200, False)
    (broken,) = [claim for claim in proof["claims"] if not claim["holds"]]
    assert broken["claim"] == "every balance is the sum of its entries"
    assert broken["broken"] == 1
    assert "balance 5, entries 10000" in broken["examples"][0]
    assert (await get_last_proof(harness))["holds"] is False
    result_sql = "SELECT result, reason FROM audit_entries WHERE event = 'ledger.verified'"
    row = await harness.database.fetchrow(result_sql)
    assert row is not None
    assert tuple(row) == ("failure", broken["claim"])


async def test_concurrent_verification_is_rejected(harness: Harness) -> None:
    admin = await harness.create_admin()
    async with harness.database.connection() as connection:
        await connection.execute("SELECT pg_advisory_lock($1)", LOCK_KEY)
        rejected = await harness.post(URL, auth=admin)
        await connection.execute("SELECT pg_advisory_unlock($1)", LOCK_KEY)
    assert (rejected.status_code, rejected.json()["code"]) == (429, "RATE_LIMITED")
    assert rejected.headers["Retry-After"] == "1"
    assert "already" in rejected.json()["message"]
    assert await get_last_proof(harness) is None
    for _ in range(3):
        assert (await harness.post(URL, auth=admin)).status_code == 200


async def test_other_requests_are_served_during_a_long_verification(harness: Harness) -> None:
    admin, database = await harness.create_admin(), harness.database
    async with database.dedicated_connection() as connection, connection.transaction():
        await connection.execute("LOCK TABLE entries IN ACCESS EXCLUSIVE MODE")
        verification = asyncio.create_task(harness.post(URL, auth=admin))
        while await database.fetchval(_VERIFY_LOCKS_SQL) is None:
            await asyncio.sleep(0.01)
        listed = await asyncio.gather(
            *(harness.get("/api/v1/subscribers", auth=admin) for _ in range(20))
        )
        assert {response.status_code for response in listed} == {200}
        assert not verification.done()
    assert (await verification).status_code == 200


@pytest.mark.parametrize("cause", ["client disconnects", "database connection is lost"])
async def test_interrupted_verification_releases_its_lock(harness: Harness, cause: str) -> None:
    admin, database = await harness.create_admin(), harness.database
    async with database.dedicated_connection() as connection, connection.transaction():
        await connection.execute("LOCK TABLE entries IN ACCESS EXCLUSIVE MODE")
        verification = asyncio.create_task(harness.post(URL, auth=admin))
        while (backend := await database.fetchval(_VERIFY_LOCKS_SQL)) is None:
            await asyncio.sleep(0.01)
        if cause == "database connection is lost":
            await database.fetchval("SELECT pg_terminate_backend($1)", backend)
            assert (await verification).status_code == 503
        else:
            verification.cancel()
            await asyncio.wait([verification])
        # The advisory lock is released although the blocking table lock is still held.
        while not await connection.fetchval("SELECT pg_try_advisory_lock($1)", LOCK_KEY):
            await asyncio.sleep(0.01)
        await connection.fetchval("SELECT pg_advisory_unlock($1)", LOCK_KEY)
    assert (await harness.post(URL, auth=admin)).status_code == 200
