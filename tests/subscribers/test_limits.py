"""Remaining limits of a subscriber match what the ledger accepts."""

from datetime import date, datetime, timedelta
from typing import Any

import pytest

from harness import Harness
from tapgate import ids
from tapgate.clock import get_platform_day
from tapgate.errors import Code
from tapgate.ledger import chart
from transactions.builders import create_processor, submit_and_get_id, submit_command, submit_refund


async def get_limits(world: Harness, subscriber_id: str, caller: Any = None) -> dict[str, Any]:
    answer = await world.client.get(
        f"/api/v1/subscribers/{subscriber_id}/limits", auth=caller or world.get_service_auth()
    )
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def set_limit(world: Harness, **limits: str) -> None:
    answer = await world.client.put(
        "/api/v1/account-rules/1", json=limits, auth=await world.create_admin()
    )
    assert answer.status_code == 200, answer.text


async def set_last_sent_day(world: Harness, subscriber_id: str, day: date) -> None:
    """Backdate or postdate the recorded usage to `day`."""
    await world.services.database.execute(
        "UPDATE accounts SET usage_day = $2 WHERE owner_id = $1",
        ids.decode(ids.SUBSCRIBER, subscriber_id),
        day,
    )


def get_today(world: Harness) -> date:
    return get_platform_day(world.services.clock(), world.services.settings.timezone)


def format_midnight(day: date) -> str:
    return f"{day.isoformat()}T00:00:00.000Z"


async def test_limits_show_used_and_remaining_amounts(world: Harness) -> None:
    sender, friend = await world.create_subscriber(balance="5000"), await world.create_subscriber()
    await submit_and_get_id(world, chart.TRANSFER_P2P, sender["id"], friend["id"], "1500.50")
    day = get_today(world)
    month_end = (day.replace(day=1) + timedelta(days=31)).replace(day=1)
    assert await get_limits(world, sender["id"], await world.create_admin("F")) == {
        "kyc_level": 1,
        "currency": "SLE",
        "per_transaction": "50000.00",
        "daily": {
            "limit": "100000.00",
            "used": "1500.50",
            "remaining": "98499.50",
            "resets_at": format_midnight(day + timedelta(days=1)),
        },
        "monthly": {
            "limit": "1000000.00",
            "used": "1500.50",
            "remaining": "998499.50",
            "resets_at": format_midnight(month_end),
        },
        "max_balance": "500000.00",
    }
    assert (await get_limits(world, friend["id"]))["daily"]["used"] == "0.00"


@pytest.mark.parametrize("period", ["daily", "monthly"])
async def test_exactly_the_remaining_amount_can_be_sent(world: Harness, period: str) -> None:
    sender, friend = await world.create_subscriber(balance="1000"), await world.create_subscriber()
    await set_limit(world, daily_limit="100", monthly_limit="100")
    await submit_and_get_id(world, chart.TRANSFER_P2P, sender["id"], friend["id"], "70")
    expected = Code.DAILY_LIMIT_EXCEEDED
    if period == "monthly" and get_today(world).day > 1:
        # Usage from an earlier day of the month counts only toward the monthly limit.
        await set_last_sent_day(world, sender["id"], get_today(world) - timedelta(days=1))
        expected = Code.MONTHLY_LIMIT_EXCEEDED
    remaining = (await get_limits(world, sender["id"]))[period]["remaining"]
    assert remaining == "30.00"
    declined = await submit_command(world, chart.TRANSFER_P2P, sender["id"], friend["id"], "30.01")
    assert declined.code == expected
    await submit_and_get_id(world, chart.TRANSFER_P2P, sender["id"], friend["id"], remaining)
    assert (await get_limits(world, sender["id"]))[period]["remaining"] == "0.00"


async def test_usage_of_a_previous_month_does_not_count(world: Harness) -> None:
    sender, friend = await world.create_subscriber(balance="1000"), await world.create_subscriber()
    await submit_and_get_id(world, chart.TRANSFER_P2P, sender["id"], friend["id"], "70")
    last_month = get_today(world).replace(day=1) - timedelta(days=1)
    await set_last_sent_day(world, sender["id"], last_month)
    found = await get_limits(world, sender["id"])
    assert (found["daily"]["used"], found["monthly"]["used"]) == ("0.00", "0.00")


async def test_usage_recorded_by_a_clock_that_runs_ahead_still_counts(world: Harness) -> None:
    sender, friend = await world.create_subscriber(balance="1000"), await world.create_subscriber()
    await submit_and_get_id(world, chart.TRANSFER_P2P, sender["id"], friend["id"], "70")
    ahead = get_today(world) + timedelta(days=1)
    await set_last_sent_day(world, sender["id"], ahead)
    daily = (await get_limits(world, sender["id"]))["daily"]
    assert (daily["used"], daily["resets_at"]) == (
        "70.00",
        format_midnight(ahead + timedelta(days=1)),
    )
    assert datetime.fromisoformat(daily["resets_at"]) > world.services.clock()


async def test_refund_reduces_usage_and_a_lowered_limit_leaves_zero_remaining(
    world: Harness,
) -> None:
    payer, shop = await world.create_subscriber(balance="1000"), await create_processor(world)
    card = await world.create_card(payer["id"])
    paid = await submit_and_get_id(world, chart.POS_PAYMENT, card, shop, "100")
    await submit_refund(world, paid, shop, "40")
    assert (await get_limits(world, payer["id"]))["daily"]["used"] == "60.00"
    await set_limit(world, daily_limit="50")
    daily = (await get_limits(world, payer["id"]))["daily"]
    assert (daily["limit"], daily["used"], daily["remaining"]) == ("50.00", "60.00", "0.00")


async def test_unknown_subscriber_is_404_and_restricted_requires_an_access_code(
    world: Harness,
) -> None:
    admin, hidden = await world.create_admin("S"), await world.create_restricted_subscriber()
    for name, expected in (
        ("x", (404, "SUBSCRIBER_NOT_FOUND")),
        (ids.encode(ids.SUBSCRIBER, 1), (404, "SUBSCRIBER_NOT_FOUND")),
        (hidden["id"], (403, "OTP_REQUIRED")),
    ):
        answer = await world.client.get(f"/api/v1/subscribers/{name}/limits", auth=admin)
        assert (answer.status_code, answer.json()["code"]) == expected
    assert (await get_limits(world, hidden["id"]))["kyc_level"] == 1
