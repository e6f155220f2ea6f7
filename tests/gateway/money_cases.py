"""Every route that moves money, each with a request that is ready to be sent."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import httpx2

from world import PIN, World


class Case(NamedTuple):
    """One request, ready to be sent. `other` are fields, or `other_path` a path, that make it
    another request; `declined` are those that make the ledger decline it, and `decline` what else
    must have happened."""

    path: str
    body: dict[str, Any]
    auth: Any
    other: dict[str, Any]
    declined: dict[str, Any]
    decline: Callable[[], Awaitable[Any]] | None = None
    other_path: str | None = None


Prepare = Callable[[World], Awaitable[Case]]
CASES: dict[str, Prepare] = {}


def case(*names: str) -> Callable[[Prepare], Prepare]:
    def add(prepare: Prepare) -> Prepare:
        CASES.update(dict.fromkeys((f"POST {name}" for name in names), prepare))
        return prepare

    return add


async def _post(world: World, path: str, **body: Any) -> dict[str, Any]:
    answer = await world.client.post(path, json=body, auth=await world.admin())
    assert answer.is_success, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def _agent(world: World, **fields: Any) -> str:
    body = {
        "agent_type": "super_agent",
        "name": "Sorie",
        "phone_number": world.phone(),
        "pin": PIN,
        **fields,
    }
    agent_id: str = (await _post(world, "/api/v1/agents", **body))["agent_id"]
    if fields.get("agent_type") != "sub_agent":
        await _post(world, f"/api/v1/agents/{agent_id}/fund", amount="1000")
    return agent_id


@case("/api/v1/wallet/transfer-p2p")
async def p2p(world: World) -> Case:
    sender, recipient = await world.subscriber(balance="1000"), await world.subscriber()
    body = {
        "sender_id": sender["id"],
        "recipient_card_serial": await world.card(recipient["id"]),
        "amount": "100",
        "pin": PIN,
    }
    return Case(
        "/api/v1/wallet/transfer-p2p",
        body,
        await world.api_key("payments:write"),
        other={"memo": "rent"},
        declined={"amount": "5000"},
    )


@case("/api/v1/wallet/transfer")
async def transfer(world: World) -> Case:
    sender, recipient = await world.subscriber(balance="1000"), await world.subscriber()
    body = {
        "from_account_id": sender["account_id"],
        "to_account_id": recipient["account_id"],
        "amount": "100",
    }
    return Case(
        "/api/v1/wallet/transfer",
        body,
        await world.admin("F"),
        other={"description": "rent"},
        declined={"amount": "5000"},
    )


@case("/api/v1/wallet/fund-from-partner")
async def fund_from_partner(world: World) -> Case:
    subscriber = await world.subscriber()
    partner = (await _post(world, "/api/v1/admin/partners", name="Remit"))["partner"]["id"]
    await _post(world, f"/api/v1/admin/partners/{partner}/fund", amount="1000")
    body = {
        "subscriber_id": subscriber["id"],
        "partner_id": partner,
        "partner_reference": "R-1",
        "amount": "100",
    }
    return Case(
        "/api/v1/wallet/fund-from-partner",
        body,
        await world.api_key("payments:write"),
        other={"partner_reference": "R-2"},
        declined={"amount": "5000"},
    )


@case("/api/v1/agents/{id}/fund")
async def fund_agent(world: World) -> Case:
    agent = await _agent(world)
    path = f"/api/v1/agents/{agent}"
    return Case(
        f"{path}/fund",
        {"amount": "100"},
        await world.admin("F"),
        other={"description": "float"},
        declined={},
        decline=lambda: _post(world, f"{path}/suspend", reason="audit"),
    )


@case("/api/v1/agents/{id}/payout-commission")
async def payout_commission(world: World) -> Case:
    agent, subscriber = await _agent(world), await world.subscriber()
    await _post(
        world,
        "/api/v1/agents/cashin",
        agent_id=agent,
        subscriber_id=subscriber["id"],
        amount="100",
        agent_pin=PIN,
    )
    path = f"/api/v1/agents/{agent}"
    return Case(
        f"{path}/payout-commission",
        {},
        await world.admin("F"),
        other={},
        declined={},
        decline=lambda: _post(world, f"{path}/suspend", reason="audit"),
        other_path=f"/api/v1/agents/{await _agent(world)}/payout-commission",
    )


@case("/api/v1/agents/cashin")
async def cash_in(world: World) -> Case:
    body = {
        "agent_id": await _agent(world),
        "subscriber_id": (await world.subscriber())["id"],
        "amount": "100",
        "agent_pin": PIN,
    }
    return Case(
        "/api/v1/agents/cashin",
        body,
        await world.api_key("payments:write"),
        other={"amount": "101"},
        declined={"amount": "5000"},
    )


@case("/api/v1/agents/cashout")
async def cash_out(world: World) -> Case:
    body = {
        "agent_id": await _agent(world),
        "subscriber_id": (await world.subscriber(balance="1000"))["id"],
        "amount": "100",
        "agent_pin": PIN,
        "pin": PIN,
    }
    return Case(
        "/api/v1/agents/cashout",
        body,
        await world.api_key("payments:write"),
        other={"amount": "101"},
        declined={"amount": "5000"},
    )


@case("/api/v1/agents/transfer")
async def agent_transfer(world: World) -> Case:
    parent = await _agent(world)
    body = {
        "from_agent_id": parent,
        "to_agent_id": await _agent(world, agent_type="sub_agent", parent_agent_id=parent),
        "amount": "100",
        "pin": PIN,
    }
    return Case(
        "/api/v1/agents/transfer",
        body,
        await world.api_key("payments:write"),
        other={"description": "week 7"},
        declined={"amount": "5000"},
    )


async def _payment(world: World, path: str) -> Case:
    subscriber = await world.subscriber(balance="300")
    body = {"card_serial": await world.card(subscriber["id"]), "amount": "100"}
    return Case(
        path,
        body,
        await world.processor(),
        other={"transaction_ref": "17"},
        declined={"amount": "400"},
    )


@case("/api/v1/pos/payment")
async def pos_payment(world: World) -> Case:
    return await _payment(world, "/api/v1/pos/payment")


@case("/api/v1/payment")
async def in_app_payment(world: World) -> Case:
    return await _payment(world, "/api/v1/payment")


@case("/payment")
async def in_app_payment_short(world: World) -> Case:
    return await _payment(world, "/payment")


async def _refund(world: World, path: str) -> Case:
    """Declined: the merchant has nothing left to give back."""
    paid = await _payment(world, "/api/v1/pos/payment")
    answer = await world.client.post(
        paid.path, json=paid.body | {"request_id": "paid"}, auth=paid.auth
    )
    body = {
        "original_transaction_id": answer.json()["transaction_id"],
        "amount": "10",
        "reason": "returned",
    }
    account = await world.account_of(paid.auth)
    other = await world.subscriber()
    return Case(
        path,
        body,
        paid.auth,
        other={"reason": "another"},
        declined={},
        decline=lambda: _post(
            world,
            "/api/v1/wallet/transfer",
            from_account_id=account,
            to_account_id=other["account_id"],
            amount="99",
        ),
    )


@case("/api/v1/pos/refund")
async def pos_refund(world: World) -> Case:
    return await _refund(world, "/api/v1/pos/refund")


@case("/api/v1/payment/refund")
async def in_app_refund(world: World) -> Case:
    return await _refund(world, "/api/v1/payment/refund")


@case("/payment/refund")
async def in_app_refund_short(world: World) -> Case:
    return await _refund(world, "/payment/refund")


@case("/api/v1/processors/{id}/transfer")
async def processor_transfer(world: World) -> Case:
    paid = await _payment(world, "/api/v1/pos/payment")
    await world.client.post(paid.path, json=paid.body | {"request_id": "paid"}, auth=paid.auth)
    subscriber = await world.subscriber()
    return Case(
        f"/api/v1/processors/{await world.processor_of(paid.auth)}/transfer",
        {"subscriber_id": subscriber["id"], "amount": "10"},
        await world.admin("F"),
        other={"description": "payout"},
        declined={"amount": "5000"},
    )


@case("/api/v1/admin/partners/{id}/fund")
async def fund_partner(world: World) -> Case:
    partner = (await _post(world, "/api/v1/admin/partners", name="Remit"))["partner"]["id"]
    path = f"/api/v1/admin/partners/{partner}"
    return Case(
        f"{path}/fund",
        {"amount": "100"},
        await world.admin("F"),
        other={"amount": "101"},
        declined={},
        decline=lambda: _post(world, f"{path}/suspend", reason="audit"),
    )


#: Each once: `/payment` is the same path as `/api/v1/payment`.
ROUTES = sorted(name for name in CASES if name.startswith("POST /api/v1/"))


async def send(
    world: World,
    case: Case,
    name: str,
    *,
    client: httpx2.AsyncClient | None = None,
    **fields: Any,
) -> httpx2.Response:
    """Under that name, with other fields if any are given, to another process if one is."""
    return await (client or world.client).post(
        case.path, json=case.body | {"request_id": name} | fields, auth=case.auth
    )


async def entries(world: World) -> int:
    count: int = await world.services.database.fetchval("SELECT count(*) FROM entries")
    return count


async def transactions(world: World, name: str) -> int:
    count: int = await world.services.database.fetchval(
        "SELECT count(*) FROM transactions WHERE request_id = $1", name
    )
    return count
