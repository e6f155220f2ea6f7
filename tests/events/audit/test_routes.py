"""The audit log over HTTP."""

from datetime import UTC, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx2
import pytest

from builders.auth import ACTOR, WriteEntry, assert_seals
from builders.payments import create_processor, submit_and_get_id
from business.payments.transactions.large_history import QueryExplainer, count_rows_read
from cases import each
from harness import BearerAuth, Harness
from tapgate.events.audit import entry
from tapgate.events.audit.chain import Sealer
from tapgate.events.audit.routes import build_page_query
from tapgate.http.api.services import Services
from tapgate.ledger import chart
from tapgate.runtime.store.database import Database
from tapgate_client import clock, ids
from tapgate_client.schemas.audit import AuditLogQuery

LOGS_URL = "/api/v1/audit/logs"


@pytest.fixture
async def reader(harness: Harness) -> BearerAuth:
    return await harness.create_admin("C")


async def _list_resource_ids(
    client: httpx2.AsyncClient, reader: BearerAuth, **filters: Any
) -> list[str]:
    response = await client.get(LOGS_URL, params=filters, auth=reader)
    assert response.status_code == 200, response.text
    return [entry["resource_id"] for entry in response.json()["data"]]


async def test_entry_has_hashes_after_it_is_sealed(
    client: httpx2.AsyncClient, database: Database, reader: BearerAuth, write_entry: WriteEntry
) -> None:
    async with database.transaction() as tx:
        await write_entry(tx, reason="stolen", changes={"status": ("ACTIVE", "LOST")})
    (entry,) = (await client.get(LOGS_URL, auth=reader)).json()["data"]
    row = await database.fetchrow("SELECT id, occurred_at FROM audit_entries")
    assert row is not None
    assert entry == {
        "id": ids.encode("aud_", row["id"]),
        "sequence": 1,
        "occurred_at": clock.format_rfc3339(row["occurred_at"]),
        "event": "card.blocked",
        "actor": ACTOR.record,
        "resource_type": "card",
        "resource_id": "TAP-1",
        "result": "success",
        "reason": "stolen",
        "changes": {"status": ["ACTIVE", "LOST"]},
        "ip": ACTOR.ip,
        "request_id": ACTOR.request_id,
        "previous_hash": None,
        "hash": None,
    }
    await assert_seals(Sealer(database), 1)
    (sealed,) = (await client.get(LOGS_URL, auth=reader)).json()["data"]
    assert sealed["previous_hash"] == "00" * 32
    assert len(bytes.fromhex(sealed["hash"])) == 32


async def test_log_is_filtered_by_event_resource_result_and_actor(
    client: httpx2.AsyncClient, database: Database, reader: BearerAuth, write_entry: WriteEntry
) -> None:
    async with database.transaction() as tx:
        await write_entry(tx, resource_id="a", event="card.linked")
        await write_entry(tx, resource_id="b", resource_type="agent")
        await write_entry(tx, resource_id="c", result="failure")
    assert await _list_resource_ids(client, reader) == ["c", "b", "a"]
    assert await _list_resource_ids(client, reader, event="card.linked") == ["a"]
    assert await _list_resource_ids(client, reader, resource_type="agent") == ["b"]
    assert await _list_resource_ids(client, reader, resource_id="b") == ["b"]
    assert await _list_resource_ids(client, reader, result="failure") == ["c"]
    assert await _list_resource_ids(client, reader, actor_id=ACTOR.id) == ["c", "b", "a"]
    assert await _list_resource_ids(client, reader, actor_id="adm_0000000000002") == []
    assert await _list_resource_ids(client, reader, result="success", resource_type="card") == ["a"]


async def test_log_is_filtered_by_time_and_by_day(
    client: httpx2.AsyncClient, services: Services, reader: BearerAuth, write_entry: WriteEntry
) -> None:
    async with services.transaction() as tx:
        await write_entry(tx)
    occurred_at = await services.database.fetchval("SELECT occurred_at FROM audit_entries")
    at = clock.format_rfc3339(occurred_at)
    before = clock.format_rfc3339(occurred_at - timedelta(milliseconds=1))
    after = clock.format_rfc3339(occurred_at + timedelta(milliseconds=1))
    assert await _list_resource_ids(client, reader, **{"from": at, "to": at}) == ["TAP-1"]
    assert await _list_resource_ids(client, reader, **{"from": after}) == []
    assert await _list_resource_ids(client, reader, to=before) == []

    day = occurred_at.astimezone(UTC).date()
    assert await _list_resource_ids(client, reader, **{"from": day, "to": day}) == ["TAP-1"]
    assert await _list_resource_ids(client, reader, **{"from": day + timedelta(days=1)}) == []
    assert await _list_resource_ids(client, reader, to=day - timedelta(days=1)) == []


