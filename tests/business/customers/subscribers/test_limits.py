"""A subscriber's remaining limits match what the ledger accepts."""

from datetime import date, datetime, timedelta
from typing import Any

import pytest

from builders.payments import create_processor, submit_and_get_id, submit_command, submit_refund
from harness import Harness
from tapgate.ledger import chart
from tapgate_client import ids
from tapgate_client.clock import get_platform_day
from tapgate_client.errors import Code


async def get_limits(harness: Harness, subscriber_id: str, caller: Any = None) -> dict[str, Any]:
    response = await harness.get(
        f"/api/v1/subscribers/{subscriber_id}/limits", auth=caller or harness.get_service_auth()
    )
    assert response.status_code == 200, response.text
    limits: dict[str, Any] = response.json()
    return limits


async def set_limit(harness: Harness, **limits: str) -> None:
    response = await harness.put(
        "/api/v1/account-rules/1", json=limits, auth=await harness.create_admin()
    )
    assert response.status_code == 200, response.text


async def set_last_sent_day(harness: Harness, subscriber_id: str, day: date) -> None:
    """Backdate or postdate the recorded usage to `day`."""
    await harness.database.execute(
        "UPDATE accounts SET usage_day = $2 WHERE owner_id = $1",
        ids.decode(ids.SUBSCRIBER, subscriber_id),
        day,
    )


def get_today(harness: Harness) -> date:
    return get_platform_day(harness.services.clock(), harness.services.settings.timezone)


def format_midnight(day: date) -> str:
    return f"{day.isoformat()}T00:00:00.000Z"


async def test_limits_show_used_and_remaining_amounts(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="5000")
    recipient = await harness.create_subscriber()
    await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, recipient, "1500.50")
    day = get_today(harness)
    month_end = (day.replace(day=1) + timedelta(days=31)).replace(day=1)
    assert await get_limits(harness, sender["id"], await harness.create_admin("F")) == {
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
    assert (await get_limits(harness, recipient["id"]))["daily"]["used"] == "0.00"


@pytest.mark.parametrize("period", ["daily", "monthly"])
async def test_exactly_the_remaining_amount_can_be_sent(harness: Harness, period: str) -> None:
    sender = await harness.create_subscriber(balance="1000")
    recipient = await harness.create_subscriber()
    await set_limit(harness, daily_limit="100", monthly_limit="100")
    await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, recipient, "70")
    expected = Code.DAILY_LIMIT_EXCEEDED
    if period == "monthly" and get_today(harness).day > 1:
        # Usage from an earlier day in the month counts only toward the monthly limit.
        await set_last_sent_day(harness, sender["id"], get_today(harness) - timedelta(days=1))
        expected = Code.MONTHLY_LIMIT_EXCEEDED
    remaining = (await get_limits(harness, sender["id"]))[period]["remaining"]
    assert remaining == "30.00"
    declined = await submit_command(harness, chart.TRANSFER_P2P, sender, recipient, "30.01")
    assert declined.code == expected
    await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, recipient, remaining)
    assert (await get_limits(harness, sender["id"]))[period]["remaining"] == "0.00"


async def test_usage_of_a_previous_month_does_not_count(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="1000")
    recipient = await harness.create_subscriber()
    await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, recipient, "70")
    last_month = get_today(harness).replace(day=1) - timedelta(days=1)
    await set_last_sent_day(harness, sender["id"], last_month)
    limits = await get_limits(harness, sender["id"])
    assert (limits["daily"]["used"], limits["monthly"]["used"]) == ("0.00", "0.00")


async def test_usage_recorded_by_a_clock_that_runs_ahead_still_counts(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="1000")
    recipient = await harness.create_subscriber()
    await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, recipient, "70")
    ahead = get_today(harness) + timedelta(days=1)
    await set_last_sent_day(harness, sender["id"], ahead)
    daily = (await get_limits(harness, sender["id"]))["daily"]
    assert (daily["used"], daily["resets_at"]) == (
        "70.00",
        format_midnight(ahead + timedelta(days=1)),
    )
    assert datetime.fromisoformat(daily["resets_at"]) > harness.services.clock()


async def test_refund_reduces_usage_and_a_lowered_limit_leaves_zero_remaining(
    harness: Harness,
) -> None:
    payer = await harness.create_subscriber(balance="1000")
    merchant = await create_processor(harness)
    card = await harness.create_card(payer["id"])
    paid = await submit_and_get_id(harness, chart.POS_PAYMENT, card, merchant, "100")
    await submit_refund(harness, paid, merchant, "40")
    assert (await get_limits(harness, payer["id"]))["daily"]["used"] == "60.00"
    await set_limit(harness, daily_limit="50")
    daily = (await get_limits(harness, payer["id"]))["daily"]
    assert (daily["limit"], daily["used"], daily["remaining"]) == ("50.00", "60.00", "0.00")


async def test_unknown_subscriber_is_404_and_restricted_requires_an_access_code(
    harness: Harness,
) -> None:
    admin = await harness.create_admin("S")
    restricted = await harness.create_restricted_subscriber()
    for subscriber_id, expected in (
        ("x", (404, "SUBSCRIBER_NOT_FOUND")),
        (ids.encode(ids.SUBSCRIBER, 1), (404, "SUBSCRIBER_NOT_FOUND")),
        (restricted["id"], (403, "OTP_REQUIRED")),
    ):
        response = await harness.get(f"/api/v1/subscribers/{subscriber_id}/limits", auth=admin)
        assert (response.status_code, response.json()["code"]) == expected
    assert (await get_limits(harness, restricted["id"]))["kyc_level"] == 1
