"""Transaction lists: filters, pagination, periods and rows read from a large history."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from builders.payments import create_processor, submit_and_get_id, submit_command
from business.payments.transactions.large_history import (
    BUSY_ACCOUNT_ID,
    NOW,
    QueryExplainer,
    count_rows_read,
    insert_transactions,
)
from cases import each
from harness import BearerAuth, Harness
from tapgate.auth.principals import Principal
from tapgate.business.payments.transactions import queries
from tapgate.business.payments.transactions.queries import TransactionQuery
from tapgate.core.id_generator import first_id_at
from tapgate.ledger import chart
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.clock import format_rfc3339
from tapgate_client.schemas.transactions import MoneyFlow, TransactionFilters

URL = "/api/v1/transactions"


async def get_page(harness: Harness, caller: Any, **filters: str) -> dict[str, Any]:
    response = await harness.get(URL, params=filters, auth=caller)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def list_ids(harness: Harness, caller: Any, **filters: str) -> list[str]:
    return [record["id"] for record in (await get_page(harness, caller, **filters))["data"]]


async def get_error(
    harness: Harness, caller: Any, url: str = URL, **filters: str
) -> tuple[int, str]:
    response = await harness.get(url, params=filters, auth=caller)
    return response.status_code, response.json()["code"]


@pytest.fixture
async def key(harness: Harness) -> BearerAuth:
    return await harness.create_api_key("payments:read")


async def test_filters_narrow_the_list(harness: Harness, key: BearerAuth) -> None:
    payer = await harness.create_subscriber(balance="1000")
    merchant = await create_processor(harness)
    recipient = await harness.create_subscriber()
    card = await harness.create_card(payer["id"])
    other_card = await harness.create_card(payer["id"])
    recipient_card = await harness.create_card(recipient["id"])
    by_card = await submit_and_get_id(harness, chart.POS_PAYMENT, card, merchant, "10")
    by_other = await submit_and_get_id(harness, chart.POS_PAYMENT, other_card, merchant, "10")
    sent = await submit_and_get_id(harness, chart.TRANSFER_P2P, payer, recipient_card, "10")
    declined = await submit_command(harness, chart.TRANSFER_P2P, payer, recipient_card, "9000")
    assert declined.result is not None
    failed = ids.encode(ids.TRANSACTION, declined.result.transaction_id)
    for filters, expected in [
        ({}, [failed, sent, by_other, by_card]),
        ({"card_serial": card}, [by_card]),
        ({"card_serial": recipient_card}, [failed, sent]),
        ({"type": "transfer_p2p"}, [failed, sent]),
        ({"status": "failed"}, [failed]),
        ({"failure_code": "INSUFFICIENT_FUNDS"}, [failed]),
        ({"failure_code": "INSUFFICIENT_FUNDS", "user_id": merchant}, []),
        ({"failure_code": "CARD_BLOCKED"}, []),
        ({"status": "completed", "type": "transfer_p2p"}, [sent]),
        ({"user_id": recipient["id"]}, [failed, sent]),
        ({"user_id": merchant}, [by_other, by_card]),
        ({"user_id": payer["id"], "card_serial": other_card}, [by_other]),
        ({"user_id": payer["id"], "card_serial": recipient_card}, [failed, sent]),
        ({"user_id": recipient["id"], "card_serial": card}, []),
        ({"card_serial": "TAP-NOBODY"}, []),
        ({"user_id": "sub_0000000000001"}, []),
        ({"user_id": "prc_0000000000001", "card_serial": card}, []),
    ]:
        records = await list_ids(harness, key, **filters)
        assert [id for id in records if id in (failed, sent, by_other, by_card)] == expected
        if filters:
            assert len(records) == len(expected), filters


@each(
    "filters",
    [
        {"user_id": "nobody"},
        {"user_id": "txn_0000000000001"},
        {"user_id": "sub_1"},
        {"card_serial": "a b"},
        {"type": "gift"},
        {"status": "COMPLETED"},
        {"from": "yesterday"},
        {"to": "2026-02-30"},
        {"limit": "101"},
        {"cursor": "x"},
    ],
)
async def test_invalid_filter_values_are_rejected(
    harness: Harness, key: BearerAuth, filters: Mapping[str, str]
) -> None:
    assert await get_error(harness, key, **filters) == (422, "VALIDATION_FAILED")


@pytest.mark.parametrize("filters", [{}, {"user": "payer"}, {"user": "merchant"}, {"card": "card"}])
async def test_pagination_returns_each_transaction_once_under_concurrent_inserts(
    harness: Harness, key: BearerAuth, filters: Mapping[str, str]
) -> None:
    payer = await harness.create_subscriber(balance="1000")
    merchant = await create_processor(harness)
    card = await harness.create_card(payer["id"])
    payments = [
        await submit_and_get_id(harness, chart.POS_PAYMENT, card, merchant, "1") for _ in range(7)
    ]
    names = {"payer": payer["id"], "merchant": merchant, "card": card}
    query = {
        {"user": "user_id", "card": "card_serial"}[name]: names[value]
        for name, value in filters.items()
    }
    listed, cursor = [], {}
    while True:
        response = await get_page(harness, key, limit="2", **query, **cursor)
        listed += [record["id"] for record in response["data"]]
        assert response["has_more"] == (response["next_cursor"] is not None)
        if not response["has_more"]:
            break
        cursor = {"cursor": response["next_cursor"]}
        await submit_and_get_id(harness, chart.POS_PAYMENT, card, merchant, "1")
    assert [id for id in listed if id in payments] == payments[::-1]
    assert len(set(listed)) == len(listed)


async def test_oldest_transactions_can_be_listed_first(harness: Harness, key: BearerAuth) -> None:
    subscriber = await harness.create_subscriber()
    for amount in ("1", "2", "3", "4", "5"):
        await harness.deposit(subscriber["id"], amount)
    for filters in ({}, {"user_id": subscriber["id"]}, {"from": "2025-01-01", "to": "9998-12-31"}):
        listed, cursor = [], {}
        while True:
            page = await get_page(harness, key, order="oldest", limit="2", **filters, **cursor)
            listed += [record["amount"] for record in page["data"]]
            if not page["has_more"]:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert listed == ["1.00", "2.00", "3.00", "4.00", "5.00"]


async def test_largest_transactions_can_be_listed_first(harness: Harness, key: BearerAuth) -> None:
    subscriber = await harness.create_subscriber()
    for amount in ("2", "5", "1", "5", "3"):
        await harness.deposit(subscriber["id"], amount)
    by_time = await list_ids(harness, key, order="oldest")
    largest_first = [by_time[number] for number in (3, 1, 4, 0, 2)]
    for filters in ({}, {"user_id": subscriber["id"]}, {"from": "2025-01-01", "to": "9998-12-31"}):
        listed, cursor = [], {}
        while True:
            page = await get_page(harness, key, order="amount", limit="2", **filters, **cursor)
            listed += [record["id"] for record in page["data"]]
            if not page["has_more"]:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert listed == largest_first
    assert await list_ids(harness, key, order="amount", status="failed") == []


async def test_parties_of_a_page_are_looked_up_one_by_one(database: Database) -> None:
    """Even if PostgreSQL expects that it is cheaper to read all accounts."""
    async with database.connection() as connection:
        await connection.execute("SET enable_nestloop = off")
        rows = await connection.fetch(f"EXPLAIN {queries.SELECT_BY_IDS}", [1], 1, 1)
        await connection.execute("RESET enable_nestloop")
    plan = "\n".join(row[0] for row in rows)
    assert plan.count("Nested Loop") == 2
    assert "Merge" not in plan and "Hash" not in plan


async def test_only_the_newest_matching_transactions_are_sorted_by_amount(
    harness: Harness, key: BearerAuth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MAX_SORTED", 2)
    subscriber = await harness.create_subscriber()
    for amount in ("9", "1", "2"):
        await harness.deposit(subscriber["id"], amount)
    page = await get_page(harness, key, order="amount")
    assert [record["amount"] for record in page["data"]] == ["2.00", "1.00"]


async def test_cursor_of_another_order_is_rejected(harness: Harness, key: BearerAuth) -> None:
    subscriber = await harness.create_subscriber()
    for _ in range(2):
        await harness.deposit(subscriber["id"], "1")
    for order, other in (("newest", "amount"), ("amount", "newest"), ("amount", "oldest")):
        page = await get_page(harness, key, order=order, limit="1")
        error = await get_error(harness, key, order=other, cursor=page["next_cursor"])
        assert error == (422, "VALIDATION_FAILED")


async def test_export_is_not_sorted_by_amount(harness: Harness, key: BearerAuth) -> None:
    error = await get_error(harness, key, f"{URL}/export", order="amount")
    assert error == (422, "VALIDATION_FAILED")


async def test_period_filter_is_exact_to_the_millisecond(harness: Harness, key: BearerAuth) -> None:
    subscriber = await harness.create_subscriber()
    for _ in range(3):
        await harness.deposit(subscriber["id"], "1")
        await asyncio.sleep(0.005)
    records = (await get_page(harness, key, user_id=subscriber["id"]))["data"]
    newest, middle, oldest = (record["created_at"] for record in records)

    async def list_times_in(**period: str) -> list[str]:
        listed = await list_ids(harness, key, user_id=subscriber["id"], **period)
        assert await list_ids(harness, key, **period) == listed
        return [record["created_at"] for record in records if record["id"] in listed]

    assert await list_times_in(**{"from": middle}) == [newest, middle]
    assert await list_times_in(to=middle) == [middle, oldest]
    assert await list_times_in(**{"from": middle, "to": middle}) == [middle]
    assert await list_times_in(**{"from": newest[:10], "to": newest[:10]}) == [
        newest,
        middle,
        oldest,
    ]
    before = format_rfc3339(datetime.now(UTC) - timedelta(hours=3))
    assert await list_times_in(to=before) == []
    assert await list_times_in(**{"from": "1000-01-01", "to": "9998-12-31"}) == [
        newest,
        middle,
        oldest,
    ]


async def test_dates_use_the_platform_timezone(harness: Harness, key: BearerAuth) -> None:
    subscriber = await harness.create_subscriber(balance="1")
    (record,) = (await get_page(harness, key, user_id=subscriber["id"]))["data"]
    moment = datetime.fromisoformat(record["created_at"])
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):  # always on different calendar days
        settings = harness.services.settings
        harness.services.settings = settings.replace(timezone=ZoneInfo(zone))
        day = moment.astimezone(ZoneInfo(zone)).date()
        for filter_day, expected in ((day, [record["id"]]), (day + timedelta(days=1), [])):
            bound = filter_day.isoformat()
            period = {"from": bound, "to": bound}
            assert await list_ids(harness, key, user_id=subscriber["id"], **period) == expected


CALLERS = (
    Principal(kind="api_key", id="key_1", name="Shop"),
    Principal(kind="admin", id="adm_1", name="Ada", admin_id=1),
)


def build_scope(*accounts: int, card: str | None = None) -> TransactionQuery:
    scope = TransactionQuery()
    if card is not None:
        scope.include_card(card, accounts[0])
    else:
        scope.include_accounts(accounts)
    return scope


async def count_rows_read_by(
    database: Database,
    caller: Principal,
    filters: TransactionFilters,
    *accounts: int,
    card: str | None = None,
) -> int:
    recorder: Any = QueryExplainer(database)
    await queries.list_page(
        recorder,
        build_scope(*accounts, card=card),
        filters,
        caller,
        now=NOW,
        zone=UTC,  # type: ignore[arg-type]
    )
    return max(map(count_rows_read, recorder.plans))


async def test_page_reads_a_bounded_number_of_rows(database: Database) -> None:
    await insert_transactions(database)
    middle = first_id_at(NOW - timedelta(days=180))
    newest = TransactionFilters(limit=50)
    older = TransactionFilters(limit=50, cursor=ids.encode("cur_", middle))
    month = TransactionFilters(limit=50, from_="2025-10-01", to="2025-10-31")
    oldest = TransactionFilters(limit=50, order="oldest")
    for caller in CALLERS:
        for filters in (newest, older, month, oldest):
            assert await count_rows_read_by(database, caller, filters) < 400
            assert await count_rows_read_by(database, caller, filters, BUSY_ACCOUNT_ID) < 600
            assert await count_rows_read_by(database, caller, filters, 500) < 600
            assert await count_rows_read_by(database, caller, filters, 500, 501) < 900
        actual_count = await count_rows_read_by(
            database, caller, TransactionFilters(type="partner_deposit")
        )
        assert actual_count < 400
        assert await count_rows_read_by(database, caller, TransactionFilters(status="failed")) < 400
        for flow in MoneyFlow:
            assert await count_rows_read_by(database, caller, TransactionFilters(flow=flow)) < 900
        count = await count_rows_read_by(
            database, caller, TransactionFilters(failure_code="CARD_BLOCKED")
        )
        assert count < 400
        assert await count_rows_read_by(database, caller, newest, 500, card="TAP-498") < 900
