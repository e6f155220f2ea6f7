"""An agent's day: float, cash-in and cash-out at the counter, and commission in the evening."""

from decimal import Decimal

import pytest

from drivers.actors import Admin, require_error, require_error_details, require_success
from drivers.deployments import sum_history
from harness import PIN, WRONG_PIN

pytestmark = [pytest.mark.cash_in, pytest.mark.cash_out]


async def test_agent_day_from_float_to_commission_payout(ada: Admin) -> None:
    finance = await ada.create_admin("Fatmata", "F")
    counter = await ada.create_app("payments:write", "payments:read", "balance:read")
    phone_app = await ada.create_app("subscribers:write", "cards:write", "balance:read")

    # The super agent receives float and passes some on to a new sub-agent.
    foday = await ada.create_agent(counter, "Foday Bangura")
    mariama = await ada.create_agent(counter, "Mariama Jalloh", parent=foday)
    receipt = await finance.fund_agent(foday, "10000.00")
    assert receipt["new_balance"] == "10,000.00 SLE"
    receipt = require_success(
        await foday.transfer_float("1500", mariama, description="for the market stall")
    )
    assert (receipt["from_balance"], receipt["to_balance"]) == ("8,500.00 SLE", "1,500.00 SLE")
    assert require_error(await mariama.transfer_float("100", foday)) == (403, "FORBIDDEN")

    # One customer is identified by ID, the second by card.
    aminata = await phone_app.register_customer("Aminata Kamara")
    ibrahim = await phone_app.register_customer("Ibrahim Sesay")
    await ada.upload_cards("TAP-IBRAHIM")
    await phone_app.link_card("TAP-IBRAHIM", ibrahim)
    receipt = require_success(await mariama.cash_in("700.00", aminata))
    assert receipt["commission_earned"] == "7.00 SLE"
    assert receipt["agent_balance"] == "800.00 SLE"
    assert receipt["subscriber_balance"] == "700.00 SLE"
    receipt = require_success(await mariama.cash_in("250.50", ibrahim, card_serial=ibrahim.card))
    assert receipt["commission_earned"] == "2.51 SLE"  # rounded half up
    assert await ibrahim.get_balance() == "250.50"

    # Two wrong agent PINs, then the correct one.
    response = await mariama.cash_in("10", aminata, agent_pin=WRONG_PIN)
    assert require_error(response) == (400, "INVALID_PIN")
    assert require_error_details(response)["attempts_remaining"] == 2
    response = await mariama.cash_in("10", aminata, agent_pin="0000")
    assert require_error_details(response)["attempts_remaining"] == 1
    require_success(await mariama.cash_in("9.50", aminata))

    # The float runs out; a cash-out replenishes it.
    response = await mariama.cash_in("600", ibrahim, request_id="too-much")
    assert require_error(response) == (402, "INSUFFICIENT_FLOAT")
    assert require_error_details(response) == {"available": 540.0, "required": 600.0}
    response = await mariama.cash_out("100", aminata, pin=WRONG_PIN)
    assert require_error(response) == (400, "INVALID_PIN")
    receipt = require_success(await mariama.cash_out("100", aminata, pin=PIN))
    assert receipt["agent_balance"] == "640.00 SLE"
    assert receipt["subscriber_balance"] == "609.50 SLE"
    require_success(await mariama.cash_in("600", ibrahim))
    # A replay of the declined request returns the same decline.
    again = await mariama.cash_in("600", ibrahim, request_id="too-much")
    assert require_error(again) == (402, "INSUFFICIENT_FLOAT")
    assert again.headers["Idempotent-Replayed"] == "true"

    # The commission is paid out once.
    assert await mariama.get_balances() == ("40.00", "15.51")
    receipt = require_success(await finance.post(f"agents/{mariama.id}/payout-commission"))
    assert (receipt["amount"], receipt["float_balance"]) == ("15.51 SLE", "55.51 SLE")
    response = await finance.post(f"agents/{mariama.id}/payout-commission")
    assert require_error(response) == (402, "INSUFFICIENT_FUNDS")

    # The history adds up to the balance, and each line shows the balance after it.
    history = await mariama.list_transactions(mariama.id)
    assert await mariama.get_balances() == ("55.51", "0.00")
    assert sum_history(history) == Decimal("55.51")
    assert [(line["type"], line["status"], line["balance_after"]) for line in history] == [
        ("commission_payout", "completed", "55.51"),
        ("agent_cashin", "completed", "40.00"),
        ("agent_cashout", "completed", "640.00"),
        ("agent_cashin", "failed", None),
        ("agent_cashin", "completed", "540.00"),
        ("agent_cashin", "completed", "549.50"),
        ("agent_cashin", "completed", "800.00"),
        ("agent_transfer", "completed", "1500.00"),
    ]
    assert await foday.get_balances() == ("8500.00", "0.00")
    assert sum_history(await foday.list_transactions(foday.id)) == Decimal("8500.00")
    for customer in (aminata, ibrahim):
        assert sum_history(await counter.list_transactions(customer.id)) == Decimal(
            await customer.get_balance()
        )

    # An agent with float cannot be terminated.
    response = await ada.post(f"agents/{mariama.id}/terminate", reason="moves to Bo")
    assert require_error(response) == (409, "NOT_CLOSABLE")
    require_success(await mariama.cash_in("55.51", aminata))
    require_success(await ada.post(f"agents/{mariama.id}/suspend", reason="counting the till"))
    assert require_error(await mariama.cash_in("1", aminata)) == (403, "AGENT_NOT_ACTIVE")
    assert await mariama.get_balances() == ("0.00", "0.00")  # no commission: offset by the cash-out
