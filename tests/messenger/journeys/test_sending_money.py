"""Money sent from a chat, checked at the gateway: once, whatever is repeated."""

import asyncio
from typing import Any

import pytest

from messenger.flows.stage import words
from messenger.journeys.phone import text
from messenger.journeys.town import Messenger, Town
from tapgate.messenger import runner
from tapgate.messenger.model.replies import OptionList, PinForm
from world import PIN, WRONG_PIN


@pytest.fixture
async def pair(town: Town) -> dict[str, Any]:
    world = town.world
    sender = await world.subscriber(balance="1000.00")
    recipient = await world.subscriber(first_name="Mary", last_name="Sesay")
    return {"sender": sender, "recipient": recipient, "serial": await world.card(recipient["id"])}


async def moved(town: Town, pair: dict[str, Any]) -> tuple[str, str, int]:
    """What both have, and how many transfers there are."""
    sender, recipient = pair["sender"]["id"], pair["recipient"]["id"]
    return (
        await town.balance(sender),
        await town.balance(recipient),
        len(await town.transfers(sender)),
    )


async def test_over_the_webhook_with_a_form_for_the_pin(
    town: Town, messenger: Messenger, pair: dict[str, Any]
) -> None:
    phone = messenger.phone(pair["sender"]["phone_number"])
    await phone.say("send money")
    await phone.say(pair["serial"])
    confirmation = await phone.say("500")
    for part in ("Mary S.", "500.00 SLE", "7.50 SLE", "507.50 SLE"):
        assert part in confirmation
    assert "Sesay" not in confirmation
    await phone.say("yes")
    status, screen = await phone.exchange("INIT")
    assert (status, screen["screen"]) == (200, "PIN")

    status, screen = await phone.fill_in({"pin": WRONG_PIN})
    assert (status, screen["screen"]) == (200, "PIN")
    assert "2" in screen["data"]["error_message"]
    assert await moved(town, pair) == ("1000.00", "0.00", 0)

    form = await phone.last(PinForm)
    status, screen = await phone.fill_in({"pin": PIN})
    assert (status, screen["screen"]) == (200, "SUCCESS")
    assert PIN not in words(str(screen))
    await phone.replies()
    assert await moved(town, pair) == ("492.50", "500.00", 1)
    (transfer,) = await town.transfers(pair["sender"]["id"])
    assert transfer["channel"] == "messaging"

    # The same form, the same yes, the same words once more.
    status, answer = await phone.fill_in({"pin": PIN}, form.token)
    assert status == 427
    assert answer["error_msg"]
    await phone.say("yes")
    await phone.say(PIN)
    assert await moved(town, pair) == ("492.50", "500.00", 1)


async def test_the_receipt_comes_in_the_chat(messenger: Messenger, pair: dict[str, Any]) -> None:
    phone = messenger.phone(pair["sender"]["phone_number"])
    await phone.say(f"send 500 to {pair['serial']}")
    await phone.say("yes")
    await phone.replies()
    await phone.fill_in({"pin": PIN})
    receipt = " ".join(getattr(reply, "text", "") for reply in await phone.replies())
    for part in ("500.00 SLE", "7.50 SLE", "492.50 SLE", "Mary S.", "txn_"):
        assert part in receipt


async def test_over_the_compatibility_endpoint(
    town: Town, messenger: Messenger, pair: dict[str, Any]
) -> None:
    phone = messenger.phone(pair["sender"]["phone_number"])
    assert "1,000.00 SLE" in await phone.ask("balance")
    await phone.ask("send money")
    await phone.ask(pair["recipient"]["phone_number"])
    confirmation = await phone.ask("500")
    for part in ("Mary S.", "500.00 SLE", "7.50 SLE", "507.50 SLE"):
        assert part in confirmation
    await phone.ask("yes")
    await phone.ask("yes")
    assert await moved(town, pair) == ("1000.00", "0.00", 0)
    receipt = await phone.ask(PIN)
    assert "492.50 SLE" in receipt
    assert PIN not in words(receipt)
    for repeated in (PIN, "yes", PIN):
        answer = await phone.ask(repeated)
        assert PIN not in words(answer)
    assert await moved(town, pair) == ("492.50", "500.00", 1)


async def test_yes_and_the_pin_many_times_at_once(
    town: Town, messenger: Messenger, pair: dict[str, Any]
) -> None:
    phone = messenger.phone(pair["sender"]["phone_number"])
    await phone.ask(f"send 100 to {pair['serial']}")
    await asyncio.gather(*(phone.ask("yes") for _ in range(5)))
    await asyncio.gather(*(phone.ask(PIN) for _ in range(5)))
    assert await moved(town, pair) == ("898.50", "100.00", 1)


