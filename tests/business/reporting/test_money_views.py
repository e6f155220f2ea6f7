"""Money views: overview flows, list totals, a merchant's account, agents' liquidity."""

from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from builders.participants import cash_in, cash_out, create_agent, create_sub_agent
from builders.payments import create_held_transfer, resolve_alert
from builders.payouts import create_bank_account, request_payout
from builders.reporting import create_sales, get_overview
from cases import each
from harness import Harness, HmacAuth
from tapgate.business.reporting import transaction_totals
from tapgate.sites.console.components.periods import PRESETS, resolve_preset
from tapgate_client import ids
from tapgate_client.schemas.transactions import FLOW_TYPES, TransactionType

TOTALS_URL = "/api/v1/transactions/totals"


async def get_json(harness: Harness, url: str, **query: str) -> dict[str, Any]:
    response = await harness.get(url, params=query, auth=await harness.create_admin("F"))
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def get_amounts(flows: list[dict[str, Any]]) -> dict[str, str]:
    return {flow["flow"]: flow["amount"] for flow in flows}


async def test_overview_separates_flows_of_money(harness: Harness) -> None:
    pos, _ = await create_sales(harness)
    agent = await create_agent(harness, balance="500")
    assert (await cash_in(harness, agent, pos.customer, "30")).status_code == 200
    overview = await get_overview(harness)
    assert get_amounts(overview["flows"]) == {
        "payments": "100.00",
        "money_in": "30.00",
        "money_out": "0.00",
        "refunds": "40.00",
        "internal": "1500.00",  # the customer's initial deposit, and the agent's float
    }
    assert sum(float(bucket["payments"]) for bucket in overview["buckets"]) == 100


async def test_overview_compares_with_the_previous_period(harness: Harness) -> None:
    await create_sales(harness)
    harness.advance_clock(days=7, minutes=30)
    overview = await get_overview(harness, period="week")
    assert get_amounts(overview["flows"])["payments"] == "0.00"
    previous = overview["previous"]
    assert get_amounts(previous["flows"])["payments"] == "100.00"
    assert previous["totals"]["count"] == 3
    harness.advance_clock(days=7)
    overview = await get_overview(harness, period="week")
    assert overview["previous"]["totals"]["count"] == 0
    assert previous["from"] < previous["to"] < overview["to"]


@each(
    "query, count, amount",
    [
        ({"flow": "payments"}, 2, "100.00"),
        ({"flow": "payments", "period": "yes"}, 2, "100.00"),
        ({"type": "refund"}, 1, "40.00"),
        ({"status": "partially_refunded", "period": "yes"}, 1, "100.00"),
        ({"status": "failed", "period": "yes"}, 1, "0.00"),
        ({"user": "yes"}, 3, "140.00"),
        ({"period": "yes"}, 4, "1140.00"),
        ({}, 4, "1140.00"),
    ],
)
async def test_totals_of_a_list_cover_its_completed_transactions(
    harness: Harness, query: dict[str, str], count: int, amount: str
) -> None:
    if not await harness.database.fetchval("SELECT count(*) FROM processors"):
        pos, _ = await create_sales(harness)
        assert (await pos.pay("5000.00", pin="4071")).status_code in (402, 403)
    processor = ids.encode(
        ids.PROCESSOR, await harness.database.fetchval("SELECT id FROM processors")
    )
    today = harness.services.clock().date().isoformat()
    filters = {name: value for name, value in query.items() if name not in ("period", "user")}
    if "period" in query:
        filters |= {"from": today, "to": today}
    if "user" in query:
        filters["user_id"] = processor
    totals = await get_json(harness, TOTALS_URL, **filters)
    assert (totals["count"], totals["amount"], totals["is_complete"]) == (count, amount, True)


async def test_totals_cover_only_the_newest_transactions_of_a_long_list(
    harness: Harness, monkeypatch: Any
) -> None:
    pos, processor = await create_sales(harness)
    await pos.pay("7.00")
    monkeypatch.setattr(transaction_totals, "MAX_SUMMED", 1)
    totals = await get_json(harness, TOTALS_URL, user_id=processor)
    assert totals == {
        "count": 1,
        "amount": "7.00",
        "fees": "0.07",
        "currency": "SLE",
        "is_complete": False,
    }


