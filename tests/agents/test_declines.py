"""Declines of agent operations: error codes and details."""

from typing import Any

import pytest

from agents.builders import (
    cash_in,
    cash_out,
    create_agent,
    create_sub_agent,
    parse_error,
    transfer_float,
)
from harness import WRONG_PIN, Harness
from tapgate import ids
from tapgate.edge.services import Services


async def test_insufficient_float_or_funds_is_declined_with_details(world: Harness) -> None:
    agent, customer = (
        await create_agent(world, balance="10"),
        await world.create_subscriber(balance="5"),
    )
    sub_agent = await create_sub_agent(world, agent)
    for answer, code, available, required in (
        (await cash_in(world, agent, customer, "10.01"), "INSUFFICIENT_FLOAT", 10.0, 10.01),
        (await transfer_float(world, agent, sub_agent, "11"), "INSUFFICIENT_FLOAT", 10.0, 11.0),
        (await cash_out(world, agent, customer, "6"), "INSUFFICIENT_FUNDS", 5.0, 6.0),
    ):
        assert parse_error(answer) == (402, code)
        assert answer.json()["details"] == {"available": available, "required": required}


async def test_unknown_agents_customers_and_cards_are_not_found(world: Harness) -> None:
    agent, customer = (
        await create_agent(world, balance="10"),
        await world.create_subscriber(balance="5"),
    )
    sub_agent = await create_sub_agent(world, agent)
    nobody: dict[str, Any] = {"id": ids.encode(ids.AGENT, 1)}
    # An id of another kind is unknown here, even if it exists.
    for unknown in (nobody, {"id": "agt_1"}, customer):
        for answer in (
            await cash_in(world, unknown, customer, "1"),
            await cash_out(world, unknown, customer, "1"),
            await transfer_float(world, unknown, sub_agent, "1"),
            await transfer_float(world, agent, unknown, "1"),
        ):
            assert parse_error(answer) == (404, "AGENT_NOT_FOUND")
    for pay in (cash_in, cash_out):
        for unknown in ({"id": ids.encode(ids.SUBSCRIBER, 1)}, {"id": "sub_1"}, agent):
            answer = await pay(world, agent, unknown, "1")
            assert parse_error(answer) == (404, "SUBSCRIBER_NOT_FOUND")
        by_card = {"subscriber_id": None, "card_serial": "TAP-NONE"}
        assert parse_error(await pay(world, agent, customer, "1", **by_card)) == (
            404,
            "CARD_NOT_FOUND",
        )


async def test_exactly_one_of_subscriber_id_and_card_serial_is_required(world: Harness) -> None:
    agent, customer = (
        await create_agent(world, balance="10"),
        await world.create_subscriber(balance="5"),
    )
    for pay in (cash_in, cash_out):
        # Missing fields are reported before invalid values.
        answer = await pay(world, agent, customer, "-1", subscriber_id=None)
        assert parse_error(answer) == (400, "INVALID_REQUEST")
        assert list(answer.json()["details"]["fields"]) == ["subscriber_id"]
        answer = await pay(world, agent, customer, "1", card_serial="TAP-1")
        assert parse_error(answer) == (422, "VALIDATION_FAILED")
        assert list(answer.json()["details"]["fields"]) == ["card_serial"]


@pytest.mark.parametrize(
    ("field", "value", "status"),
    [
        ("agent_id", None, 400),
        ("agent_id", "", 422),
        ("amount", None, 400),
        ("amount", 5, 400),
        ("amount", "0", 422),
        ("amount", "1.001", 422),
        ("agent_pin", None, 400),
        ("agent_pin", "59", 422),
        ("pin", None, 400),
        ("pin", "x", 422),
        ("request_id", "r" * 65, 422),
    ],
)
async def test_invalid_cash_out_field_is_rejected(
    world: Harness, field: str, value: Any, status: int
) -> None:
    agent, customer = await create_agent(world), await world.create_subscriber()
    answer = await cash_out(world, agent, customer, **{"amount": "1", field: value})
    assert answer.status_code == status, answer.text
    assert list(answer.json()["details"]["fields"]) == [field]


