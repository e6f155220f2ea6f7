"""A day of an agent: float in the morning, cash in and out over the counter, the sum at night."""

from decimal import Decimal

from journeys.adding_up import worth
from journeys.caller import details, done, refused
from journeys.staff import Admin
from world import PIN, WRONG_PIN


async def test_a_day_of_an_agent(ada: Admin) -> None:
    finance = await ada.hire("Fatmata", "F")
    counter = await ada.app("payments:write", "payments:read", "balance:read")
    phone_app = await ada.app("subscribers:write", "cards:write", "balance:read")

    # In the morning the super-agent gets float, and gives some to the new sub-agent.
    foday = await ada.agent(counter, "Foday Bangura")
    mariama = await ada.agent(counter, "Mariama Jalloh", parent=foday)
    receipt = await finance.fund_agent(foday, "10000.00")
    assert receipt["new_balance"] == "10,000.00 SLE"
    receipt = done(await foday.hand_on("1500", mariama, description="for the market stall"))
    assert (receipt["from_balance"], receipt["to_balance"]) == ("8,500.00 SLE", "1,500.00 SLE")
    assert refused(await mariama.hand_on("100", foday)) == (403, "FORBIDDEN")

    # Two customers: one is known by her name, the other lays his card on the counter.
    aminata = await phone_app.register("Aminata Kamara")
    ibrahim = await phone_app.register("Ibrahim Sesay")
    await ada.upload_cards("TAP-IBRAHIM")
    await phone_app.link("TAP-IBRAHIM", ibrahim)
    receipt = done(await mariama.cash_in("700.00", aminata))
    assert receipt["commission_earned"] == "7.00 SLE"
    assert receipt["agent_balance"] == "800.00 SLE"
    assert receipt["subscriber_balance"] == "700.00 SLE"
    receipt = done(await mariama.cash_in("250.50", ibrahim, card_serial=ibrahim.card))
    assert receipt["commission_earned"] == "2.51 SLE"  # half up
    assert await ibrahim.balance() == "250.50"

    # Somebody looks over her shoulder and tries her PIN; then she mistypes it herself.
    answer = await mariama.cash_in("10", aminata, agent_pin=WRONG_PIN)
    assert refused(answer) == (400, "INVALID_PIN")
    assert details(answer)["attempts_remaining"] == 2
    answer = await mariama.cash_in("10", aminata, agent_pin="0000")
    assert details(answer)["attempts_remaining"] == 1
    done(await mariama.cash_in("9.50", aminata))

    # The float runs out. Money of a customer who takes cash comes to the rescue.
    answer = await mariama.cash_in("600", ibrahim, request_id="too-much")
    assert refused(answer) == (402, "INSUFFICIENT_FLOAT")
    assert details(answer) == {"available": 540.0, "required": 600.0}
    answer = await mariama.cash_out("100", aminata, pin=WRONG_PIN)
    assert refused(answer) == (400, "INVALID_PIN")
    receipt = done(await mariama.cash_out("100", aminata, pin=PIN))
    assert receipt["agent_balance"] == "640.00 SLE"
    assert receipt["subscriber_balance"] == "609.50 SLE"
    done(await mariama.cash_in("600", ibrahim))
    # The software asks about the refused one again: it was refused, and stays so.
    again = await mariama.cash_in("600", ibrahim, request_id="too-much")
    assert refused(again) == (402, "INSUFFICIENT_FLOAT")
    assert again.headers["Idempotent-Replayed"] == "true"

    # In the evening the commission is paid out, once.
    assert await mariama.purse() == ("40.00", "15.51")
    receipt = done(await finance.post(f"agents/{mariama.id}/payout-commission"))
    assert (receipt["amount"], receipt["float_balance"]) == ("15.51 SLE", "55.51 SLE")
    answer = await finance.post(f"agents/{mariama.id}/payout-commission")
    assert refused(answer) == (402, "INSUFFICIENT_FUNDS")

    # What she has is what her history says, and every line of it says what was left then.
    history = await mariama.history(mariama.id)
    assert await mariama.purse() == ("55.51", "0.00")
    assert worth(history) == Decimal("55.51")
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
    assert await foday.purse() == ("8500.00", "0.00")
    assert worth(await foday.history(foday.id)) == Decimal("8500.00")
    for customer in (aminata, ibrahim):
        assert worth(await counter.history(customer.id)) == Decimal(await customer.balance())

    # She stops working here: her float goes first.
    answer = await ada.post(f"agents/{mariama.id}/terminate", reason="moves to Bo")
    assert refused(answer) == (409, "NOT_CLOSABLE")
    done(await mariama.cash_in("55.51", aminata))
    done(await ada.post(f"agents/{mariama.id}/suspend", reason="counting the till"))
    assert refused(await mariama.cash_in("1", aminata)) == (403, "AGENT_NOT_ACTIVE")
    assert await mariama.purse() == ("0.00", "0.00")  # she had cashed out 100.00 there
