"""Declines and rejections of agent operations: error codes and details."""

from typing import Any

from builders.participants import cash_in, cash_out, create_agent, create_sub_agent, transfer_float
from cases import each
from harness import Harness, parse_error
from tapgate.http.api.services import Services
from tapgate_client import ids


async def test_insufficient_float_or_funds_is_declined_with_details(harness: Harness) -> None:
    agent = await create_agent(harness, balance="10")
    customer = await harness.create_subscriber(balance="5")
    sub_agent = await create_sub_agent(harness, agent)
    for response, code, available, required in (
        (await cash_in(harness, agent, customer, "10.01"), "INSUFFICIENT_FLOAT", 10.0, 10.01),
        (await transfer_float(harness, agent, sub_agent, "11"), "INSUFFICIENT_FLOAT", 10.0, 11.0),
        (await cash_out(harness, agent, customer, "6"), "INSUFFICIENT_FUNDS", 5.0, 6.0),
    ):
        assert parse_error(response) == (402, code)
        assert response.json()["details"] == {"available": available, "required": required}


async def test_unknown_agents_customers_and_cards_are_not_found(harness: Harness) -> None:
    agent = await create_agent(harness, balance="10")
    customer = await harness.create_subscriber(balance="5")
    sub_agent = await create_sub_agent(harness, agent)
    unknown_agent: dict[str, Any] = {"id": ids.encode(ids.AGENT, 1)}
    # An existing subscriber's ID is not a valid agent ID.
    for unknown in (unknown_agent, {"id": "agt_1"}, customer):
        for response in (
            await cash_in(harness, unknown, customer, "1"),
            await cash_out(harness, unknown, customer, "1"),
            await transfer_float(harness, unknown, sub_agent, "1"),
            await transfer_float(harness, agent, unknown, "1"),
        ):
            assert parse_error(response) == (404, "AGENT_NOT_FOUND")
    for pay in (cash_in, cash_out):
        for unknown in ({"id": ids.encode(ids.SUBSCRIBER, 1)}, {"id": "sub_1"}, agent):
            response = await pay(harness, agent, unknown, "1")
            assert parse_error(response) == (404, "SUBSCRIBER_NOT_FOUND")
        by_card = {"subscriber_id": None, "card_serial": "TAP-NONE"}
        assert parse_error(await pay(harness, agent, customer, "1", **by_card)) == (
            404,
            "CARD_NOT_FOUND",
        )


async def test_exactly_one_of_subscriber_id_and_card_serial_is_required(harness: Harness) -> None:
    agent = await create_agent(harness, balance="10")
    customer = await harness.create_subscriber(balance="5")
    for pay in (cash_in, cash_out):
        # Missing fields are reported before invalid values.
        response = await pay(harness, agent, customer, "-1", subscriber_id=None)
        assert parse_error(response) == (400, "INVALID_REQUEST")
        assert list(response.json()["details"]["fields"]) == ["subscriber_id"]
        response = await pay(harness, agent, customer, "1", card_serial="TAP-1")
        assert parse_error(response) == (422, "VALIDATION_FAILED")
        assert list(response.json()["details"]["fields"]) == ["card_serial"]


@each(
    "field, value, status",
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
    harness: Harness, field: str, value: Any, status: int
) -> None:
    agent, customer = await create_agent(harness), await harness.create_subscriber()
    response = await cash_out(harness, agent, customer, **{"amount": "1", field: value})
    assert response.status_code == status, response.text
    assert list(response.json()["details"]["fields"]) == [field]


async def test_blocked_customers_and_cards_are_declined(harness: Harness) -> None:
    agent = await create_agent(harness, balance="10")
    customer = await harness.create_subscriber(balance="5")
    blocked_card = {
        "subscriber_id": None,
        "card_serial": await harness.create_card(customer["id"], status="BLOCKED"),
    }
    for pay, party in ((cash_in, "receiver"), (cash_out, "sender")):
        response = await pay(harness, agent, customer, "1", **blocked_card)
        assert parse_error(response) == (403, "CARD_NOT_ACTIVE")
        assert response.json()["details"] == {"party": party}
    await harness.post(
        f"/api/v1/subscribers/{customer['id']}/block",
        json={"reason": "r"},
        auth=await harness.create_admin(),
    )
    for pay, party in ((cash_in, "receiver"), (cash_out, "sender")):
        response = await pay(harness, agent, customer, "1")
        assert parse_error(response) == (403, "SUBSCRIBER_BLOCKED")
        assert response.json()["details"] == {"party": party}


async def add_compliance_rule(services: Services, action: str) -> None:
    """Add a rule for cash-outs above 10.00. Call this before the ledger loads its rules."""
    await services.database.execute(
        """INSERT INTO compliance_rules
               (id, name, type, transaction_types, threshold, action, severity)
           VALUES ($1, 'Cash', 'AMOUNT_THRESHOLD', '{agent_cashout}', 1000, $2, 'LOW')""",
        services.new_id(),
        action,
    )


async def test_cash_out_under_review_does_not_credit_the_agent(harness: Harness) -> None:
    await add_compliance_rule(harness.services, "review")
    agent, customer = await create_agent(harness), await harness.create_subscriber(balance="100")
    receipt = (await cash_out(harness, agent, customer, "60")).json()
    assert receipt["status"] == "under_review"
    assert (receipt["agent_balance"], receipt["subscriber_balance"]) == ("0.00 SLE", "40.00 SLE")
