"""The audit log over HTTP."""

from datetime import UTC, timedelta
from typing import Any

import httpx2
import pytest

from audit.stage import ORIGIN, Write, seals
from tapgate import clock, ids
from tapgate.audit.chain import Sealer
from tapgate.edge.services import Services
from tapgate.store.database import Database
from world import Bearer, World

LOGS = "/api/v1/audit/logs"


@pytest.fixture
async def reader(world: World) -> Bearer:
    return await world.admin("C")


async def _resources(client: httpx2.AsyncClient, reader: Bearer, **filters: Any) -> list[str]:
    """Which entries a list has, by the resources they are about."""
    answer = await client.get(LOGS, params=filters, auth=reader)
    assert answer.status_code == 200, answer.text
    return [entry["resource_id"] for entry in answer.json()["data"]]


async def test_an_entry_has_its_hashes_once_it_is_sealed(
    client: httpx2.AsyncClient, database: Database, reader: Bearer, write: Write
) -> None:
    async with database.transaction() as tx:
        await write(tx, reason="stolen", changes={"status": ("ACTIVE", "LOST")})
    (entry,) = (await client.get(LOGS, auth=reader)).json()["data"]
    row = await database.fetchrow("SELECT id, occurred_at FROM audit_entries")
    assert row is not None
    assert entry == {
        "id": ids.show("aud_", row["id"]),
        "sequence": 1,
        "occurred_at": clock.rfc3339(row["occurred_at"]),
        "event": "card.blocked",
        "actor": ORIGIN.actor,
        "resource_type": "card",
        "resource_id": "TAP-1",
        "result": "success",
        "reason": "stolen",
        "changes": {"status": ["ACTIVE", "LOST"]},
        "ip": ORIGIN.ip,
        "request_id": ORIGIN.request_id,
        "previous_hash": None,
        "hash": None,
    }
    await seals(Sealer(database), 1)
    (sealed,) = (await client.get(LOGS, auth=reader)).json()["data"]
    assert sealed["previous_hash"] == "00" * 32
    assert len(bytes.fromhex(sealed["hash"])) == 32


async def test_the_log_is_filtered(
    client: httpx2.AsyncClient, database: Database, reader: Bearer, write: Write
) -> None:
    async with database.transaction() as tx:
        await write(tx, resource_id="a", event="card.linked")
        await write(tx, resource_id="b", resource_type="agent")
        await write(tx, resource_id="c", result="failure")
    assert await _resources(client, reader) == ["c", "b", "a"]
    assert await _resources(client, reader, event="card.linked") == ["a"]
    assert await _resources(client, reader, resource_type="agent") == ["b"]
    assert await _resources(client, reader, resource_id="b") == ["b"]
    assert await _resources(client, reader, result="failure") == ["c"]
    assert await _resources(client, reader, actor_id=ORIGIN.actor_id) == ["c", "b", "a"]
    assert await _resources(client, reader, actor_id="adm_0000000000002") == []
    assert await _resources(client, reader, result="success", resource_type="card") == ["a"]


async def test_the_log_is_filtered_by_time_and_by_day(
    client: httpx2.AsyncClient, services: Services, reader: Bearer, write: Write
) -> None:
    async with services.database.transaction() as tx:
        await write(tx)
    moment = await services.database.fetchval("SELECT occurred_at FROM audit_entries")
    at = clock.rfc3339(moment)
    before = clock.rfc3339(moment - timedelta(milliseconds=1))
    after = clock.rfc3339(moment + timedelta(milliseconds=1))
    assert await _resources(client, reader, **{"from": at, "to": at}) == ["TAP-1"]
    assert await _resources(client, reader, **{"from": after}) == []
    assert await _resources(client, reader, to=before) == []

    day = moment.astimezone(UTC).date()
    assert await _resources(client, reader, **{"from": day, "to": day}) == ["TAP-1"]
    assert await _resources(client, reader, **{"from": day + timedelta(days=1)}) == []
    assert await _resources(client, reader, to=day - timedelta(days=1)) == []


@pytest.mark.parametrize(
    ("filter_", "value"),
    [
        ("from", "yesterday"),
        ("from", "2026-02-30"),
        ("to", "2026-01-31T12:00:00"),
        ("to", "9999-12-31"),
        ("from", "0001-01-01T00:00:00Z"),
        ("result", "perhaps"),
        ("event", ""),
        ("limit", "0"),
        ("cursor", "next"),
    ],
)
async def test_a_filter_that_makes_no_sense_is_refused(
    client: httpx2.AsyncClient, reader: Bearer, filter_: str, value: str
) -> None:
    answer = await client.get(LOGS, params={filter_: value}, auth=reader)
    assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION_FAILED")
    assert list(answer.json()["details"]["fields"]) == [filter_]


async def test_pages_neither_repeat_nor_skip_while_entries_are_added(
    client: httpx2.AsyncClient, database: Database, reader: Bearer, write: Write
) -> None:
    async with database.transaction() as tx:
        for number in range(5):
            await write(tx, resource_id=str(number))
    seen: list[str] = []
    page: dict[str, Any] = {"has_more": True, "next_cursor": None}
    while page["has_more"]:
        query = {"limit": 2} | ({"cursor": page["next_cursor"]} if seen else {})
        page = (await client.get(LOGS, params=query, auth=reader)).json()
        seen += [entry["resource_id"] for entry in page["data"]]
        async with database.transaction() as tx:
            await write(tx, resource_id="new")
    assert seen == ["4", "3", "2", "1", "0"]
    assert page["next_cursor"] is None


async def test_verify_says_whether_the_log_is_what_was_written(
    client: httpx2.AsyncClient, database: Database, reader: Bearer, write: Write
) -> None:
    async with database.transaction() as tx:
        await write(tx)
    await seals(Sealer(database), 1)
    answer = await client.get("/api/v1/audit/verify", auth=reader)
    assert answer.json() == {"valid": True, "entries": 1, "unsealed": 0, "first_broken": None}
    await database.execute(
        """ALTER TABLE audit_entries DISABLE TRIGGER USER;
           UPDATE audit_entries SET reason = 'forged'"""
    )
    broken = (await client.get("/api/v1/audit/verify", auth=reader)).json()
    (entry,) = (await client.get(LOGS, auth=reader)).json()["data"]
    assert (broken["valid"], broken["first_broken"]) == (False, entry["id"])


async def test_who_was_denied_is_an_entry(
    client: httpx2.AsyncClient, world: World, reader: Bearer
) -> None:
    answer = await client.get(LOGS, auth=await world.admin("S"))
    assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN")
    (entry,) = (await client.get(LOGS, auth=reader)).json()["data"]
    assert (entry["event"], entry["result"]) == ("access.denied", "denied")
    assert (entry["resource_type"], entry["resource_id"]) == ("endpoint", f"GET {LOGS}")
    assert entry["actor"]["role"] == "support_user"
    assert entry["request_id"] == answer.headers["X-Request-ID"]