@each(
    "filter_, value",
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
async def test_invalid_filter_is_rejected_with_its_name(
    client: httpx2.AsyncClient, reader: BearerAuth, filter_: str, value: str
) -> None:
    response = await client.get(LOGS_URL, params={filter_: value}, auth=reader)
    assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")
    assert list(response.json()["details"]["fields"]) == [filter_]


async def test_pages_neither_repeat_nor_skip_while_entries_are_added(
    client: httpx2.AsyncClient, database: Database, reader: BearerAuth, write_entry: WriteEntry
) -> None:
    async with database.transaction() as tx:
        for number in range(5):
            await write_entry(tx, resource_id=str(number))
    seen: list[str] = []
    page: dict[str, Any] = {"has_more": True, "next_cursor": None}
    while page["has_more"]:
        query = {"limit": 2} | ({"cursor": page["next_cursor"]} if seen else {})
        page = (await client.get(LOGS_URL, params=query, auth=reader)).json()
        seen += [entry["resource_id"] for entry in page["data"]]
        async with database.transaction() as tx:
            await write_entry(tx, resource_id="new")
    assert seen == ["4", "3", "2", "1", "0"]
    assert page["next_cursor"] is None


async def test_verify_endpoint_reports_a_forged_entry(
    client: httpx2.AsyncClient, database: Database, reader: BearerAuth, write_entry: WriteEntry
) -> None:
    async with database.transaction() as tx:
        await write_entry(tx)
    await assert_seals(Sealer(database), 1)
    response = await client.get("/api/v1/audit/verify", auth=reader)
    assert response.json() == {"valid": True, "entries": 1, "unsealed": 0, "first_broken": None}
    await database.execute(
        """ALTER TABLE audit_entries DISABLE TRIGGER USER;
           UPDATE audit_entries SET reason = 'forged'"""
    )
    broken = (await client.get("/api/v1/audit/verify", auth=reader)).json()
    (entry,) = (await client.get(LOGS_URL, auth=reader)).json()["data"]
    assert (broken["valid"], broken["first_broken"]) == (False, entry["id"])


async def test_denied_access_is_recorded(harness: Harness, reader: BearerAuth) -> None:
    response = await harness.get(LOGS_URL, auth=await harness.create_admin("S"))
    assert (response.status_code, response.json()["code"]) == (403, "FORBIDDEN")
    (entry,) = (await harness.get(LOGS_URL, auth=reader)).json()["data"]
    assert (entry["event"], entry["result"]) == ("access.denied", "denied")
    assert (entry["resource_type"], entry["resource_id"]) == ("endpoint", f"GET {LOGS_URL}")
    assert entry["actor"]["role"] == "support_user"
    assert entry["request_id"] == response.headers["X-Request-ID"]


async def test_values_of_restricted_subscribers_are_masked_until_a_code_is_verified(
    database: Database, harness: Harness, reader: BearerAuth, write_entry: WriteEntry
) -> None:
    restricted = await harness.create_subscriber(balance="50")
    other = await harness.create_subscriber(balance="50")
    card, merchant = await harness.create_card(restricted["id"]), await create_processor(harness)
    payment = await submit_and_get_id(harness, chart.POS_PAYMENT, card, merchant, "10")
    url = f"/api/v1/subscribers/{restricted['id']}"
    admin = await harness.create_admin()
    for response in (
        await harness.put(url, json={"address": "5 Road"}, auth=admin),
        await harness.put(
            f"/api/v1/subscribers/{other['id']}", json={"address": "6 Road"}, auth=admin
        ),
        await harness.post(f"/api/v1/cards/{card}/block", json={"reason": "lost"}, auth=admin),
        await harness.put(url, json={"restricted": True}, auth=admin),
    ):
        assert response.status_code == 200, response.text
    async with database.transaction() as tx:
        changes = {"note": (None, "for 5 Road")}
        await write_entry(tx, resource_type="transaction", resource_id=payment, changes=changes)

    async def list_entries(resource_id: str) -> list[dict[str, Any]]:
        response = await harness.get(LOGS_URL, params={"resource_id": resource_id}, auth=reader)
        entries: list[dict[str, Any]] = response.json()["data"]
        assert entries, resource_id
        return entries

    for resource_id in (restricted["id"], card, payment):
        for item in await list_entries(resource_id):
            assert all(pair == ["***", "***"] for pair in item["changes"].values())
            assert item["reason"] in (None, "***")
    assert "address" in (await list_entries(restricted["id"]))[1]["changes"]  # values masked
    assert (await list_entries(card))[0]["reason"] == "***"
    assert (await list_entries(other["id"]))[0]["changes"]["address"] == [None, "6 Road"]

    await harness.post(f"{url}/restricted-access", auth=reader)
    code = await harness.get_pending_code(restricted["phone_number"])
    verified = await harness.post(
        f"{url}/restricted-access/verify", json={"otp": code}, auth=reader
    )
    assert verified.status_code == 200
    addresses = [entry["changes"].get("address") for entry in await list_entries(restricted["id"])]
    assert [None, "5 Road"] in addresses
    assert (await list_entries(card))[0]["reason"] == "lost"
    assert (await list_entries(payment))[0]["changes"] == {"note": [None, "for 5 Road"]}


DAY_COUNT = 60
ENTRIES_PER_DAY = 200


async def _insert_entries(database: Database) -> None:
    await database.execute(
        """INSERT INTO audit_entries (id, occurred_at, event, actor, resource_type, result, changes)
           SELECT number, timestamptz '2026-01-01 00:00Z' + number * interval '1 day' / $2::integer,
                  'subscriber.updated', '{"id": "adm_1"}', 'subscriber', 'success', '{}'
           FROM generate_series(0, $1::integer * $2::integer - 1) AS number""",
        DAY_COUNT,
        ENTRIES_PER_DAY,
    )
    await database.execute("VACUUM ANALYZE audit_entries")


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        ({"from_": "2026-01-05", "to": "2026-01-05"}, 51),
        ({"to": "2026-01-02"}, 51),
        ({"from_": "2026-02-01", "to": "2026-02-02", "actor_id": "adm_1"}, 51),
        ({"from_": "2026-03-01T23:00:00Z"}, 8),
        ({"from_": "2026-03-03"}, 0),
    ],
)
async def test_period_query_reads_few_entries_outside_its_page(
    database: Database, period: dict[str, str], expected: int
) -> None:
    await _insert_entries(database)
    sql, values = build_page_query(AuditLogQuery(**period), ZoneInfo("UTC"))
    rows = await database.fetch(sql, *values)
    assert len(rows) == expected
    explainer: Any = QueryExplainer(database)
    await explainer.fetch(sql, *values)
    maximum = 3 * ENTRIES_PER_DAY
    assert max(count_rows_read(plan, "audit_entries") for plan in explainer.plans) < maximum
    assert {entry.to_record(row).occurred_at[:4] for row in rows} <= {"2026"}


async def test_names_of_records_are_returned_unless_the_subscriber_is_restricted(
    harness: Harness, database: Database, write_entry: WriteEntry
) -> None:
    reader, assignee = await harness.create_admin("C"), await harness.create_admin("S")
    admin_id = (await harness.get("/api/v1/admin/me", auth=assignee)).json()["id"]
    known, restricted = [await harness.create_subscriber() for _ in range(2)]
    async with database.transaction() as tx:
        for person in (known, restricted):
            changes = {"subscriber_id": (None, person["id"]), "assignee": (None, admin_id)}
            await write_entry(tx, changes=changes)
    url = f"/api/v1/subscribers/{restricted['id']}"
    await harness.put(url, json={"restricted": True}, auth=await harness.create_admin("A"))
    page = (await harness.get(LOGS_URL, auth=reader)).json()
    names = {record["id"]: record["name"] for record in page["names"]}
    assert names[known["id"]] == f"{known['first_name']} {known['last_name']}"
    assert admin_id in names and restricted["id"] not in names
