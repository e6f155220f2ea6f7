"""Account statements: content, access and validation."""

from contextlib import asynccontextmanager
from datetime import date, timedelta
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from builders.payments import (
    create_processor,
    decide_review,
    set_kyc_level,
    submit_and_get_id,
    submit_command,
    submit_refund,
)
from builders.statements import URL, build_request, get_statement, get_today
from business.payments.transactions.large_history import (
    BUSY_ACCOUNT_ID,
    NOW,
    QueryExplainer,
    count_rows_read,
    insert_transactions,
    walk_plan,
)
from cases import each
from harness import PIN, WRONG_PIN, BearerAuth, Harness
from tapgate.business.payments.wallets.statements.queries import load_activity, sum_movements
from tapgate.ledger import chart
from tapgate.runtime.store.database import Database
from tapgate.server.gateway import build_openapi_document


@pytest.fixture
async def key(harness: Harness) -> BearerAuth:
    return await harness.create_api_key("payments:read")


async def get_error(
    harness: Harness, key: Any, subscriber: dict[str, Any], **fields: Any
) -> tuple[int, dict[str, Any]]:
    response = await harness.post(URL, json=build_request(harness, subscriber, **fields), auth=key)
    return response.status_code, response.json()


async def test_statement_lists_transactions_fees_refunds_and_totals(
    harness: Harness, key: BearerAuth
) -> None:
    holder = await harness.create_subscriber(balance="1000")
    recipient = await harness.create_subscriber(first_name="Mohamed", last_name="Sesay")
    merchant = await create_processor(harness)
    sent = await submit_and_get_id(
        harness, chart.TRANSFER_P2P, holder, recipient, "100", context={"memo": "School fees"}
    )
    payment = await submit_and_get_id(
        harness,
        chart.POS_PAYMENT,
        await harness.create_card(holder["id"]),
        merchant,
        "50",
        context={"merchant_name": "Corner Shop"},
    )
    await submit_command(harness, chart.TRANSFER_P2P, holder, recipient, "5000")  # declined
    refund = await submit_refund(harness, payment, merchant, "20")
    statement = await get_statement(harness, key, holder)
    assert statement.pop("statement_id").startswith("stm_")
    assert statement.pop("generated_at").endswith("Z")
    entries = statement.pop("entries")
    assert statement == {
        "subscriber": {"id": holder["id"], "name": "Aminata Kamara"},
        "currency": "SLE",
        "period": {"from": get_today(harness), "to": get_today(harness)},
        "opening_balance": "0.00",
        "closing_balance": "868.50",
        "total_credits": "1020.00",
        "total_debits": "151.50",
        "transaction_count": 4,
    }
    declared = build_openapi_document()["components"]["schemas"]["StatementEntryType"]["enum"]
    assert {entry["type"] for entry in entries} <= set(declared)
    for entry in entries:
        assert entry.pop("date") == get_today(harness)
    assert entries[0].pop("transaction_id").startswith("txn_")
    assert entries == [
        {
            "type": "transfer",
            "description": "Transfer from Platform",
            "debit": "0.00",
            "credit": "1000.00",
            "balance": "1000.00",
        },
        {
            "transaction_id": sent,
            "type": "transfer_p2p",
            "description": "Transfer to Mohamed S.: School fees",
            "debit": "100.00",
            "credit": "0.00",
            "balance": "900.00",
        },
        {
            "transaction_id": sent,
            "type": "fee",
            "description": "Transfer fee",
            "debit": "1.50",
            "credit": "0.00",
            "balance": "898.50",
        },
        {
            "transaction_id": payment,
            "type": "pos_payment",
            "description": "Card payment to Corner Shop",
            "debit": "50.00",
            "credit": "0.00",
            "balance": "848.50",
        },
        {
            "transaction_id": refund,
            "type": "refund",
            "description": "Refund from Kamara Public",
            "debit": "0.00",
            "credit": "20.00",
            "balance": "868.50",
        },
    ]


