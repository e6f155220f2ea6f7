"""What somebody has."""

from typing import Any

import httpx2

from tapgate import ids
from tapgate.ledger import chart
from transactions.movements import agent, move, partner, processor, set_kyc_level
from world import World

URL = "/api/v1/balance"


async def balance(world: World, user_id: str, caller: Any = None) -> dict[str, Any]:
    answer = await world.client.get(f"{URL}/{user_id}", auth=caller or world.service())
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_subscribers_balance(world: World) -> None:
    subscriber = await world.subscriber(balance="1234.50")
    found = await balance(world, subscriber["id"], await world.api_key("balance:read"))
    assert found.pop("as_of").endswith("Z")
    assert found == {
        "user_id": subscriber["id"],
        "account_id": subscriber["account_id"],
        "balance": "1234.50",
        "available": "1234.50",
        "held": "0.00",
        "currency": "SLE",
    }


async def test_what_is_held_is_in_the_balance_and_not_available(world: World) -> None:
    sender, recipient = await world.subscriber(), await world.subscriber()
    for one in (sender, recipient):
        await set_kyc_level(world, one["id"], 3)
    await world.give(sender["id"], "900000")
    await move(world, chart.TRANSFER_P2P, sender["id"], recipient["id"], "600000")
    found = await balance(world, sender["id"])
    assert (found["balance"], found["available"]) == ("900000.00", "297000.00")
    assert found["held"] == "603000.00"


async def test_agents_processors_and_partners(world: World) -> None:
    seller, bank, shop = await agent(world), await partner(world), await processor(world)
    subscriber = await world.subscriber()
    await move(world, chart.AGENT_FUND, "cash", seller, "500")
    await move(world, chart.AGENT_CASHIN, seller, subscriber["id"], "100")
    await move(world, chart.PARTNER_DEPOSIT, "cash", bank, "70")
    await move(world, chart.POS_PAYMENT, await world.card(subscriber["id"]), shop, "50")
    assert (await balance(world, seller))["balance"] == "400.00"  # the float, not the commission
    assert (await balance(world, bank))["balance"] == "70.00"
    assert (await balance(world, shop))["balance"] == "49.50"


async def test_nobodys_balance_is_not_found(client: httpx2.AsyncClient, world: World) -> None:
    subscriber = await world.subscriber()
    for user_id, code in {
        "sub_0000000000001": "SUBSCRIBER_NOT_FOUND",
        "sub_1": "SUBSCRIBER_NOT_FOUND",
        "agt_" + subscriber["id"][4:]: "AGENT_NOT_FOUND",
        "prc_": "PROCESSOR_NOT_FOUND",
        "ptn_zzzzzzzzzzzzz": "PARTNER_NOT_FOUND",
        subscriber["account_id"]: "ACCOUNT_NOT_FOUND",
        "nobody": "ACCOUNT_NOT_FOUND",
    }.items():
        answer = await client.get(f"{URL}/{user_id}", auth=world.service())
        assert (answer.status_code, answer.json()["code"]) == (404, code), user_id


async def test_a_restricted_subscribers_balance_is_closed(world: World) -> None:
    subscriber = await world.restricted_subscriber(balance="5")
    for caller in (await world.api_key("balance:read"), await world.admin("C")):
        answer = await world.client.get(f"{URL}/{subscriber['id']}", auth=caller)
        assert (answer.status_code, answer.json()["code"]) == (403, "OTP_REQUIRED")
    assert (await balance(world, subscriber["id"]))["balance"] == "5.00"
    assert ids.decode(ids.SUBSCRIBER, subscriber["id"])
