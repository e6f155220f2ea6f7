"""Receipts of float funding, cash-in, cash-out, float transfer and commission payout."""

import uuid
from typing import Any

import httpx2
import pytest

from agents.builders import (
    AGENT_PIN,
    cash_in,
    cash_out,
    create_agent,
    create_sub_agent,
    fund_agent,
    get_balances,
    parse_error,
    pay_out_commission,
    transfer_float,
)
from harness import PIN, WRONG_PIN, Harness
from tapgate.edge.services import Services
from tapgate.ledger.pins import set_pin

CHILD_PIN = "6138"


def drop_transaction_id(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    receipt: dict[str, Any] = answer.json()
    assert receipt.pop("transaction_id").startswith("txn_")
    return receipt


async def create_child_card(world: Harness, subscriber: dict[str, Any], **fields: Any) -> str:
    card_id = world.services.new_id()
    async with world.services.database.transaction() as tx:
        await set_pin(tx, card_id, world.services.pin_verifier.hash(CHILD_PIN))
    return await world.create_card(
        subscriber["id"], id=card_id, type="CHILD", pin_holder_id=card_id, **fields
    )


async def test_funding_an_agent_increases_the_float(world: Harness) -> None:
    agent = await create_agent(world)
    await fund_agent(world, agent, "1000")
    answer = await fund_agent(world, agent, "234.5", description="Float for the weekend")
    assert drop_transaction_id(answer) == {
        "success": True,
        "message": "Float funded",
        "status": "completed",
        "amount": "234.50 SLE",
        "new_balance": "1,234.50 SLE",
    }
    assert await get_balances(world, agent) == ("1234.50", "0.00")


@pytest.mark.parametrize(("tier", "earned"), [(1, "1.00"), (2, "1.50"), (3, "2.00")])
async def test_cash_in_commission_depends_on_the_tier(
    world: Harness, tier: int, earned: str
) -> None:
    agent = await create_agent(world, balance="500", commission_tier=tier)
    customer = await world.create_subscriber(balance="20")
    answer = await cash_in(world, agent, customer, "100")
    assert drop_transaction_id(answer) == {
        "success": True,
        "message": "Cash-in completed",
        "status": "completed",
        "amount": "100.00 SLE",
        "agent_balance": "400.00 SLE",
        "subscriber_balance": "120.00 SLE",
        "commission_earned": f"{earned} SLE",
    }
    assert await get_balances(world, agent) == ("400.00", earned)


async def test_cash_out_moves_money_from_the_wallet_to_the_float(world: Harness) -> None:
    agent, customer = await create_agent(world), await world.create_subscriber(balance="100")
    answer = await cash_out(world, agent, customer, "40")
    assert drop_transaction_id(answer) == {
        "success": True,
        "message": "Cash-out completed",
        "status": "completed",
        "amount": "40.00 SLE",
        "agent_balance": "40.00 SLE",
        "subscriber_balance": "60.00 SLE",
        "commission_earned": "0.00 SLE",
    }
    assert await get_balances(world, agent) == ("40.00", "0.00")


async def test_transfer_moves_float_to_an_own_sub_agent(world: Harness) -> None:
    parent = await create_agent(world, balance="100")
    sub_agent = await create_sub_agent(world, parent)
    answer = await transfer_float(world, parent, sub_agent, "30", description="For Saturday")
    assert drop_transaction_id(answer) == {
        "success": True,
        "message": "Transfer completed",
        "status": "completed",
        "amount": "30.00 SLE",
        "from_balance": "70.00 SLE",
        "to_balance": "30.00 SLE",
    }


async def test_commission_belongs_to_the_executing_agent_and_is_paid_out_in_full(
    world: Harness,
) -> None:
    parent, customer = await create_agent(world, balance="700"), await world.create_subscriber()
    sub_agent = await create_sub_agent(world, parent)
    await transfer_float(world, parent, sub_agent, "600")
    await cash_in(world, sub_agent, customer, "500")
    assert await get_balances(world, parent) == ("100.00", "0.00")
    assert await get_balances(world, sub_agent) == ("100.00", "5.00")
    assert drop_transaction_id(await pay_out_commission(world, sub_agent)) == {
        "success": True,
        "message": "Commission paid out",
        "status": "completed",
        "amount": "5.00 SLE",
        "float_balance": "105.00 SLE",
    }
    answer = await pay_out_commission(world, sub_agent, request_id="again")
    assert parse_error(answer) == (402, "INSUFFICIENT_FUNDS")
    # The rejection stored nothing under that request id.
    await cash_in(world, sub_agent, customer, "100")
    answer = await pay_out_commission(world, sub_agent, request_id="again")
    assert drop_transaction_id(answer)["amount"] == "1.00 SLE"


async def test_agent_transactions_are_recorded_with_the_agent_channel(
    world: Harness, services: Services
) -> None:
    agent, customer = await create_agent(world), await world.create_subscriber()
    sub_agent = await create_sub_agent(world, agent)
    await fund_agent(world, agent, "1000", description="Float for the weekend")
    await cash_in(world, agent, customer, "500")
    await cash_out(world, agent, customer, "50")
    await transfer_float(world, agent, sub_agent, "50", description="For Saturday")
    await pay_out_commission(world, agent)
    rows = await services.database.fetch(
        "SELECT type, channel, context->>'memo' FROM transactions ORDER BY id"
    )
    assert [tuple(row) for row in rows] == [
        ("agent_fund", "agent", "Float for the weekend"),
        ("agent_cashin", "agent", None),
        ("agent_cashout", "agent", None),
        ("agent_transfer", "agent", "For Saturday"),
        ("commission_payout", "agent", None),
    ]


async def test_customer_can_be_identified_by_card(world: Harness) -> None:
    agent, customer = await create_agent(world, balance="100"), await world.create_subscriber()
    serial = await world.create_card(customer["id"])
    by_card = {"subscriber_id": None, "card_serial": serial}
    answer = await cash_in(world, agent, customer, "80", **by_card)
    assert answer.json()["subscriber_balance"] == "80.00 SLE"
    answer = await cash_out(world, agent, customer, "30", **by_card)
    assert answer.json()["subscriber_balance"] == "50.00 SLE"


async def test_child_card_has_its_own_pin_and_limit(world: Harness) -> None:
    agent, parent = await create_agent(world), await world.create_subscriber(balance="100")
    serial = await create_child_card(world, parent, daily_limit=50_00)
    by_card = {"subscriber_id": None, "card_serial": serial}
    answer = await cash_out(world, agent, parent, "30", **by_card)
    assert parse_error(answer) == (400, "INVALID_PIN")
    answer = await cash_out(world, agent, parent, "30", pin=CHILD_PIN, **by_card)
    assert answer.json()["subscriber_balance"] == "70.00 SLE"
    answer = await cash_out(world, agent, parent, "20.01", pin=CHILD_PIN, **by_card)
    assert parse_error(answer) == (403, "CARD_LIMIT_EXCEEDED")
    assert answer.json()["details"] == {"limit": "50.00", "used": "30.00", "attempted": "20.01"}


async def test_cash_in_to_a_restricted_subscriber_is_rejected_but_cash_out_with_pin_works(
    world: Harness,
) -> None:
    agent, customer = (
        await create_agent(world, balance="100"),
        await world.create_restricted_subscriber(),
    )
    await world.deposit(customer["id"], "80")
    assert parse_error(await cash_in(world, agent, customer, "80")) == (403, "OTP_REQUIRED")
    assert (await cash_out(world, agent, customer, "80")).status_code == 200


async def test_replayed_agent_request_returns_the_original_response(world: Harness) -> None:
    agent, customer = await create_agent(world), await world.create_subscriber()
    admin, name = await world.create_admin(), str(uuid.uuid4())

    async def post(path: str, **body: Any) -> httpx2.Response:
        return await world.client.post(
            f"/api/v1/agents{path}", json={"request_id": name, **body}, auth=admin
        )

    first = await post(f"/{agent['id']}/fund", amount="100")
    again = await post(f"/{agent['id']}/fund", amount="100.00")
    assert again.json() == first.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    other = await create_agent(world)
    for answer in (
        await post(f"/{agent['id']}/fund", amount="101"),
        await post(f"/{other['id']}/fund", amount="100"),
        await post(f"/{agent['id']}/payout-commission"),
    ):
        assert parse_error(answer) == (409, "DUPLICATE_REQUEST")
    name = str(uuid.uuid4())
    order = {"agent_id": agent["id"], "subscriber_id": customer["id"], "amount": "40"}
    wrong = await post("/cashin", **order, agent_pin=WRONG_PIN)
    assert parse_error(wrong) == (400, "INVALID_PIN")
    first = await post("/cashin", **order, agent_pin=AGENT_PIN)
    again = await post("/cashin", **order, agent_pin=WRONG_PIN)
    assert again.json() == first.json()
    name = str(uuid.uuid4())
    declined = await post("/cashout", **order | {"amount": "41"}, agent_pin=AGENT_PIN, pin=PIN)
    await fund_agent(world, agent, "500")
    await cash_in(world, agent, customer, "500")
    again = await post("/cashout", **order | {"amount": "41"}, agent_pin=AGENT_PIN, pin=PIN)
    assert parse_error(again) == parse_error(declined) == (402, "INSUFFICIENT_FUNDS")
    name = str(uuid.uuid4())
    first = await post(f"/{agent['id']}/payout-commission")
    again = await post(f"/{agent['id']}/payout-commission")
    assert again.json() == first.json()
    assert await get_balances(world, agent) == ("65.40", "0.00")
