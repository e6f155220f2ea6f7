"""Transactions as the users and API keys of an owner see them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from builders.participants import cash_in, create_agent
from builders.payments import PosDriver
from cases import each
from harness import PIN, BearerAuth, Harness
from tapgate.auth.owners import Owner, build_view
from tapgate_client import ids
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.owners import OwnerType

V1 = "/api/v1"
LIST = f"{V1}/transactions"
UNKNOWN = ids.encode(ids.TRANSACTION, 1 << 40)
PERSONAL = ("Kamara", "+232", "holder_name")


@pytest.fixture
async def pos(harness: Harness) -> PosDriver:
    return await PosDriver.create(harness)


@pytest.fixture
async def other(harness: Harness) -> PosDriver:
    return await PosDriver.create(harness)


async def create_callers(harness: Harness, pos: PosDriver) -> dict[str, BearerAuth]:
    shop = await harness.get_processor_id(pos.merchant_auth)
    return {
        "manager": await harness.create_owner_user("M", shop),
        "cashier": await harness.create_owner_user("K", shop),
        "key": await harness.create_api_key("payments:read", owner_id=shop),
    }


async def pay(pos: PosDriver, amount: str = "100.00") -> str:
    response = await pos.pay(amount, pin=PIN)
    assert response.status_code == 200, response.text
    transaction_id: str = response.json()["transaction_id"]
    return transaction_id


async def test_owner_sees_only_its_transactions(
    harness: Harness, pos: PosDriver, other: PosDriver
) -> None:
    own, foreign = await pay(pos), await pay(other)
    for name, caller in (await create_callers(harness, pos)).items():
        listed = (await harness.get(LIST, auth=caller)).json()["data"]
        assert [item["id"] for item in listed] == [own], name
        assert listed[0]["from"]["name"] == "Aminata K."
        found = await harness.get(f"{LIST}/{own}", auth=caller)
        assert found.status_code == 200, found.text
        expected = await harness.get(f"{LIST}/{UNKNOWN}", auth=caller)
        missing = await harness.get(f"{LIST}/{foreign}", auth=caller)
        assert (missing.status_code, missing.json()) == (404, expected.json()), name
        totals = (await harness.get(f"{LIST}/totals", auth=caller)).json()
        assert (totals["count"], totals["amount"]) == (1, "100.00")
        export = (await harness.get(f"{LIST}/export", auth=caller)).text
        assert own in export
        assert foreign not in export
        for text in (found.text, str(listed), export):
            assert not [word for word in PERSONAL if word in text], name


@each("parameter", ["user_id", "card_serial"])
async def test_filters_select_among_the_owner_transactions(
    harness: Harness, pos: PosDriver, other: PosDriver, parameter: str
) -> None:
    own, _ = await pay(pos), await pay(other)
    values: dict[str, Callable[[PosDriver], Any]] = {
        "user_id": lambda item: item.customer["id"],
        "card_serial": lambda item: item.card,
    }
    get_value = values[parameter]
    for caller in (await create_callers(harness, pos)).values():
        for path in (LIST, f"{LIST}/totals"):
            found = await harness.get(f"{path}?{parameter}={get_value(pos)}", auth=caller)
            foreign = await harness.get(f"{path}?{parameter}={get_value(other)}", auth=caller)
            unknown = "sub_0000000000001" if parameter == "user_id" else "TAP-NONE"
            expected = await harness.get(f"{path}?{parameter}={unknown}", auth=caller)
            assert foreign.json() == expected.json()
            assert found.json() != expected.json()
        listed = await harness.get(f"{LIST}?{parameter}={get_value(pos)}", auth=caller)
        assert own in {item["id"] for item in listed.json()["data"]}


async def test_totals_of_a_period_are_the_owners_and_not_everybodys(
    harness: Harness, pos: PosDriver, other: PosDriver
) -> None:
    await pay(pos)
    await pay(other)
    (caller, *_) = (await create_callers(harness, pos)).values()
    day = harness.services.clock().date() - timedelta(days=2)
    totals = (await harness.get(f"{LIST}/totals?from={day}", auth=caller)).json()
    assert (totals["count"], totals["amount"]) == (1, "100.00")


async def test_restricted_customer_is_masked_for_users_and_omitted_for_keys(
    harness: Harness, pos: PosDriver
) -> None:
    own = await pay(pos)
    await harness.database.execute(
        "UPDATE subscribers SET restricted = true WHERE id = $1",
        ids.decode(ids.SUBSCRIBER, pos.customer["id"]),
    )
    callers = await create_callers(harness, pos)
    for name in ("manager", "cashier"):
        page = (await harness.get(LIST, auth=callers[name])).json()
        assert (page["masked"], page["data"][0]["masked"]) == (True, True)
        record = (await harness.get(f"{LIST}/{own}", auth=callers[name])).json()
        assert record["from"].get("name") is None
        assert record["masked"]
    key = callers["key"]
    assert (await harness.get(LIST, auth=key)).json()["data"] == []
    expected = await harness.get(f"{LIST}/{UNKNOWN}", auth=key)
    hidden = await harness.get(f"{LIST}/{own}", auth=key)
    assert (hidden.status_code, hidden.json()) == (404, expected.json())
    filtered = await harness.get(f"{LIST}?user_id={pos.customer['id']}", auth=key)
    assert (filtered.status_code, filtered.json()["data"]) == (200, [])


async def test_cashier_sees_today_and_yesterday(harness: Harness, pos: PosDriver) -> None:
    callers, paid = await create_callers(harness, pos), await pay(pos)
    cashier, manager = callers["cashier"], callers["manager"]
    for days, is_seen in enumerate((True, True, False)):
        harness.advance_clock(days=min(days, 1))
        listed = (await harness.get(LIST, auth=cashier)).json()["data"]
        assert [item["id"] for item in listed] == [paid] * is_seen, days
        assert {item["balance_after"] for item in listed} <= {None}
        found = await harness.get(f"{LIST}/{paid}", auth=cashier)
        expected = await harness.get(f"{LIST}/{UNKNOWN}", auth=cashier)
        assert (found.status_code == 200) == is_seen
        assert is_seen or found.json() == expected.json()
        totals = (await harness.get(f"{LIST}/totals", auth=cashier)).json()
        assert totals["count"] == int(is_seen)
        assert (paid in (await harness.get(f"{LIST}/export", auth=cashier)).text) == is_seen
        assert (await harness.get(f"{LIST}/{paid}", auth=manager)).status_code == 200
        assert len((await harness.get(LIST, auth=manager)).json()["data"]) == 1


def test_yesterday_starts_at_midnight_of_the_platform() -> None:
    zone, owner = ZoneInfo("Asia/Tokyo"), Owner(OwnerType.PROCESSOR, 1)
    now = datetime(2026, 3, 1, 15, 0, tzinfo=UTC)  # midnight of 2 March in Tokyo
    view = build_view(owner, AdminRole.MERCHANT_CASHIER, now, zone, 7)
    assert view == (owner, datetime(2026, 3, 1, tzinfo=zone), 7)
    assert build_view(owner, AdminRole.MERCHANT_MANAGER, now, zone, 7) == (owner, None, None)


async def test_agent_user_sees_the_agents_transactions(harness: Harness) -> None:
    agents = [await create_agent(harness, balance="500") for _ in range(2)]
    person = await harness.create_subscriber()
    for agent in agents:
        response = await cash_in(harness, agent, person, "20")
        assert response.status_code == 200, response.text
    user = await harness.create_owner_user("G", agents[0]["id"])
    listed = await harness.get(f"{LIST}?type=agent_cashin", auth=user)
    (record,) = listed.json()["data"]
    assert record["from"]["id"] == agents[0]["id"]
    assert record["to"]["name"] == "Aminata K."
    assert agents[1]["id"] not in listed.text
