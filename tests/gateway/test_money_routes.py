"""Every route that moves money, repeated: the same answer, and the money moves once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import httpx2
import pytest

from tapgate.gateway import NOUNS
from world import PIN, World

MONEY_ROUTES = {f"{e.method} {e.path}" for noun in NOUNS for e in noun if e.moves_money}

#: A partner's reference does what a request id does elsewhere; see the tests of partners.
BY_REFERENCE = {"POST /api/v1/webhooks/partners/{partner_id}"}


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


def test_no_route_is_forgotten() -> None:
    assert set(CASES) | BY_REFERENCE == MONEY_ROUTES | BY_REFERENCE


async def _send(world: World, case: Case, name: str, **fields: Any) -> httpx2.Response:
    return await world.client.post(
        case.path, json=case.body | {"request_id": name} | fields, auth=case.auth
    )


async def _entries(world: World) -> int:
    count: int = await world.services.database.fetchval("SELECT count(*) FROM entries")
    return count


async def _transactions(world: World, name: str) -> int:
    count: int = await world.services.database.fetchval(
        "SELECT count(*) FROM transactions WHERE request_id = $1", name
    )
    return count


every_route = pytest.mark.parametrize("route", sorted(CASES))


@every_route
async def test_a_repetition_gets_the_first_answer_and_moves_nothing(
    world: World, route: str
) -> None:
    case = await CASES[route](world)
    first = await _send(world, case, "one")
    assert first.status_code == 200, first.text
    assert {"success", "message", "transaction_id", "status"} <= set(first.json())
    moved = await _entries(world)
    again = await _send(world, case, "one")
    assert (again.status_code, again.json()) == (200, first.json())
    assert again.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first.headers
    assert await _entries(world) == moved


@every_route
async def test_the_same_name_for_another_request_is_refused(world: World, route: str) -> None:
    case = await CASES[route](world)
    assert (await _send(world, case, "one")).status_code == 200
    moved = await _entries(world)
    another = case._replace(path=case.other_path or case.path)
    other = await _send(world, another, "one", **case.other)
    assert (other.status_code, other.json()["code"]) == (409, "DUPLICATE_REQUEST")
    assert await _entries(world) == moved


@every_route
async def test_another_currency_is_refused_and_the_own_one_says_nothing_new(
    world: World, route: str
) -> None:
    case = await CASES[route](world)
    moved = await _entries(world)
    other = await _send(world, case, "one", currency="USD")
    assert (other.status_code, other.json()["code"]) == (422, "CURRENCY_NOT_SUPPORTED")
    assert await _entries(world) == moved
    first = await _send(world, case, "one")
    again = await _send(world, case, "one", currency="SLE")
    assert (again.status_code, again.json()) == (200, first.json())


@every_route
async def test_what_is_missing_is_told_before_what_is_not_acceptable(
    world: World, route: str
) -> None:
    case = await CASES[route](world)
    answer = await world.client.post(
        case.path,
        json=case.body | {"request_id": "one", "amount": "1e3", "currency": "USD"},
        auth=case.auth,
        headers={"Idempotency-Key": "two"},
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")


@every_route
async def test_twins_at_once_move_money_once(world: World, route: str) -> None:
    case = await CASES[route](world)
    answers = await asyncio.gather(*(_send(world, case, "one") for _ in range(10)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    replays = [answer for answer in answers if "Idempotent-Replayed" in answer.headers]
    assert len(replays) == 9
    assert await _transactions(world, "one") == 1


@every_route
async def test_a_decline_is_recorded_once_and_answered_again(world: World, route: str) -> None:
    case = await CASES[route](world)
    if case.decline is not None:
        await case.decline()
    first = await _send(world, case, "one", **case.declined)
    assert first.status_code in (402, 403), first.text
    moved = await _entries(world)
    again = await _send(world, case, "one", **case.declined)
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert again.headers["Idempotent-Replayed"] == "true"
    assert await _entries(world) == moved
    status = await world.services.database.fetchval(
        "SELECT status FROM transactions WHERE request_id = 'one'"
    )
    assert status == "failed"