async def test_held_transaction_appears_in_the_statement_only_after_release(
    harness: Harness, key: BearerAuth
) -> None:
    holder, recipient = await harness.create_subscriber(), await harness.create_subscriber()
    for subscriber in (holder, recipient):
        await set_kyc_level(harness, subscriber["id"], 3)
    await harness.deposit(holder["id"], "900000")
    held = await submit_and_get_id(harness, chart.TRANSFER_P2P, holder, recipient, "600000")
    assert (await get_statement(harness, key, recipient))["entries"] == []
    later = await submit_and_get_id(harness, chart.TRANSFER_P2P, holder, recipient, "100")
    statement = await get_statement(harness, key, holder)
    assert [entry["transaction_id"] for entry in statement["entries"]][1:] == [later, later]
    await decide_review(harness, held, release=True)
    statement = await get_statement(harness, key, holder)
    assert [entry["transaction_id"] for entry in statement["entries"]][1:] == [
        later,
        later,
        held,
        held,
    ]
    assert statement["closing_balance"] == "296898.50"


async def test_transaction_rejected_in_review_does_not_appear_in_the_statement(
    harness: Harness, key: BearerAuth
) -> None:
    holder, recipient = await harness.create_subscriber(), await harness.create_subscriber()
    for subscriber in (holder, recipient):
        await set_kyc_level(harness, subscriber["id"], 3)
    await harness.deposit(holder["id"], "900000")
    held = await submit_and_get_id(harness, chart.TRANSFER_P2P, holder, recipient, "600000")
    await decide_review(harness, held, release=False)
    statement = await get_statement(harness, key, holder)
    assert (len(statement["entries"]), statement["closing_balance"]) == (1, "900000.00")


async def test_statement_days_use_the_platform_timezone(harness: Harness, key: BearerAuth) -> None:
    holder = await harness.create_subscriber(balance="5")
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):  # always on different calendar days
        harness.services.settings = harness.services.settings.replace(timezone=ZoneInfo(zone))
        day = date.fromisoformat(get_today(harness))
        statement = await get_statement(harness, key, holder)
        assert [entry["date"] for entry in statement["entries"]] == [day.isoformat()]
        for offset, opening in ((-1, "0.00"), (1, "5.00")):
            adjacent_day = (day + timedelta(days=offset)).isoformat()
            statement = await get_statement(
                harness, key, holder, from_date=adjacent_day, to_date=adjacent_day
            )
            assert (statement["entries"], statement["opening_balance"]) == ([], opening)


@each(
    "fields, field",
    [
        ({"from_date": "2026-02-01", "to_date": "2026-01-31"}, "from_date"),
        ({"from_date": "2025-01-01", "to_date": "2026-01-02"}, "to_date"),
        ({"from_date": "2026-02-30"}, "from_date"),
        ({"from_date": "0001-01-01", "to_date": "0001-01-01"}, "from_date"),
        ({"from_date": "9998-12-31", "to_date": "9999-12-31"}, "to_date"),
        ({"format": "xml"}, "format"),
        ({"pin": "12"}, "pin"),
    ],
)
async def test_invalid_statement_request_is_rejected_with_its_field(
    harness: Harness, key: BearerAuth, fields: dict[str, Any], field: str
) -> None:
    status, body = await get_error(harness, key, {"id": "sub_0000000000001"}, **fields)
    assert (status, body["code"]) == (422, "VALIDATION_FAILED")
    assert list(body["details"]["fields"]) == [field]


async def test_statement_can_cover_a_leap_year_and_future_dates(
    harness: Harness, key: BearerAuth
) -> None:
    holder = await harness.create_subscriber(balance="5")
    leap_year = {"from_date": "2024-01-01", "to_date": "2024-12-31"}
    assert (await get_statement(harness, key, holder, **leap_year))["transaction_count"] == 0
    future = {"from_date": "9998-01-01", "to_date": "9998-12-31"}
    assert (await get_statement(harness, key, holder, **future))["opening_balance"] == "5.00"


