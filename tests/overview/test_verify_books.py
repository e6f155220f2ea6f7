"""Ledger verification over HTTP, and the stored result."""

import asyncio
from typing import Any

import pytest

from harness import Harness
from pos.builders import PosDriver
from tapgate.ledger.verify import CLAIMS
from tapgate.overview.operations import _LOCK_KEY

URL = "/api/v1/ledger/verify"

#: Limited to this database, because other databases on the server have their own locks.
_VERIFY_LOCKS_SQL = """
    SELECT pid FROM pg_locks JOIN pg_database d ON d.oid = database
    WHERE locktype = 'relation' AND NOT granted AND datname = current_database()"""


async def get_last_proof(world: Harness) -> Any:
    answer = await world.client.get("/api/v1/overview", auth=await world.create_admin("S"))
    return answer.json()["ledger"]["last_proof"]


async def test_valid_books_are_verified_and_the_result_is_stored(world: Harness) -> None:
    await (await PosDriver.create(world)).pay("100.00")
    answer = await world.client.post(URL, auth=await world.create_admin())
    proof = answer.json()
    assert (answer.status_code, proof["holds"]) == (200, True)
    assert (proof["transactions"], proof["entries"]) == (2, 3)
    assert [one["claim"] for one in proof["claims"]] == list(CLAIMS)
    assert not [one for one in proof["claims"] if one["broken"] or one["examples"]]
    assert await get_last_proof(world) == {
        name: proof[name]
        for name in ("proven_at", "holds", "seconds", "transactions", "entries", "accounts")
    }
    event = "SELECT result FROM audit_entries WHERE event = 'ledger.verified'"
    assert await world.services.database.fetchval(event) == "success"


async def test_broken_books_are_reported_and_the_result_is_stored(world: Harness) -> None:
    await world.create_subscriber(balance="100")
    await world.services.database.execute("UPDATE accounts SET balance = 5 WHERE kind = 'wallet'")
    answer = await world.client.post(URL, auth=await world.create_admin())
    proof = answer.json()
    assert (answer.status_code, proof["holds"]) == (200, False)
    (broken,) = [one for one in proof["claims"] if not one["holds"]]
    assert broken["claim"] == "every balance is the sum of its entries"
    assert broken["broken"] == 1
    assert "balance 5, entries 10000" in broken["examples"][0]
    assert (await get_last_proof(world))["holds"] is False
    event = "SELECT result, reason FROM audit_entries WHERE event = 'ledger.verified'"
    row = await world.services.database.fetchrow(event)
    assert row is not None
    assert tuple(row) == ("failure", broken["claim"])


async def test_concurrent_verification_is_rejected(world: Harness) -> None:
    admin = await world.create_admin()
    async with world.services.database.connection() as connection:
        await connection.execute("SELECT pg_advisory_lock($1)", _LOCK_KEY)
        refused = await world.client.post(URL, auth=admin)
        await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK_KEY)
    assert (refused.status_code, refused.json()["code"]) == (429, "RATE_LIMITED")
    assert refused.headers["Retry-After"] == "1"
    assert "already" in refused.json()["message"]
    assert await get_last_proof(world) is None
    for _ in range(3):
        assert (await world.client.post(URL, auth=admin)).status_code == 200


async def test_other_requests_are_served_during_a_long_verification(world: Harness) -> None:
    admin, database = await world.create_admin(), world.services.database
    async with database.dedicated_connection() as connection, connection.transaction():
        await connection.execute("LOCK TABLE entries IN ACCESS EXCLUSIVE MODE")
        proving = asyncio.create_task(world.client.post(URL, auth=admin))
        while await database.fetchval(_VERIFY_LOCKS_SQL) is None:
            await asyncio.sleep(0.01)
        listed = await asyncio.gather(
            *(world.client.get("/api/v1/subscribers", auth=admin) for _ in range(20))
        )
        assert {answer.status_code for answer in listed} == {200}
        assert not proving.done()
    assert (await proving).status_code == 200


@pytest.mark.parametrize("end", ["whoever asked goes away", "the database drops it"])
async def test_interrupted_verification_releases_its_lock(world: Harness, end: str) -> None:
    admin, database = await world.create_admin(), world.services.database
    async with database.dedicated_connection() as connection, connection.transaction():
        await connection.execute("LOCK TABLE entries IN ACCESS EXCLUSIVE MODE")
        proving = asyncio.create_task(world.client.post(URL, auth=admin))
        while (backend := await database.fetchval(_VERIFY_LOCKS_SQL)) is None:
            await asyncio.sleep(0.01)
        if end == "the database drops it":
            await database.fetchval("SELECT pg_terminate_backend($1)", backend)
            assert (await proving).status_code == 503
        else:
            proving.cancel()
            await asyncio.wait([proving])
        # Its advisory lock is released even though the table lock it waited for is still held.
        while not await connection.fetchval("SELECT pg_try_advisory_lock($1)", _LOCK_KEY):
            await asyncio.sleep(0.01)
        await connection.fetchval("SELECT pg_advisory_unlock($1)", _LOCK_KEY)
    assert (await world.client.post(URL, auth=admin)).status_code == 200
