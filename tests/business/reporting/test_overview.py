"""Overview endpoint: totals, buckets, balances, alerts and engine metrics."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest

from builders.payments import ALERTS_URL, PosDriver, create_held_transfer, resolve_alert
from builders.reporting import URL, get_overview
from cases import each
from harness import Harness
from tapgate.business.reporting.periods import build_period
from tapgate.business.reporting.rollups import RollupCompactor
from tapgate.ledger.effects.rollups import get_bucket_start
from tapgate_client.schemas.reporting import OverviewPeriod, OverviewQuery

SUMMED_FIELDS = ("count", "completed", "failed", "under_review")


async def test_empty_platform_returns_zero_totals(harness: Harness) -> None:
    overview = await get_overview(harness)
    assert overview["totals"] == {
        "count": 0,
        "completed": 0,
        "failed": 0,
        "under_review": 0,
        "amount": "0.00",
        "fees": "0.00",
        "success_rate": None,
    }
    assert (overview["by_type"], overview["declines"]) == ([], [])
    assert overview["ledger"]["last_proof"] is None
    assert overview["engine"]["batches"]["p99_ms"] is None
    assert overview["standing"]["money"]["wallets"] == "0.00"


async def test_totals_and_declines_reflect_transactions(harness: Harness) -> None:
    pos = await PosDriver.create(harness, balance="1000")
    payment = (await pos.pay("100.00")).json()
    assert (await pos.pay("5000.00", pin="4071")).status_code in (402, 403)
    assert (await pos.refund(payment["transaction_id"], "40.00")).status_code == 200
    overview = await get_overview(harness)
    by_type = {totals["type"]: totals for totals in overview["by_type"]}
    assert by_type["pos_payment"] == {
        "type": "pos_payment",
        "count": 2,
        "completed": 1,
        "failed": 1,
        "under_review": 0,
        "amount": "100.00",
        "fees": "1.00",
    }
    assert by_type["refund"]["amount"] == "40.00"
    assert overview["totals"]["count"] == 4
    assert sum(totals["count"] for totals in overview["by_type"]) == 4
    assert overview["totals"]["success_rate"] == 0.75
    assert overview["totals"]["amount"] == "1140.00"  # includes the initial deposit of 1000
    (decline,) = overview["declines"]
    assert decline["count"] == 1
    listed = await harness.get(
        "/api/v1/transactions", params={"status": "failed"}, auth=await harness.create_admin()
    )
    expected = [decline["code"]]
    assert [transaction["failure_code"] for transaction in listed.json()["data"]] == expected


@pytest.mark.parametrize(("period", "buckets"), [("day", 24), ("week", 7), ("month", 30)])
async def test_buckets_add_up_to_the_totals(harness: Harness, period: str, buckets: int) -> None:
    pos = await PosDriver.create(harness, balance="1000")
    await pos.pay("100.00")
    overview = await get_overview(harness, period=period)
    assert (overview["period"], len(overview["buckets"])) == (period, buckets)
    assert overview["from"] == overview["buckets"][0]["start"]
    for name in SUMMED_FIELDS:
        assert sum(bucket[name] for bucket in overview["buckets"]) == overview["totals"][name]
    assert overview["buckets"][-1]["count"] + overview["buckets"][-2]["count"] == 2
    harness.advance_clock(days=buckets)
    later = await get_overview(harness, period=period)
    assert later["totals"]["count"] == 0


async def test_held_transaction_is_counted_as_under_review_until_decided(harness: Harness) -> None:
    alert, _, _ = await create_held_transfer(harness)
    overview = await get_overview(harness)
    assert overview["totals"]["under_review"] == 1
    assert overview["standing"]["money"]["under_review"] == "100.01"
    assert overview["alerts"]["total"] == 1
    response = await resolve_alert(harness, alert["id"], transaction_decision="release")
    assert response.status_code == 200
    harness.advance_clock(hours=1)  # longer than a snapshot is cached
    overview = await get_overview(harness)
    assert overview["totals"]["under_review"] == 0
    assert overview["standing"]["money"]["under_review"] == "0.00"
    assert overview["alerts"]["total"] == 0


async def test_alert_under_investigation_is_not_counted_as_open(harness: Harness) -> None:
    alert, _, _ = await create_held_transfer(harness)
    alerts = (await get_overview(harness))["alerts"]
    assert (alerts["total"], alerts["high"] + alerts["medium"], alerts["investigating"]) == (
        1,
        1,
        0,
    )
    response = await harness.post(
        f"{ALERTS_URL}/{alert['id']}/investigate", auth=await harness.create_admin("C")
    )
    assert response.status_code == 200
    alerts = (await get_overview(harness))["alerts"]
    assert (alerts["total"], alerts["high"] + alerts["medium"], alerts["investigating"]) == (
        0,
        0,
        1,
    )


async def test_standing_counts_cards_subscribers_and_balances(harness: Harness) -> None:
    pos = await PosDriver.create(harness, balance="250.50")
    await harness.database.execute(
        """INSERT INTO cards (id, serial, status, created_at, updated_at)
           VALUES (1, 'TAP-1', 'UNASSIGNED', now(), now())"""
    )
    await pos.pay("50.50")
    standing = (await get_overview(harness))["standing"]
    assert standing["cards"] == {
        "total": 2, "active": 1, "blocked": 0, "lost": 0, "unassigned": 1, "expired": 0,
    }  # fmt: skip
    assert standing["subscribers"] == {"total": 1, "active": 1, "blocked": 0, "closed": 0}
    assert standing["money"]["wallets"] == "200.00"
    assert standing["money"]["settlements"] == "49.99"  # minus the fee, rounded half up


async def test_card_counts_match_the_filtered_lists(harness: Harness) -> None:
    subscriber = await harness.create_subscriber()
    for status, days in (("ACTIVE", 1), ("ACTIVE", 3), ("BLOCKED", 1), ("LOST", 1), ("ACTIVE", 0)):
        serial = await harness.create_card(subscriber["id"])
        await harness.database.execute(
            "UPDATE cards SET status = $2, expires_at = $3 WHERE serial = $1",
            serial,
            status,
            harness.services.clock() + timedelta(days=days) if days else None,
        )
    harness.advance_clock(days=2)
    counts = (await get_overview(harness))["standing"]["cards"]
    assert counts.pop("total") == 5
    for status, count in counts.items():
        response = await harness.get(
            "/api/v1/cards", params={"status": status.upper()}, auth=await harness.create_admin()
        )
        assert count == len(response.json()["data"]), status
    assert (counts["active"], counts["expired"], counts["lost"]) == (2, 2, 1)


async def test_standing_is_cached_and_totals_are_not(harness: Harness) -> None:
    pos = await PosDriver.create(harness, balance="100")
    now = harness.services.clock()
    harness.services.clock = lambda: now
    before = await get_overview(harness)
    await pos.pay("10.00")
    after_payment = await get_overview(harness)
    assert after_payment["totals"]["count"] == before["totals"]["count"] + 1
    assert after_payment["standing"] == before["standing"]
    harness.advance_clock(hours=1)  # longer than a snapshot is cached
    assert (await get_overview(harness))["standing"]["money"]["wallets"] == "90.00"


@pytest.mark.parametrize("role", "ACSF")
async def test_alerts_are_shown_only_to_roles_that_may_list_them(
    harness: Harness, role: str
) -> None:
    overview = await get_overview(harness, role)
    assert (overview["alerts"] is not None) == (role in "AC")


async def test_unknown_period_is_rejected(harness: Harness) -> None:
    response = await harness.get(URL, params={"period": "year"}, auth=await harness.create_admin())
    assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED")


async def test_engine_metrics_report_batches_and_latency(harness: Harness) -> None:
    pos = await PosDriver.create(harness, balance="100")
    for _ in range(3):
        await pos.pay("1.00")
    engine = (await get_overview(harness))["engine"]
    assert engine["batches"]["count"] == 4  # includes the initial deposit
    assert (engine["batches"]["average_size"], engine["batches"]["largest_size"]) == (1.0, 1)
    assert engine["requests"]["count"] == 3
    batches = engine["batches"]
    assert 0 < batches["p50_ms"] <= batches["p95_ms"] <= batches["p99_ms"]


async def test_overview_does_not_read_transactions_or_entries(harness: Harness) -> None:
    """A query on these tables would wait for the lock and time out."""
    pos = await PosDriver.create(harness, balance="100")
    await pos.pay("1.00")
    admin = await harness.create_admin()
    async with harness.services.transaction() as tx:
        await tx.execute("LOCK TABLE transactions, entries IN ACCESS EXCLUSIVE MODE")
        for period in ("day", "week", "month"):
            response = await harness.get(URL, params={"period": period}, auth=admin)
            assert response.status_code == 200, response.text
            assert response.json()["totals"]["count"] == 2


async def test_agent_floats_and_commissions_are_separate(harness: Harness) -> None:
    admin = await harness.create_admin()
    created = await harness.post(
        "/api/v1/agents",
        json={
            "agent_type": "super_agent",
            "name": "Ibrahim Conteh",
            "phone_number": harness.new_phone_number(),
            "pin": "4071",
        },
        auth=admin,
    )
    assert created.status_code == 201, created.text
    agent_id = created.json()["agent"]["id"]
    funded = await harness.post(
        f"/api/v1/agents/{agent_id}/fund",
        json={"request_id": "float", "amount": "75.00"},
        auth=admin,
    )
    assert funded.status_code == 200, funded.text
    standing = (await get_overview(harness))["standing"]
    assert standing["agents"] == {"total": 1, "active": 1, "suspended": 0, "terminated": 0}
    assert standing["money"]["agent_floats"] == "75.00"
    assert standing["money"]["agent_commissions"] == "0.00"


@pytest.mark.parametrize("period", ["day", "week", "month"])
async def test_cached_totals_stay_exact_when_rollups_are_compacted(
    harness: Harness, period: str
) -> None:
    alert, _, _ = await create_held_transfer(harness)
    harness.advance_clock(hours=3)
    compactor = RollupCompactor(harness.database, harness.services.clock)
    for _ in range(2):
        assert (await get_overview(harness, period=period))["totals"]["under_review"] == 1
        await compactor.compact()
    # The original row is already compacted. The decision adds a row that is compacted later.
    resolved = await resolve_alert(harness, alert["id"], transaction_decision="reject")
    assert resolved.status_code == 200, resolved.text
    for _ in range(2):
        totals = (await get_overview(harness, period=period))["totals"]
        assert (totals["under_review"], totals["failed"], totals["count"]) == (0, 1, 2)
        await compactor.compact()


NOW = datetime(2026, 3, 10, 12, 34, 56, tzinfo=UTC)


def list_starts(period: str, now: datetime, zone: str) -> list[datetime]:
    query = OverviewQuery(period=OverviewPeriod(period))
    return build_period(query, now, ZoneInfo(zone)).starts


async def test_chosen_days_are_compared_with_as_many_days_before(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    await pos.pay("10")
    today = harness.services.clock().date()
    days = {"from": str(today - timedelta(days=2)), "to": str(today)}
    overview = await get_overview(harness, **days)
    assert (overview["period"], len(overview["buckets"])) == ("custom", 3)
    assert overview["buckets"][-1]["payments"] == "10.00"
    assert overview["previous"]["to"] == overview["from"]
    assert len(overview["previous"]["buckets"]) == 3
    earlier = {name: str(today - timedelta(days=1)) for name in days}
    assert (await get_overview(harness, **earlier))["totals"]["count"] == 0
    later = {name: str(today + timedelta(days=1)) for name in days}
    overview = await get_overview(harness, **later)
    assert overview["previous"]["buckets"][0]["payments"] == "10.00"


@each(
    "query, field",
    [
        ({"period": "custom"}, "from"),
        ({"from": "2026-01-01"}, "to"),
        ({"from": "2026-01-02", "to": "2026-01-01"}, "to"),
        ({"from": "2026-01-01", "to": "2026-04-03"}, "to"),
        ({"from": "yesterday", "to": "2026-04-03"}, "from"),
    ],
)
async def test_invalid_days_are_rejected(
    harness: Harness, query: dict[str, str], field: str
) -> None:
    response = await harness.get(URL, params=query, auth=await harness.create_admin())
    assert response.status_code == 422
    assert field in response.json()["details"]["fields"]


def test_day_period_is_divided_into_24_hours() -> None:
    starts = list_starts("day", NOW, "Africa/Freetown")
    assert len(starts) == 24
    assert starts[-1] == datetime(2026, 3, 10, 12, tzinfo=UTC)
    assert {later - earlier for earlier, later in pairwise(starts)} == {timedelta(hours=1)}


@each("period, days", [("week", 7), ("month", 30)])
def test_week_and_month_are_divided_into_days_of_the_platform_timezone(
    period: str, days: int
) -> None:
    starts = list_starts(period, NOW, "Asia/Kathmandu")
    assert len(starts) == days
    assert starts[-1] == datetime(2026, 3, 9, 18, 15, tzinfo=UTC)


def test_day_of_a_daylight_saving_change_is_one_bucket() -> None:
    starts = list_starts("week", datetime(2026, 3, 30, 12, tzinfo=UTC), "Europe/Berlin")
    lengths = [later - earlier for earlier, later in pairwise(starts)]
    assert sorted(lengths)[0] == timedelta(hours=23)
    assert sorted(lengths)[1:] == [timedelta(hours=24)] * 5


@each("period", ["day", "week", "month"])
def test_buckets_start_on_a_quarter_hour_in_every_timezone(period: str) -> None:
    for zone in available_timezones():
        for now in (NOW, NOW + timedelta(days=180)):
            starts = list_starts(period, now, zone)
            assert starts == sorted(set(starts)), zone
            assert all(get_bucket_start(start) == start for start in starts), zone
            assert starts[-1] <= now, zone