async def test_statement_of_an_unknown_subscriber_is_not_found(
    harness: Harness, key: BearerAuth
) -> None:
    for missing in ("sub_0000000000001", "acc_0000000000001", "x"):
        status, body = await get_error(harness, key, {"id": missing})
        assert (status, body["code"]) == (404, "SUBSCRIBER_NOT_FOUND")


async def test_optional_pin_is_verified_and_failures_are_counted(
    harness: Harness, key: BearerAuth
) -> None:
    holder = await harness.create_subscriber()
    for remaining in (2, 1):
        status, body = await get_error(harness, key, holder, pin=WRONG_PIN)
        assert (status, body["code"]) == (400, "INVALID_PIN")
        assert body["details"] == {"attempts_remaining": remaining}
    assert (await get_statement(harness, key, holder, pin=PIN))["entries"] == []
    for _ in range(3):
        await get_error(harness, key, holder, pin=WRONG_PIN)
    status, body = await get_error(harness, key, holder, pin=PIN)
    assert (status, body["code"]) == (403, "ACCOUNT_LOCKED")
    assert (await get_statement(harness, key, holder))["entries"] == []


async def test_closed_subscriber_gets_a_statement_but_a_pin_is_rejected(
    harness: Harness, key: BearerAuth
) -> None:
    holder = await harness.create_subscriber()
    response = await harness.post(
        f"/api/v1/subscribers/{holder['id']}/close",
        json={"reason": "Moved away"},
        auth=await harness.create_admin("A"),
    )
    assert response.status_code == 200
    assert (await get_statement(harness, key, holder))["entries"] == []
    status, body = await get_error(harness, key, holder, pin=PIN)
    assert (status, body["code"]) == (409, "NOT_CLOSABLE")


#: About 150 of the 200,000 transactions belong to this account.
WALLET_ID = 500


class ExplainingDatabase(QueryExplainer):
    """Fake database and connection that explains queries instead of returning rows."""

    @asynccontextmanager
    async def snapshot(self, **_: Any) -> Any:
        yield self

    #: Ignores settings, which are sent ahead, because the plans must be good without them.
    _protocol = SimpleNamespace(pipeline_transport=SimpleNamespace(ahead=b""))


async def test_statement_reads_only_its_wallet_since_the_start_of_the_period(
    database: Database,
) -> None:
    # With few payees, a row sample suggests that each receives a large part of them.
    await insert_transactions(database, payee_count=10)
    explainer: Any = ExplainingDatabase(database)
    for days, max_rows in ((365, 200), (30, 25)):
        explainer.plans.clear()
        start = NOW - timedelta(days=days)
        await load_activity(explainer, WALLET_ID, start, start + timedelta(days=30))
        # End of the archive, released transactions since the end and since the start of the period,
        # closing balance and movements, each planned twice.
        assert len(explainer.plans) == 10
        for plan in explainer.plans[6:]:
            assert count_rows_read(plan) <= max_rows
            assert count_rows_read(plan, "entries") <= max_rows
        assert count_rows_read(explainer.plans[-1]) > 0
        # No transaction is read twice, except those within a day of the period's end.
        assert sum(map(count_rows_read, explainer.plans[6::2])) <= max_rows


async def test_daily_sums_of_a_busy_account_scan_entries_once_per_day_and_type(
    database: Database,
) -> None:
    await insert_transactions(database)
    explainer: Any = ExplainingDatabase(database)
    await sum_movements(
        explainer, BUSY_ACCOUNT_ID, NOW - timedelta(days=30), NOW, ZoneInfo("Africa/Freetown")
    )
    for plan in explainer.plans[-2:]:
        assert 8_000 < count_rows_read(plan, "entries") < 10_000
        scans = [
            node for node in walk_plan(plan) if node.get("Relation Name", "").startswith("entries")
        ]
        assert max(node["Actual Loops"] for node in scans) <= 2 * 31