async def test_flow_filters_the_list_of_transactions(harness: Harness) -> None:
    _, processor = await create_sales(harness)
    for filters in ({}, {"user_id": processor}):
        listed = await get_json(harness, "/api/v1/transactions", flow="refunds", **filters)
        assert [item["type"] for item in listed["data"]] == ["refund"]
    internal = await get_json(harness, "/api/v1/transactions", flow="internal")
    assert {item["type"] for item in internal["data"]} <= set(FLOW_TYPES["internal"])
    assert internal["data"]


async def test_summary_of_a_processor_adds_up_its_account(harness: Harness) -> None:
    pos, processor = await create_sales(harness)
    await pos.pay("10.00")
    admin = await harness.create_admin("A")
    response = await harness.post(
        f"/api/v1/processors/{processor}/transfer",
        json={"subscriber_id": pos.customer["id"], "amount": "20", "request_id": "payout"},
        auth=admin,
    )
    assert response.status_code == 200, response.text
    summary = await get_json(harness, f"/api/v1/processors/{processor}/summary")
    totals = summary["totals"]
    assert (totals["sales"], totals["sales_count"]) == ("110.00", 2)
    assert (totals["refunds"], totals["refunds_count"]) == ("40.00", 1)
    assert (totals["payouts"], totals["payouts_count"]) == ("20.00", 1)
    assert totals["net"] == summary["balance"]
    assert float(totals["net"]) == 110 - 40 - 20 - float(totals["fees"])
    (day,) = summary["days"]
    assert {**totals, "date": day["date"]} == day
    earlier = await get_json(
        harness,
        f"/api/v1/processors/{processor}/summary",
        **{"from": "2025-06-01", "to": "2025-06-30"},
    )
    assert (earlier["days"], earlier["totals"]["net"]) == ([], "0.00")


@each(
    "query, field",
    [
        ({"from": "2024-01-01", "to": "2025-12-31"}, "from"),
        ({"from": "2026-02-02", "to": "2026-02-01"}, "from"),
        ({"from": "yesterday"}, "from"),
    ],
)
async def test_summary_rejects_invalid_periods(
    harness: Harness, query: dict[str, str], field: str
) -> None:
    processor = ids.encode(ids.PROCESSOR, 1 << 58)
    response = await harness.get(
        f"/api/v1/processors/{processor}/summary",
        params=query,
        auth=await harness.create_admin("F"),
    )
    assert (response.status_code, list(response.json()["details"]["fields"])) == (422, [field])


async def test_totals_exclude_a_payment_while_it_is_held(harness: Harness) -> None:
    alert, sender, _ = await create_held_transfer(harness)
    totals = await get_json(harness, TOTALS_URL, status="under_review")
    assert (totals["count"], totals["amount"]) == (1, "0.00")
    before = await get_json(harness, TOTALS_URL, user_id=sender)
    await resolve_alert(harness, alert["id"], transaction_decision="release")
    after = await get_json(harness, TOTALS_URL, user_id=sender)
    assert float(after["amount"]) - float(before["amount"]) == pytest.approx(100.01)


async def test_liquidity_lists_agents_who_run_out_first(harness: Harness) -> None:
    customer = await harness.create_subscriber(balance="500")
    top = await create_agent(harness, balance="800")
    busy = await create_sub_agent(harness, top, balance="170")
    quiet = await create_agent(harness, balance="10")
    assert (await cash_in(harness, busy, customer, "100")).status_code == 200
    assert (await cash_in(harness, top, customer, "100")).status_code == 200
    assert (await cash_out(harness, top, customer, "30")).status_code == 200
    liquidity = await get_json(harness, "/api/v1/agents/liquidity")
    rows = {row["agent_id"]: row for row in liquidity["data"]}
    assert list(rows) == [busy["id"], top["id"], quiet["id"]]
    assert rows[busy["id"]]["float_balance"] == "70.00"
    assert rows[busy["id"]]["daily_outflow"] == "14.29"
    assert rows[busy["id"]]["days_of_cover"] == 4.9
    assert rows[top["id"]]["days_of_cover"] == 73.0
    assert rows[quiet["id"]]["days_of_cover"] is None
    assert (liquidity["agents"], liquidity["float_balance"]) == (3, "810.00")
    assert [liquidity[f"within_{days}"] for days in ("1_day", "3_days", "7_days")] == [0, 0, 1]
    network = await get_json(harness, "/api/v1/agents/liquidity", parent_agent_id=top["id"])
    assert [row["agent_id"] for row in network["data"]] == [busy["id"], top["id"]]
    harness.advance_clock(days=8)
    liquidity = await get_json(harness, "/api/v1/agents/liquidity", limit="1")
    assert [row["days_of_cover"] for row in liquidity["data"]] == [None]
    assert liquidity["agents"] == 3