async def test_a_form_filled_in_many_times_at_once(
    town: Town, messenger: Messenger, pair: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each waits for the one before, however busy the machine is.
    monkeypatch.setattr(runner, "_FORM_LEASE_TIMEOUT_SECONDS", 30.0)
    phone = messenger.phone(pair["sender"]["phone_number"])
    await phone.say(f"send 100 to {pair['serial']}")
    await phone.say("yes")
    answers = await asyncio.gather(*(phone.fill_in({"pin": PIN}) for _ in range(6)))
    assert sorted(status for status, _ in answers) == [200, 427, 427, 427, 427, 427]
    assert await moved(town, pair) == ("898.50", "100.00", 1)


async def test_over_both_endpoints_in_one_conversation(
    town: Town, messenger: Messenger, pair: dict[str, Any]
) -> None:
    phone = messenger.phone(pair["sender"]["phone_number"])
    await phone.say(f"send 100 to {pair['serial']}")
    await phone.say("yes")
    assert "SLE" in await phone.ask(PIN)
    assert await moved(town, pair) == ("898.50", "100.00", 1)


async def test_a_saved_recipient_is_found_again(
    town: Town, messenger: Messenger, pair: dict[str, Any]
) -> None:
    phone = messenger.phone(pair["sender"]["phone_number"])
    await phone.ask(f"send 100 to {pair['serial']}")
    await phone.ask("yes")
    await phone.ask(PIN)
    await phone.ask("1")  # keep the recipient, offered first
    choice = await phone.ask("send money")
    assert "1. Mary S." in choice
    await phone.ask("1")
    await phone.ask("50")
    await phone.ask("yes")
    await phone.ask(PIN)
    assert (await moved(town, pair))[1:] == ("150.00", 2)


async def test_without_forms_and_without_text_pins_nothing_can_be_paid_over_the_webhook(
    town: Town, pair: dict[str, Any]
) -> None:
    async with town.messenger(messenger_flow_private_key=None) as messenger:
        phone = messenger.phone(pair["sender"]["phone_number"])
        await phone.say(f"send 100 to {pair['serial']}")
        await phone.say("yes")
        await phone.say(PIN)
    assert await moved(town, pair) == ("1000.00", "0.00", 0)


async def test_a_pin_as_text_over_the_webhook_where_that_is_allowed(
    town: Town, pair: dict[str, Any]
) -> None:
    async with town.messenger(
        messenger_flow_private_key=None, messenger_text_pin=True
    ) as messenger:
        phone = messenger.phone(pair["sender"]["phone_number"])
        await phone.say(f"send 100 to {pair['serial']}")
        await phone.say("yes")
        assert "898.50 SLE" in await phone.say(PIN)
        stored = await messenger.services.database.fetch(
            "SELECT content, withheld FROM messenger.received"
        )
        assert [row["withheld"] for row in stored].count(True) == 1
    assert await moved(town, pair) == ("898.50", "100.00", 1)


async def test_deliveries_in_the_wrong_order_do_not_pay_twice(
    town: Town, pair: dict[str, Any]
) -> None:
    async with town.messenger(
        messenger_flow_private_key=None, messenger_text_pin=True
    ) as messenger:
        phone = messenger.phone(pair["sender"]["phone_number"])
        order = phone.message(text(f"send 100 to {pair['serial']}"))
        yes, pin = phone.message(text("yes")), phone.message(text(PIN))
        await phone.deliver(order)
        await phone.handled()
        for message in (pin, yes, pin, order, yes, pin):
            await phone.deliver(message)
            await phone.handled()
        assert (await moved(town, pair))[2] == 0
        # What came too late is asked for again, and then it is paid once.
        await phone.say("yes")
        await phone.say(PIN)
        await phone.deliver(yes, pin)
        await phone.handled()
    assert await moved(town, pair) == ("898.50", "100.00", 1)


async def test_a_late_yes_does_not_confirm_another_payment(
    town: Town, messenger: Messenger, pair: dict[str, Any]
) -> None:
    phone = messenger.phone(pair["sender"]["phone_number"])
    late = phone.message(text("yes"))
    await phone.say(f"send 900 to {pair['serial']}")
    await phone.deliver(late)
    await phone.handled()
    with pytest.raises(AssertionError, match="no PinForm"):
        await phone.last(PinForm)


async def test_a_button_of_an_earlier_question_has_expired(
    town: Town, messenger: Messenger, pair: dict[str, Any]
) -> None:
    phone = messenger.phone(pair["sender"]["phone_number"])
    await phone.say(f"send 900 to {pair['serial']}")
    old = await phone.last(OptionList)
    await phone.say("cancel")
    await phone.say(f"send 5 to {pair['serial']}")
    answer = await phone.send(
        {
            "type": "interactive",
            "interactive": {
                "type": "button_reply",
                "button_reply": {"id": old.options[0].id, "title": "x"},
            },
        }
    )
    assert "expired" in answer.lower()
    with pytest.raises(AssertionError, match="no PinForm"):
        await phone.last(PinForm)
