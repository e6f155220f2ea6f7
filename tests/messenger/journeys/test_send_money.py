"""Payments from the chat, verified at the gateway to be executed once."""

import asyncio
from typing import Any

import pytest

from harness import PIN, WRONG_PIN
from messenger.flows.builders import split_words
from messenger.journeys.phone import build_text
from messenger.journeys.services_driver import MessengerDriver, ServicesDriver
from tapgate.messenger import runner
from tapgate.messenger.model.replies import OptionList, PinForm


@pytest.fixture
async def pair(town: ServicesDriver) -> dict[str, Any]:
    world = town.harness
    sender = await world.create_subscriber(balance="1000.00")
    recipient = await world.create_subscriber(first_name="Mary", last_name="Sesay")
    return {
        "sender": sender,
        "recipient": recipient,
        "serial": await world.create_card(recipient["id"]),
    }


async def get_balances_and_count(
    town: ServicesDriver, pair: dict[str, Any]
) -> tuple[str, str, int]:
    """Return both balances and the number of transfers."""
    sender, recipient = pair["sender"]["id"], pair["recipient"]["id"]
    return (
        await town.get_balance(sender),
        await town.get_balance(recipient),
        len(await town.list_transfers(sender)),
    )


async def test_payment_over_the_webhook_with_a_pin_form(
    town: ServicesDriver, messenger: MessengerDriver, pair: dict[str, Any]
) -> None:
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    await phone.send_text("send money")
    await phone.send_text(pair["serial"])
    confirmation = await phone.send_text("500")
    for part in ("Mary S.", "500.00 SLE", "7.50 SLE", "507.50 SLE"):
        assert part in confirmation
    assert "Sesay" not in confirmation
    await phone.send_text("yes")
    status, screen = await phone.send_flow_request("INIT")
    assert (status, screen["screen"]) == (200, "PIN")

    status, screen = await phone.submit_form({"pin": WRONG_PIN})
    assert (status, screen["screen"]) == (200, "PIN")
    assert "2" in screen["data"]["error_message"]
    assert await get_balances_and_count(town, pair) == ("1000.00", "0.00", 0)

    form = await phone.get_last(PinForm)
    status, screen = await phone.submit_form({"pin": PIN})
    assert (status, screen["screen"]) == (200, "SUCCESS")
    assert PIN not in split_words(str(screen))
    await phone.read_replies()
    assert await get_balances_and_count(town, pair) == ("492.50", "500.00", 1)
    (transfer,) = await town.list_transfers(pair["sender"]["id"])
    assert transfer["channel"] == "messaging"

    # Repeating the form, the yes and the PIN has no effect.
    status, answer = await phone.submit_form({"pin": PIN}, form.token)
    assert status == 427
    assert answer["error_msg"]
    await phone.send_text("yes")
    await phone.send_text(PIN)
    assert await get_balances_and_count(town, pair) == ("492.50", "500.00", 1)


async def test_receipt_is_sent_in_the_chat(
    messenger: MessengerDriver, pair: dict[str, Any]
) -> None:
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    await phone.send_text(f"send 500 to {pair['serial']}")
    await phone.send_text("yes")
    await phone.read_replies()
    await phone.submit_form({"pin": PIN})
    receipt = " ".join(getattr(reply, "text", "") for reply in await phone.read_replies())
    for part in ("500.00 SLE", "7.50 SLE", "492.50 SLE", "Mary S.", "txn_"):
        assert part in receipt


async def test_payment_over_the_compatibility_endpoint(
    town: ServicesDriver, messenger: MessengerDriver, pair: dict[str, Any]
) -> None:
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    assert "1,000.00 SLE" in await phone.send_by_bridge("balance")
    await phone.send_by_bridge("send money")
    await phone.send_by_bridge(pair["recipient"]["phone_number"])
    confirmation = await phone.send_by_bridge("500")
    for part in ("Mary S.", "500.00 SLE", "7.50 SLE", "507.50 SLE"):
        assert part in confirmation
    await phone.send_by_bridge("yes")
    await phone.send_by_bridge("yes")
    assert await get_balances_and_count(town, pair) == ("1000.00", "0.00", 0)
    receipt = await phone.send_by_bridge(PIN)
    assert "492.50 SLE" in receipt
    assert PIN not in split_words(receipt)
    for repeated in (PIN, "yes", PIN):
        answer = await phone.send_by_bridge(repeated)
        assert PIN not in split_words(answer)
    assert await get_balances_and_count(town, pair) == ("492.50", "500.00", 1)


async def test_concurrent_confirmations_and_pins_pay_once(
    town: ServicesDriver, messenger: MessengerDriver, pair: dict[str, Any]
) -> None:
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    await phone.send_by_bridge(f"send 100 to {pair['serial']}")
    await asyncio.gather(*(phone.send_by_bridge("yes") for _ in range(5)))
    await asyncio.gather(*(phone.send_by_bridge(PIN) for _ in range(5)))
    assert await get_balances_and_count(town, pair) == ("898.50", "100.00", 1)