async def test_blocked_customers_and_cards_are_declined(world: Harness) -> None:
    agent, customer = (
        await create_agent(world, balance="10"),
        await world.create_subscriber(balance="5"),
    )
    blocked_card = {
        "subscriber_id": None,
        "card_serial": await world.create_card(customer["id"], status="BLOCKED"),
    }
    for pay, party in ((cash_in, "receiver"), (cash_out, "sender")):
        answer = await pay(world, agent, customer, "1", **blocked_card)
        assert parse_error(answer) == (403, "CARD_NOT_ACTIVE")
        assert answer.json()["details"] == {"party": party}
    await world.client.post(
        f"/api/v1/subscribers/{customer['id']}/block",
        json={"reason": "r"},
        auth=await world.create_admin(),
    )
    for pay, party in ((cash_in, "receiver"), (cash_out, "sender")):
        answer = await pay(world, agent, customer, "1")
        assert parse_error(answer) == (403, "SUBSCRIBER_BLOCKED")
        assert answer.json()["details"] == {"party": party}


async def test_limits_apply_to_cash_out_and_the_maximum_balance_to_cash_in(
    world: Harness, services: Services
) -> None:
    agent, customer = await create_agent(world, balance="600000"), await world.create_subscriber()
    answer = await cash_in(world, agent, customer, "500000.01")
    assert parse_error(answer) == (403, "MAX_BALANCE_EXCEEDED")
    assert answer.json()["details"]["party"] == "receiver"
    assert (await cash_in(world, agent, customer, "500000")).status_code == 200
    answer = await cash_out(world, agent, customer, "50000.01")
    assert parse_error(answer) == (403, "TRANSACTION_LIMIT_EXCEEDED")
    for _ in range(2):
        assert (await cash_out(world, agent, customer, "50000")).status_code == 200
    answer = await cash_out(world, agent, customer, "0.01")
    assert parse_error(answer) == (403, "DAILY_LIMIT_EXCEEDED")
    await services.database.execute("UPDATE accounts SET day_used = 0, month_used = 100000000")
    answer = await cash_out(world, agent, customer, "0.01")
    assert parse_error(answer) == (403, "MONTHLY_LIMIT_EXCEEDED")


async def add_compliance_rule(services: Services, action: str) -> None:
    """Add a rule for cash-outs above 10.00, before the ledger loads its rules."""
    await services.database.execute(
        """INSERT INTO compliance_rules
               (id, name, type, transaction_types, threshold, action, severity)
           VALUES ($1, 'Cash', 'AMOUNT_THRESHOLD', '{agent_cashout}', 1000, $2, 'LOW')""",
        services.new_id(),
        action,
    )


async def test_cash_out_blocked_by_a_compliance_rule_is_declined(
    world: Harness, services: Services
) -> None:
    await add_compliance_rule(services, "block")
    agent, customer = await create_agent(world), await world.create_subscriber(balance="100")
    assert parse_error(await cash_out(world, agent, customer, "10.01")) == (
        403,
        "COMPLIANCE_REJECTED",
    )
    assert (await cash_out(world, agent, customer, "10")).status_code == 200


async def test_cash_out_under_review_does_not_credit_the_agent(
    world: Harness, services: Services
) -> None:
    await add_compliance_rule(services, "review")
    agent, customer = await create_agent(world), await world.create_subscriber(balance="100")
    receipt = (await cash_out(world, agent, customer, "60")).json()
    assert receipt["status"] == "under_review"
    assert (receipt["agent_balance"], receipt["subscriber_balance"]) == ("0.00 SLE", "40.00 SLE")


async def test_float_transfers_only_to_own_sub_agents(world: Harness) -> None:
    parent, stranger = await create_agent(world, balance="100"), await create_agent(world)
    own, others = await create_sub_agent(world, parent), await create_sub_agent(world, stranger)
    for sender, receiver in ((parent, stranger), (parent, others), (own, parent), (own, others)):
        # Checked before the PIN, so no PIN attempt is consumed.
        answer = await transfer_float(world, sender, receiver, "5", pin=WRONG_PIN)
        assert parse_error(answer) == (403, "FORBIDDEN")
        assert answer.json()["details"]["required"]
    assert parse_error(await transfer_float(world, parent, parent, "5")) == (422, "SELF_TRANSFER")
    assert (await transfer_float(world, parent, own, "5")).status_code == 200
    (entry, *_) = await world.list_audit_entries("POST /api/v1/agents/transfer", "access.denied")
    assert entry["result"] == "denied"
