"""Cash-out requests: asking, confirmation, decline, expiry, and parallel answers."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from builders.cash_out_requests import (
    CASH_OUT_REQUESTS_URL,
    ask_for_cash_out,
    confirm_cash_out,
    create_cash_out_request,
    decline_cash_out,
    get_cash_out_status,
)
from builders.participants import (
    AGENT_PIN,
    cash_in,
    change_status,
    create_agent,
    get_balances,
    get_wallet_balance,
)
from harness import WRONG_PIN, Harness, parse_error
from tapgate_client import ids


async def create_people(harness: Harness) -> tuple[dict[str, Any], dict[str, Any]]:
    return await create_agent(harness), await harness.create_subscriber(balance="100")


async def list_open(harness: Harness, customer: dict[str, Any]) -> list[dict[str, Any]]:
    url = f"/api/v1/subscribers/{customer['id']}/cash-out-requests"
    response = await harness.get(url, auth=harness.get_service_auth())
    data: list[dict[str, Any]] = response.json()["data"]
    return data


async def test_customer_gets_a_request_and_no_money_moves(harness: Harness) -> None:
    agent, customer = await create_people(harness)
    item = await create_cash_out_request(harness, agent, customer)
    assert item["id"].startswith("cor_")
    assert (item["status"], item["amount"], item["transaction_id"]) == ("open", "10.00", None)
    assert (item["agent_name"], item["subscriber_name"]) == ("Foday B.", "Aminata K.")
    assert await list_open(harness, customer) == [item]
    assert await get_wallet_balance(harness, customer) == "100.00"
    sent = await harness.list_pending_messages(customer["phone_number"], "cash_out_request")
    assert sent == [["Aminata K.", "Foday B.", "10.00 SLE"]]


async def test_confirmation_moves_the_money_and_tells_the_agent(harness: Harness) -> None:
    agent, customer = await create_people(harness)
    item = await create_cash_out_request(harness, agent, customer)
    receipt = (await confirm_cash_out(harness, item, request_id="confirm-1")).json()
    assert (receipt["agent_balance"], receipt["subscriber_balance"]) == ("10.00 SLE", "90.00 SLE")
    assert await get_cash_out_status(harness, item) == "confirmed"
    assert await list_open(harness, customer) == []
    ((amount, name, outcome),) = await harness.list_pending_messages(
        agent["phone_number"], "cash_out_update"
    )
    assert (amount, name) == ("10.00 SLE", "Aminata K.")
    assert receipt["transaction_id"] in outcome and "Hand out the cash" in outcome
    replay = await confirm_cash_out(harness, item, request_id="confirm-1")
    assert replay.json() == receipt
    assert await get_balances(harness, agent) == ("10.00", "0.00")
    again = await confirm_cash_out(harness, item)
    assert parse_error(again) == (409, "CASH_OUT_REQUEST_NOT_OPEN")


async def test_declined_request_tells_the_agent(harness: Harness) -> None:
    agent, customer = await create_people(harness)
    item = await create_cash_out_request(harness, agent, customer)
    assert (await decline_cash_out(harness, item)).json()["status"] == "declined"
    ((*_, outcome),) = await harness.list_pending_messages(agent["phone_number"], "cash_out_update")
    assert "declined" in outcome
    for response in (await confirm_cash_out(harness, item), await decline_cash_out(harness, item)):
        assert parse_error(response) == (409, "CASH_OUT_REQUEST_NOT_OPEN")
    assert await get_wallet_balance(harness, customer) == "100.00"


async def end_in(harness: Harness, item: dict[str, Any], milliseconds: int) -> None:
    """Move the end of a request. The ledger keeps its own clock."""
    await harness.database.execute(
        """UPDATE cash_out_requests SET expires_at = clock_timestamp() + $2
           WHERE id = $1""",
        ids.decode(ids.CASH_OUT_REQUEST, item["id"]),
        timedelta(milliseconds=milliseconds),
    )


async def test_request_expires_after_5_minutes(harness: Harness) -> None:
    agent, customer = await create_people(harness)
    item = await create_cash_out_request(harness, agent, customer)
    created, expires = (datetime.fromisoformat(item[key]) for key in ("created_at", "expires_at"))
    assert expires - created == timedelta(minutes=5)
    await end_in(harness, item, 0)
    assert await get_cash_out_status(harness, item) == "expired"
    assert await list_open(harness, customer) == []
    for response in (await confirm_cash_out(harness, item), await decline_cash_out(harness, item)):
        assert parse_error(response) == (409, "CASH_OUT_REQUEST_NOT_OPEN")
    assert await get_wallet_balance(harness, customer) == "100.00"
    await create_cash_out_request(harness, agent, customer)


async def test_customer_has_one_open_request(harness: Harness) -> None:
    agent, customer = await create_people(harness)
    other = await create_agent(harness)
    responses = await asyncio.gather(
        *(ask_for_cash_out(harness, each, customer) for each in (agent, other) * 2)
    )
    statuses = sorted(response.status_code for response in responses)
    assert statuses == [201, 409, 409, 409]
    assert len(await list_open(harness, customer)) == 1
    response = await ask_for_cash_out(harness, agent, customer)
    assert parse_error(response) == (409, "CASH_OUT_REQUEST_OPEN")


async def test_repeated_request_asks_once(harness: Harness) -> None:
    agent, customer = await create_people(harness)
    responses = await asyncio.gather(
        *(ask_for_cash_out(harness, agent, customer, request_id="ask-1") for _ in range(4))
    )
    assert sorted(response.status_code for response in responses) == [200, 200, 200, 201]
    assert len({response.json()["id"] for response in responses}) == 1
    other = await ask_for_cash_out(harness, agent, customer, request_id="ask-1", amount="11")
    assert parse_error(other) == (409, "DUPLICATE_REQUEST")
    response = await ask_for_cash_out(harness, agent, customer, request_id=None)
    assert parse_error(response) == (400, "INVALID_REQUEST")


async def test_agents_pin_is_verified_and_locks(harness: Harness) -> None:
    agent, customer = await create_people(harness)
    for _ in range(3):
        response = await ask_for_cash_out(harness, agent, customer, agent_pin=WRONG_PIN)
        assert parse_error(response) == (400, "INVALID_PIN")
    response = await ask_for_cash_out(harness, agent, customer)
    assert parse_error(response) == (403, "ACCOUNT_LOCKED")
    assert await list_open(harness, customer) == []


async def test_wrong_customer_pin_leaves_the_request_open(harness: Harness) -> None:
    agent, customer = await create_people(harness)
    item = await create_cash_out_request(harness, agent, customer)
    for pin in (WRONG_PIN, AGENT_PIN):
        response = await confirm_cash_out(harness, item, pin=pin)
        assert parse_error(response) == (400, "INVALID_PIN")
    assert (await confirm_cash_out(harness, item)).status_code == 200


async def test_customer_without_funds_can_still_decline(harness: Harness) -> None:
    agent, customer = await create_people(harness)
    item = await create_cash_out_request(harness, agent, customer, amount="100.01")
    assert parse_error(await confirm_cash_out(harness, item)) == (402, "INSUFFICIENT_FUNDS")
    assert (await decline_cash_out(harness, item)).status_code == 200


async def test_card_names_the_customer(harness: Harness) -> None:
    agent, customer = await create_people(harness)
    serial = await harness.create_card(customer["id"])
    fields = {"subscriber_id": None, "card_serial": serial}
    item = await create_cash_out_request(harness, agent, customer, **fields)
    assert (item["subscriber_id"], item["card_serial"]) == (customer["id"], serial)
    assert (await confirm_cash_out(harness, item)).status_code == 200
    fields["card_serial"] = "UNKNOWN-1"
    response = await ask_for_cash_out(harness, agent, customer, **fields)
    assert parse_error(response) == (404, "CARD_NOT_FOUND")


async def test_unknown_or_suspended_parties_are_refused(harness: Harness) -> None:
    agent, customer = await create_people(harness)
    response = await ask_for_cash_out(harness, agent, {"id": "sub_0000000000001"})
    assert parse_error(response) == (404, "SUBSCRIBER_NOT_FOUND")
    response = await ask_for_cash_out(harness, {"id": "agt_0000000000001"}, customer)
    assert parse_error(response) == (404, "AGENT_NOT_FOUND")
    item = await create_cash_out_request(harness, agent, customer)
    await change_status(harness, agent, "suspend")
    assert parse_error(await ask_for_cash_out(harness, agent, customer)) == (
        403,
        "AGENT_NOT_ACTIVE",
    )
    assert parse_error(await confirm_cash_out(harness, item)) == (403, "AGENT_NOT_ACTIVE")
    missing = {"id": "cor_0000000000001"}
    for response in (
        await confirm_cash_out(harness, missing),
        await decline_cash_out(harness, missing),
    ):
        assert parse_error(response) == (404, "CASH_OUT_REQUEST_NOT_FOUND")


@pytest.mark.parametrize("has_decline", [False, True])
async def test_parallel_answers_have_one_winner(harness: Harness, has_decline: bool) -> None:
    agent, customer = await create_people(harness)
    confirmed = 0
    for _ in range(4):
        item = await create_cash_out_request(harness, agent, customer)
        answers = [confirm_cash_out(harness, item) for _ in range(3)]
        if has_decline:
            answers.append(decline_cash_out(harness, item))
        responses = await asyncio.gather(*answers)
        statuses = [response.status_code for response in responses]
        assert sorted(statuses) == [200] + [409] * (len(answers) - 1), statuses
        is_confirmed = statuses.index(200) < 3
        confirmed += is_confirmed
        status = await get_cash_out_status(harness, item)
        assert status == ("confirmed" if is_confirmed else "declined")
    assert await get_balances(harness, agent) == (f"{10 * confirmed}.00", "0.00")


@pytest.mark.parametrize("milliseconds", [0, 4, 8, 15, 30])
async def test_confirmation_racing_expiry_has_one_outcome(
    harness: Harness, milliseconds: int
) -> None:
    """A confirmation at the end moves the money, or the request expires and the next one opens."""
    agent, customer = await create_people(harness)
    item = await create_cash_out_request(harness, agent, customer)
    await end_in(harness, item, milliseconds)
    responses = await asyncio.gather(
        *(confirm_cash_out(harness, item) for _ in range(3)),
        ask_for_cash_out(harness, agent, customer),
    )
    moved = sum(response.status_code == 200 for response in responses[:3])
    assert moved <= 1
    assert (await get_balances(harness, agent))[0] == ("10.00" if moved else "0.00")
    assert await get_cash_out_status(harness, item) == ("confirmed" if moved else "expired")


async def test_agents_pay_out_commission_with_the_pin(harness: Harness) -> None:
    agent, customer = await create_people(harness)
    agent = await create_agent(harness, balance="500")
    await cash_in(harness, agent, customer, "100")
    url, auth = f"/api/v1/agents/{agent['id']}/payout-commission", harness.get_service_auth()
    response = await harness.post(url, json={}, auth=auth)
    assert parse_error(response) == (400, "INVALID_REQUEST")
    response = await harness.post(url, json={"pin": WRONG_PIN}, auth=auth)
    assert parse_error(response) == (400, "INVALID_PIN")
    response = await harness.post(url, json={"pin": AGENT_PIN}, auth=auth)
    assert response.json()["float_balance"] == "401.00 SLE"


async def test_only_services_ask_and_confirm(harness: Harness) -> None:
    agent, customer = await create_people(harness)
    item = await create_cash_out_request(harness, agent, customer)
    admin = await harness.create_admin()
    url = f"{CASH_OUT_REQUESTS_URL}/{item['id']}"
    assert parse_error(await harness.get(url, auth=admin)) == (403, "FORBIDDEN")
