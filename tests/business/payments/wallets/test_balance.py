"""Account balances."""

from typing import Any

from builders.payments import (
    create_agent,
    create_partner,
    create_processor,
    set_kyc_level,
    submit_and_get_id,
)
from harness import Harness
from tapgate.ledger import chart

URL = "/api/v1/balance"


async def get_balance(harness: Harness, user_id: str, caller: Any = None) -> dict[str, Any]:
    response = await harness.get(f"{URL}/{user_id}", auth=caller or harness.get_service_auth())
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def test_subscriber_balance_has_all_fields(harness: Harness) -> None:
    subscriber = await harness.create_subscriber(balance="1234.50")
    balance = await get_balance(
        harness, subscriber["id"], await harness.create_api_key("balance:read")
    )
    assert balance.pop("as_of").endswith("Z")
    assert balance == {
        "user_id": subscriber["id"],
        "account_id": subscriber["account_id"],
        "balance": "1234.50",
        "available": "1234.50",
        "held": "0.00",
        "currency": "SLE",
    }


async def test_held_funds_count_in_the_balance_but_are_not_available(harness: Harness) -> None:
    sender, recipient = await harness.create_subscriber(), await harness.create_subscriber()
    for subscriber in (sender, recipient):
        await set_kyc_level(harness, subscriber["id"], 3)
    await harness.deposit(sender["id"], "900000")
    await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, recipient, "600000")
    balance = await get_balance(harness, sender["id"])
    assert (balance["balance"], balance["available"]) == ("900000.00", "297000.00")
    assert balance["held"] == "603000.00"


async def test_balances_of_agents_processors_and_partners(harness: Harness) -> None:
    agent = await create_agent(harness)
    partner = await create_partner(harness)
    merchant = await create_processor(harness)
    subscriber = await harness.create_subscriber()
    await submit_and_get_id(harness, chart.AGENT_FUND, "cash", agent, "500")
    await submit_and_get_id(harness, chart.AGENT_CASHIN, agent, subscriber, "100")
    await submit_and_get_id(harness, chart.PARTNER_DEPOSIT, "cash", partner, "70")
    await submit_and_get_id(
        harness, chart.POS_PAYMENT, await harness.create_card(subscriber["id"]), merchant, "50"
    )
    balance = await get_balance(harness, agent)
    assert balance["balance"] == "400.00"  # the float, not the commission
    assert (await get_balance(harness, partner))["balance"] == "70.00"
    assert (await get_balance(harness, merchant))["balance"] == "49.50"


async def test_balance_of_an_unknown_id_is_not_found(harness: Harness) -> None:
    subscriber = await harness.create_subscriber()
    for user_id, code in {
        "sub_0000000000001": "SUBSCRIBER_NOT_FOUND",
        "sub_1": "SUBSCRIBER_NOT_FOUND",
        "agt_" + subscriber["id"][4:]: "AGENT_NOT_FOUND",
        "prc_": "PROCESSOR_NOT_FOUND",
        "ptn_zzzzzzzzzzzzz": "PARTNER_NOT_FOUND",
        subscriber["account_id"]: "ACCOUNT_NOT_FOUND",
        "nobody": "ACCOUNT_NOT_FOUND",
    }.items():
        response = await harness.get(f"{URL}/{user_id}", auth=harness.get_service_auth())
        assert (response.status_code, response.json()["code"]) == (404, code), user_id
