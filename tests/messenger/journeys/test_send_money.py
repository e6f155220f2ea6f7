"""Money sent from a chat, checked at the gateway: once, whatever is repeated."""

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
    """What both have, and how many transfers there are."""
    sender, recipient = pair["sender"]["id"], pair["recipient"]["id"]
    return (
        await town.get_balance(sender),
        await town.get_balance(recipient),
        len(await town.list_transfers(sender)),
    )


async def test_over_the_webhook_with_a_form_for_the_pin(
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

    # The same form, the same yes, the same words once more.
    status, answer = await phone.submit_form({"pin": PIN}, form.token)
    assert status == 427
    assert answer["error_msg"]
    await phone.send_text("yes")
    await phone.send_text(PIN)
    assert await get_balances_and_count(town, pair) == ("492.50", "500.00", 1)


async def test_the_receipt_comes_in_the_chat(
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


async def test_over_the_compatibility_endpoint(
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


async def test_yes_and_the_pin_many_times_at_once(
    town: ServicesDriver, messenger: MessengerDriver, pair: dict[str, Any]
) -> None:
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    await phone.send_by_bridge(f"send 100 to {pair['serial']}")
    await asyncio.gather(*(phone.send_by_bridge("yes") for _ in range(5)))
    await asyncio.gather(*(phone.send_by_bridge(PIN) for _ in range(5)))
    assert await get_balances_and_count(town, pair) == ("898.50", "100.00", 1)


async def test_a_form_filled_in_many_times_at_once(
    town: ServicesDriver,
    messenger: MessengerDriver,
    pair: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Each waits for the one before, however busy the machine is.
    monkeypatch.setattr(runner, "_FORM_LEASE_TIMEOUT_SECONDS", 30.0)
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    await phone.send_text(f"send 100 to {pair['serial']}")
    await phone.send_text("yes")
    answers = await asyncio.gather(*(phone.submit_form({"pin": PIN}) for _ in range(6)))
    assert sorted(status for status, _ in answers) == [200, 427, 427, 427, 427, 427]
    assert await get_balances_and_count(town, pair) == ("898.50", "100.00", 1)


async def test_over_both_endpoints_in_one_conversation(
    town: ServicesDriver, messenger: MessengerDriver, pair: dict[str, Any]
) -> None:
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    await phone.send_text(f"send 100 to {pair['serial']}")
    await phone.send_text("yes")
    assert "SLE" in await phone.send_by_bridge(PIN)
    assert await get_balances_and_count(town, pair) == ("898.50", "100.00", 1)


async def test_a_saved_recipient_is_found_again(
    town: ServicesDriver, messenger: MessengerDriver, pair: dict[str, Any]
) -> None:
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    await phone.send_by_bridge(f"send 100 to {pair['serial']}")
    await phone.send_by_bridge("yes")
    await phone.send_by_bridge(PIN)
    await phone.send_by_bridge("1")  # keep the recipient, offered first
    choice = await phone.send_by_bridge("send money")
    assert "1. Mary S." in choice
    await phone.send_by_bridge("1")
    await phone.send_by_bridge("50")
    await phone.send_by_bridge("yes")
    await phone.send_by_bridge(PIN)
    assert (await get_balances_and_count(town, pair))[1:] == ("150.00", 2)


async def test_without_forms_and_without_text_pins_nothing_can_be_paid_over_the_webhook(
    town: ServicesDriver, pair: dict[str, Any]
) -> None:
    async with town.run_messenger(messenger_flow_private_key=None) as messenger:
        phone = messenger.create_phone(pair["sender"]["phone_number"])
        await phone.send_text(f"send 100 to {pair['serial']}")
        await phone.send_text("yes")
        await phone.send_text(PIN)
    assert await get_balances_and_count(town, pair) == ("1000.00", "0.00", 0)


async def test_a_pin_as_text_over_the_webhook_where_that_is_allowed(
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


async def test_deliveries_in_the_wrong_order_do_not_pay_twice(
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
        # What came too late is asked for again, and then it is paid once.
        await phone.send_text("yes")
        await phone.send_text(PIN)
        await phone.deliver(yes, pin)
        await phone.wait_until_handled()
    assert await get_balances_and_count(town, pair) == ("898.50", "100.00", 1)


async def test_a_late_yes_does_not_confirm_another_payment(
    town: ServicesDriver, messenger: MessengerDriver, pair: dict[str, Any]
) -> None:
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    late = phone.build_message(build_text("yes"))
    await phone.send_text(f"send 900 to {pair['serial']}")
    await phone.deliver(late)
    await phone.wait_until_handled()
    with pytest.raises(AssertionError, match="no PinForm"):
        await phone.get_last(PinForm)


async def test_a_button_of_an_earlier_question_has_expired(
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