@each(
    "preset, expected",
    [
        ("day", {"from": "2026-02-28T02:00:00.000Z"}),
        ("today", {"from": "2026-03-01", "to": "2026-03-01"}),
        ("yesterday", {"from": "2026-02-28", "to": "2026-02-28"}),
        ("week", {"from": "2026-02-23", "to": "2026-03-01"}),
        ("month", {"from": "2026-01-31", "to": "2026-03-01"}),
        ("this_month", {"from": "2026-03-01", "to": "2026-03-01"}),
        ("last_month", {"from": "2026-02-01", "to": "2026-02-28"}),
        ("forever", {}),
        (None, {}),
    ],
)
def test_preset_covers_days_in_the_platform_time_zone(
    preset: str | None, expected: dict[str, str]
) -> None:
    now = datetime(2026, 3, 1, 1, 30, tzinfo=UTC)
    assert resolve_preset(preset, now, ZoneInfo("Africa/Freetown")) == expected
    assert preset in (*PRESETS, "forever", None)


def test_every_type_belongs_to_one_flow() -> None:
    assert sorted(chain.from_iterable(FLOW_TYPES.values())) == sorted(TransactionType)


async def test_balances_of_a_list_are_added_up(harness: Harness) -> None:
    await create_sales(harness)
    agent = await create_agent(harness, balance="500")
    await create_agent(harness, balance="1700")
    totals = await get_json(harness, "/api/v1/processors/totals", status="active")
    summary = await get_json(harness, "/api/v1/processors", status="active")
    assert totals == {"count": 1, "balance": summary["data"][0]["balance"], "currency": "SLE"}
    assert (await get_json(harness, "/api/v1/processors/totals", status="suspended"))["count"] == 0
    url = "/api/v1/agents/totals"
    assert (await get_json(harness, url))["balance"] == "2200.00"
    low = await get_json(harness, url, low_float="true")
    assert (low["count"], low["balance"]) == (1, "500.00")
    network = await get_json(harness, url, parent_agent_id=agent["id"])
    assert (network["count"], network["balance"]) == (0, "0.00")
    response = await harness.get(
        "/api/v1/admin/partners/totals", auth=await harness.create_admin("A")
    )
    partners = await harness.get("/api/v1/admin/partners", auth=await harness.create_admin("A"))
    assert response.json()["count"] == len(partners.json()["data"])


async def test_nets_of_terminals_add_up_to_what_there_was_to_pay_out(harness: Harness) -> None:
    pos, processor = await create_sales(harness)
    url, admin = f"/api/v1/processors/{processor}", await harness.create_admin("A")
    added = await harness.post(f"{url}/terminals", json={"name": "Till 1"}, auth=admin)
    till = added.json()
    key = HmacAuth(till["api_key_id"], till["hmac_secret"])
    for amount in ("20.00", "30.00"):
        assert (await pos.pay(amount, auth=key)).status_code == 200
    account = await create_bank_account(harness, processor)
    await request_payout(harness, processor, amount="50", bank_account_id=account["id"])
    summary = await get_json(harness, f"{url}/summary", terminals="true")
    rows = {row["terminal_id"]: row for row in summary["terminals"]}
    assert rows.keys() == {None, till["terminal"]["id"]}
    of_till = rows[till["terminal"]["id"]]
    assert (of_till["sales_count"], of_till["sales"], of_till["refunds"]) == (2, "50.00", "0.00")
    assert Decimal(of_till["net"]) == 50 - Decimal(of_till["fees"])
    assert (rows[None]["sales"], rows[None]["refunds"]) == ("100.00", "40.00")
    totals = summary["totals"]
    net = sum(Decimal(row["net"]) for row in rows.values())
    assert net == Decimal(totals["net"]) + Decimal(totals["payouts"])
    assert Decimal(totals["payouts"]) >= 50
    assert "terminals" not in await get_json(harness, f"{url}/summary")
    period = {"from": "2026-01-01", "to": "2026-03-01", "terminals": "true"}
    too_long = await harness.get(f"{url}/summary", params=period, auth=admin)
    assert too_long.status_code == 422
    assert "31 days" in too_long.json()["details"]["fields"]["from"]
