"""An agent's day at the counter, and an agent's life: profile, tier, rates and a forgotten PIN."""

from decimal import Decimal

import pytest

from drivers.actors import (
    Admin,
    new_phone_number,
    require_error,
    require_error_details,
    require_success,
)
from drivers.deployments import Deployment, sum_history
from harness import PIN, WRONG_PIN

pytestmark = [pytest.mark.cash_in, pytest.mark.cash_out]


async def test_agent_day_from_float_to_commission_payout(
    ada: Admin, deployment: Deployment
) -> None:
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
    # The float is now below the threshold: the agent and the super agent are notified.
    for phone_number in (mariama.phone, foday.phone):
        ((name, balance),) = await deployment.wait_for_messages(phone_number, "float_low")
        assert (name, balance) == ("Mariama J.", "800.00 SLE")
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
    # Replaying the declined request returns the same decline.
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
        found = sum_history(await counter.list_transactions(customer.id))
        expected = Decimal(await customer.get_balance())
        assert found == expected

    # Later cash-ins below the threshold sent no further message.
    assert len(await deployment.wait_for_messages(mariama.phone, "float_low")) == 1

    # An agent with float cannot be terminated.
    response = await ada.post(f"agents/{mariama.id}/terminate", reason="moves to Bo")
    assert require_error(response) == (409, "NOT_CLOSABLE")
    require_success(await mariama.cash_in("55.51", aminata))
    require_success(await ada.post(f"agents/{mariama.id}/suspend", reason="counting the till"))
    assert require_error(await mariama.cash_in("1", aminata)) == (403, "AGENT_NOT_ACTIVE")
    assert await mariama.get_balances() == ("0.00", "0.00")  # no commission: offset by the cash-out


async def test_agent_life_from_registration_to_a_new_pin(
    deployment: Deployment, ada: Admin
) -> None:
    support = await ada.create_admin("Sorie", "S")
    counter = await ada.create_app("payments:write", "payments:read", "balance:read")
    phone_app = await ada.create_app("subscribers:write", "cards:write", "balance:read")
    messenger = deployment.create_messenger_app()
    kadie = await ada.create_agent(counter, "Kadie Mansaray")
    url, aminata = f"agents/{kadie.id}", await phone_app.register_customer("Aminata Kamara")
    await ada.fund_agent(kadie, "5000.00")
    receipt = require_success(await kadie.cash_in("1000", aminata))
    assert receipt["commission_earned"] == "10.00 SLE"

    # The agent moves. Only a system admin may change the record.
    profile = {
        "business_name": "Mansaray Cash Point",
        "email": "kadie@example.com",
        "address": "4 Kissy Road, Freetown",
    }
    assert require_error(await support.put(url, **profile)) == (403, "FORBIDDEN")
    record = require_success(await ada.put(url, **profile))
    assert profile.items() <= record.items() and record["name"] == "Kadie Mansaray"
    for query in ({"phone_number": kadie.phone}, {"address": "kissy road"}):
        (found,) = require_success(await messenger.get("agents", **query))["data"]
        assert found["business_name"] == "Mansaray Cash Point"
    assert require_error(await messenger.get(url)) == (403, "FORBIDDEN")
    (payment,) = await counter.list_transactions(kadie.id, type="agent_cashin")
    assert payment["from"]["name"] == "Mansaray Cash Point"

    # The next cash-in earns the new tier's rate, then the rate from the new rules.
    require_success(await ada.put(url, commission_tier=3))
    receipt = require_success(await kadie.cash_in("1000", aminata))
    assert receipt["commission_earned"] == "20.00 SLE"
    rules = require_success(await ada.get("commission-rules"))["data"]
    for rule in rules:
        if (rule["type"], rule["tier"]) == ("agent_cashin", 3):
            rule["rate"] = "2.5"
    require_success(await ada.put("commission-rules", data=rules))
    receipt = require_success(await kadie.cash_in("1000", aminata))
    assert receipt["commission_earned"] == "25.00 SLE"

    # Three wrong PINs lock the agent out. Support sends a code, which the agent enters in chat.
    for _ in range(3):
        response = await kadie.cash_in("10", aminata, agent_pin=WRONG_PIN)
        assert require_error(response) == (400, "INVALID_PIN")
    assert require_error(await kadie.cash_in("10", aminata)) == (403, "ACCOUNT_LOCKED")
    require_success(await support.post(f"{url}/reset-pin"))
    assert require_error(await messenger.post(f"{url}/reset-pin")) == (429, "RATE_LIMITED")
    code = await deployment.get_pending_code(kadie.phone)
    mistyped = f"{(int(code) + 1) % 1_000_000:06d}"
    response = await messenger.post(f"{url}/reset-pin/confirm", otp=mistyped, new_pin="8264")
    assert require_error_details(response) == {"attempts_remaining": 2}
    response = await messenger.post(f"{url}/reset-pin/confirm", otp=code, new_pin="1234")
    assert require_error(response) == (422, "VALIDATION_FAILED")
    require_success(await messenger.post(f"{url}/reset-pin/confirm", otp=code, new_pin="8264"))
    response = await messenger.post(f"{url}/reset-pin/confirm", otp=code, new_pin="6419")
    assert require_error(response) == (400, "INVALID_OTP")

    # The counter works with the new PIN only.
    assert require_error(await kadie.cash_in("10", aminata)) == (400, "INVALID_PIN")
    kadie.pin = "8264"
    require_success(await kadie.cash_out("500", aminata))
    receipt = require_success(await kadie.cash_in("1500", aminata))
    assert receipt["commission_earned"] == "25.00 SLE"  # on 1,000: the rest was cashed out here
    assert await kadie.get_balances() == ("1000.00", "80.00")

    # A new phone number cannot be used to reset the PIN for a day.
    require_success(await ada.put(url, phone_number=new_phone_number()))
    assert require_error(await support.post(f"{url}/reset-pin")) == (403, "FORBIDDEN")
    events = {entry["event"] for entry in await ada.list_all("audit/logs", resource_id=kadie.id)}
    assert {"agent.updated", "agent.pin_reset_requested", "agent.pin_reset"} <= events
