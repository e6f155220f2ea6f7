"""One-time code limits per phone number: 1 per minute and 5 per hour, across all routes."""

import asyncio
from collections import Counter
from typing import Any

import httpx2
import pytest

from harness import Harness
from tapgate.ledger.one_time_codes import send_limit
from tapgate.runtime.store.database import Database

URL = "/api/v1/subscribers"
CODE_ROUTES = ["reset-pin", "restricted-access"]
#: The route for a child card's PIN, whose codes are sent to the parent.
CARD_ROUTE = "card"


@pytest.fixture
async def record(harness: Harness) -> dict[str, Any]:
    return await harness.create_restricted_subscriber()


async def request_code(harness: Harness, record: dict[str, Any], route: str) -> httpx2.Response:
    service = harness.get_service_auth()
    if route == CARD_ROUTE:
        serial = await harness.create_card(record["id"], type="CHILD")
        return await harness.post(f"/api/v1/cards/{serial}/reset-pin", auth=service)
    caller = service if route == "reset-pin" else await harness.create_admin()
    return await harness.post(f"{URL}/{record['id']}/{route}", auth=caller)


def assert_limited(response: httpx2.Response, *seconds: int) -> None:
    assert (response.status_code, response.json()["code"]) == (429, "RATE_LIMITED"), response.text
    assert int(response.headers["retry-after"]) in seconds


@pytest.mark.parametrize("first", [*CODE_ROUTES, CARD_ROUTE])
@pytest.mark.parametrize("second", [*CODE_ROUTES, CARD_ROUTE])
async def test_phone_number_gets_one_code_per_minute_across_all_routes(
    harness: Harness, record: dict[str, Any], first: str, second: str
) -> None:
    assert (await request_code(harness, record, first)).status_code == 200
    assert_limited(await request_code(harness, record, second), 59, 60)
    assert len(await harness.list_pending_messages(record["phone_number"], "one_time_code")) == 1
    harness.advance_clock(minutes=1)
    assert (await request_code(harness, record, second)).status_code == 200


async def test_phone_number_gets_five_codes_per_hour(
    harness: Harness, record: dict[str, Any]
) -> None:
    for number in range(5):
        assert (await request_code(harness, record, CODE_ROUTES[number % 2])).status_code == 200
        harness.advance_clock(minutes=2)
    for route in CODE_ROUTES:
        assert_limited(await request_code(harness, record, route), 50 * 60, 50 * 60 - 1)
    harness.advance_clock(minutes=50)
    assert (await request_code(harness, record, "reset-pin")).status_code == 200
    assert_limited(await request_code(harness, record, "reset-pin"), 119, 120)


async def test_concurrent_requests_do_not_exceed_the_limit(
    harness: Harness, record: dict[str, Any]
) -> None:
    responses = await asyncio.gather(
        *(request_code(harness, record, route) for route in CODE_ROUTES for _ in range(8))
    )
    assert Counter(response.status_code for response in responses) == {200: 1, 429: 15}
    assert len(await harness.list_pending_messages(record["phone_number"], "one_time_code")) == 1


async def test_rate_limited_request_leaves_the_pending_code_valid(
    harness: Harness, record: dict[str, Any]
) -> None:
    await request_code(harness, record, "reset-pin")
    code = await harness.get_pending_code(record["phone_number"])
    assert_limited(await request_code(harness, record, "reset-pin"), 59, 60)
    confirmed = await harness.post(
        f"{URL}/{record['id']}/reset-pin/confirm",
        json={"otp": code, "new_pin": "5927"},
        auth=harness.get_service_auth(),
    )
    assert confirmed.status_code == 200


async def test_forbidden_request_does_not_count_toward_the_limit(
    harness: Harness, record: dict[str, Any]
) -> None:
    key = await harness.create_api_key("subscribers:write")
    rejected = await harness.post(f"{URL}/{record['id']}/reset-pin", auth=key)
    assert rejected.status_code == 403
    assert (await request_code(harness, record, "reset-pin")).status_code == 200


async def test_clock_set_back_two_hours_does_not_delay_the_next_code(
    harness: Harness, database: Database
) -> None:
    for hours in (0, -2):
        harness.advance_clock(hours=hours)
        async with database.transaction() as tx:
            assert await send_limit.reserve(tx, "+23276100001", harness.services.clock()) is None
