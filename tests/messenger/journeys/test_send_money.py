"""Payments from the chat, and the resulting balances and transfers at the gateway."""

import asyncio
from typing import Any

import pytest

from drivers.messenger import MessengerDriver, ServicesDriver, build_text
from harness import PIN, WRONG_PIN, split_words
from tapgate.messenger import runner
from tapgate.messenger.model import PinForm

#: Balances after a payment of 100.00 with its fee, and the number of transfers.
PAID_ONCE = ("898.50", "100.00", 1)


@pytest.fixture
async def pair(services_driver: ServicesDriver) -> dict[str, Any]:
    """A sender with 1,000.00, and a recipient with a card."""
    harness = services_driver.harness
    sender = await harness.create_subscriber(balance="1000.00")
    recipient = await harness.create_subscriber(first_name="Mary", last_name="Sesay")
    return {
        "sender": sender,
        "recipient": recipient,
        "serial": await harness.create_card(recipient["id"]),
    }


async def get_balances_and_count(
    services_driver: ServicesDriver, pair: dict[str, Any]
) -> tuple[str, str, int]:
    """Return the balances of sender and recipient, and the number of the sender's transfers."""
    sender, recipient = pair["sender"]["id"], pair["recipient"]["id"]
    return (
        await services_driver.get_balance(sender),
        await services_driver.get_balance(recipient),
        len(await services_driver.list_transfers(sender)),
    )


async def test_webhook_payment_with_a_pin_form_is_executed_once(
    services_driver: ServicesDriver, messenger: MessengerDriver, pair: dict[str, Any]
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
    assert await get_balances_and_count(services_driver, pair) == ("1000.00", "0.00", 0)

    form = await phone.get_last(PinForm)
    status, screen = await phone.submit_form({"pin": PIN})
    assert (status, screen["screen"]) == (200, "SUCCESS")
    assert PIN not in split_words(str(screen))
    await phone.read_replies()
    assert await get_balances_and_count(services_driver, pair) == ("492.50", "500.00", 1)
    (transfer,) = await services_driver.list_transfers(pair["sender"]["id"])
    assert transfer["channel"] == "messaging"

    # Repeating the form, the yes and the PIN has no effect.
    status, response = await phone.submit_form({"pin": PIN}, form.token)
    assert status == 427
    assert response["error_msg"]
    await phone.send_text("yes")
    await phone.send_text(PIN)
    assert await get_balances_and_count(services_driver, pair) == ("492.50", "500.00", 1)


async def test_receipt_of_a_form_payment_is_sent_in_the_chat(
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


async def test_payment_over_the_compatibility_endpoint_is_executed_once(
    services_driver: ServicesDriver, messenger: MessengerDriver, pair: dict[str, Any]
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
    assert await get_balances_and_count(services_driver, pair) == ("1000.00", "0.00", 0)
    receipt = await phone.send_by_bridge(PIN)
    assert "492.50 SLE" in receipt
    assert PIN not in split_words(receipt)
    for repeated in (PIN, "yes", PIN):
        reply = await phone.send_by_bridge(repeated)
        assert PIN not in split_words(reply)
    assert await get_balances_and_count(services_driver, pair) == ("492.50", "500.00", 1)


async def test_concurrent_confirmations_and_pins_pay_once(
    services_driver: ServicesDriver, messenger: MessengerDriver, pair: dict[str, Any]
) -> None:
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    await phone.send_by_bridge(f"send 100 to {pair['serial']}")
    await asyncio.gather(*(phone.send_by_bridge("yes") for _ in range(5)))
    await asyncio.gather(*(phone.send_by_bridge(PIN) for _ in range(5)))
    assert await get_balances_and_count(services_driver, pair) == PAID_ONCE


async def test_concurrent_form_submissions_pay_once(
    services_driver: ServicesDriver,
    messenger: MessengerDriver,
    pair: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Submissions wait for each other's lease, which takes longer on a slow machine.
    monkeypatch.setattr(runner, "FORM_LEASE_TIMEOUT_SECONDS", 30.0)
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    await phone.send_text(f"send 100 to {pair['serial']}")
    await phone.send_text("yes")
    responses = await asyncio.gather(*(phone.submit_form({"pin": PIN}) for _ in range(6)))
    assert sorted(status for status, _ in responses) == [200, 427, 427, 427, 427, 427]
    assert await get_balances_and_count(services_driver, pair) == PAID_ONCE


async def test_payment_canceled_in_the_chat_cannot_be_submitted_in_its_form(
    services_driver: ServicesDriver, messenger: MessengerDriver, pair: dict[str, Any]
) -> None:
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    await phone.send_text(f"send 100 to {pair['serial']}")
    await phone.send_text("yes")
    form = await phone.get_last(PinForm)
    await phone.send_text("cancel")
    status, _ = await phone.submit_form({"pin": PIN}, form.token)
    assert status == 427
    assert await services_driver.get_balance(pair["recipient"]["id"]) == "0.00"


async def test_conversation_continues_across_both_endpoints(
    services_driver: ServicesDriver, messenger: MessengerDriver, pair: dict[str, Any]
) -> None:
    phone = messenger.create_phone(pair["sender"]["phone_number"])
    await phone.send_text(f"send 100 to {pair['serial']}")
    await phone.send_text("yes")
    assert "SLE" in await phone.send_by_bridge(PIN)
    assert await get_balances_and_count(services_driver, pair) == PAID_ONCE


async def test_text_pin_over_the_webhook_pays_when_enabled(
    services_driver: ServicesDriver, pair: dict[str, Any]
) -> None:
    async with services_driver.run_messenger(
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
    assert await get_balances_and_count(services_driver, pair) == PAID_ONCE


async def test_deliveries_out_of_order_do_not_pay_twice(
    services_driver: ServicesDriver, pair: dict[str, Any]
) -> None:
    async with services_driver.run_messenger(
        messenger_flow_private_key=None, messenger_text_pin=True
    ) as messenger:
        phone = messenger.create_phone(pair["sender"]["phone_number"])
        body = phone.build_message(build_text(f"send 100 to {pair['serial']}"))
        yes, pin = phone.build_message(build_text("yes")), phone.build_message(build_text(PIN))
        await phone.deliver(body)
        await phone.wait_until_handled()
        for message in (pin, yes, pin, body, yes, pin):
            await phone.deliver(message)
            await phone.wait_until_handled()
        assert (await get_balances_and_count(services_driver, pair))[2] == 0
        # Late messages are requested again, and then the payment is executed once.
        await phone.send_text("yes")
        await phone.send_text(PIN)
        await phone.deliver(yes, pin)
        await phone.wait_until_handled()
    assert await get_balances_and_count(services_driver, pair) == PAID_ONCE