async def test_concurrent_form_submissions_pay_once(
    town: ServicesDriver,
    messenger: MessengerDriver,
    pair: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Submissions wait for each other, so the lease timeout must hold on a slow machine.
    monkeypatch.setattr(runner, "_FORM_LEASE_TIMEOUT_SECONDS", 30.0)
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    await phone.send_text(f"send 100 to {pair['serial']}")
    await phone.send_text("yes")
    answers = await asyncio.gather(*(phone.submit_form({"pin": PIN}) for _ in range(6)))
    assert sorted(status for status, _ in answers) == [200, 427, 427, 427, 427, 427]
    assert await get_balances_and_count(town, pair) == ("898.50", "100.00", 1)


async def test_conversation_continues_across_both_endpoints(
    town: ServicesDriver, messenger: MessengerDriver, pair: dict[str, Any]
) -> None:
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    await phone.send_text(f"send 100 to {pair['serial']}")
    await phone.send_text("yes")
    assert "SLE" in await phone.send_by_bridge(PIN)
    assert await get_balances_and_count(town, pair) == ("898.50", "100.00", 1)


async def test_saved_recipient_is_offered_for_the_next_payment(
    town: ServicesDriver, messenger: MessengerDriver, pair: dict[str, Any]
) -> None:
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    await phone.send_by_bridge(f"send 100 to {pair['serial']}")
    await phone.send_by_bridge("yes")
    await phone.send_by_bridge(PIN)
    await phone.send_by_bridge("1")  # save the recipient, the first option
    choice = await phone.send_by_bridge("send money")
    assert "1. Mary S." in choice
    await phone.send_by_bridge("1")
    await phone.send_by_bridge("50")
    await phone.send_by_bridge("yes")
    await phone.send_by_bridge(PIN)
    assert (await get_balances_and_count(town, pair))[1:] == ("150.00", 2)


async def test_webhook_payment_is_impossible_without_forms_and_text_pins(
    town: ServicesDriver, pair: dict[str, Any]
) -> None:
    async with town.run_messenger(messenger_flow_private_key=None) as messenger:
        phone = messenger.create_phone(pair["sender"]["phone_number"])
        await phone.send_text(f"send 100 to {pair['serial']}")
        await phone.send_text("yes")
        await phone.send_text(PIN)
    assert await get_balances_and_count(town, pair) == ("1000.00", "0.00", 0)


async def test_text_pin_over_the_webhook_pays_when_enabled(
    town: ServicesDriver, pair: dict[str, Any]
) -> None:
    async with town.run_messenger(
        messenger_flow_private_key=None, messenger_text_pin=True
    ) as messenger:
        phone = messenger.create_phone(pair["sender"]["phone_number"])
        await phone.send_text(f"send 100 to {pair['serial']}")
        await phone.send_text("yes")
        assert "898.50 SLE" in await phone.send_text(PIN)
        stored = await messenger.services.database.fetch(
            "SELECT content, withheld FROM messenger.received"
        )
        assert [row["withheld"] for row in stored].count(True) == 1
    assert await get_balances_and_count(town, pair) == ("898.50", "100.00", 1)


async def test_deliveries_out_of_order_do_not_pay_twice(
    town: ServicesDriver, pair: dict[str, Any]
) -> None:
    async with town.run_messenger(
        messenger_flow_private_key=None, messenger_text_pin=True
    ) as messenger:
        phone = messenger.create_phone(pair["sender"]["phone_number"])
        order = phone.build_message(build_text(f"send 100 to {pair['serial']}"))
        yes, pin = phone.build_message(build_text("yes")), phone.build_message(build_text(PIN))
        await phone.deliver(order)
        await phone.wait_until_handled()
        for message in (pin, yes, pin, order, yes, pin):
            await phone.deliver(message)
            await phone.wait_until_handled()
        assert (await get_balances_and_count(town, pair))[2] == 0
        # Late messages are requested again, and then the payment is executed once.
        await phone.send_text("yes")
        await phone.send_text(PIN)
        await phone.deliver(yes, pin)
        await phone.wait_until_handled()
    assert await get_balances_and_count(town, pair) == ("898.50", "100.00", 1)


async def test_late_yes_does_not_confirm_another_payment(
    town: ServicesDriver, messenger: MessengerDriver, pair: dict[str, Any]
) -> None:
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    late = phone.build_message(build_text("yes"))
    await phone.send_text(f"send 900 to {pair['serial']}")
    await phone.deliver(late)
    await phone.wait_until_handled()
    with pytest.raises(AssertionError, match="no PinForm"):
        await phone.get_last(PinForm)


async def test_button_of_an_earlier_question_has_expired(
    town: ServicesDriver, messenger: MessengerDriver, pair: dict[str, Any]
) -> None:
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    await phone.send_text(f"send 900 to {pair['serial']}")
    old = await phone.get_last(OptionList)
    await phone.send_text("cancel")
    await phone.send_text(f"send 5 to {pair['serial']}")
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
        await phone.get_last(PinForm)
