"""Held payments in the chat: on hold, released, rejected, and declined without advice."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from builders.payments import list_alerts, resolve_alert, update_rule
from drivers.messenger import MessengerDriver, Phone, ServicesDriver
from harness import PIN
from tapgate.events.notifications.notification_messages import MessageSender
from tapgate.events.notifications.receipts import ReceiptWorker
from tapgate.messenger.channel.render import render_payloads, render_plain_text
from tapgate.messenger.model import OptionList, Template
from tapgate_sandbox.simulators.phone_templates import render_template

#: Words that would reveal the review or invite structuring.
TELLING_WORDS = (
    "compliance", "suspicious", "fraud", "launder", "rule", "threshold", "officer", "alert",
    "smaller", "lower", "less", "another amount", "other amount", "split", "limit",
    "conformité", "suspect", "règle", "seuil", "plus petit", "inférieur", "autre montant",
    "plafond",
)  # fmt: skip


class HeldPayments:
    """An English sender with 1,000.00, a French recipient, and the compliance officer."""

    def __init__(
        self,
        services_driver: ServicesDriver,
        messenger: MessengerDriver,
        sender: dict[str, Any],
        recipient: dict[str, Any],
    ) -> None:
        self._services_driver, self._messenger = services_driver, messenger
        self.harness = services_driver.harness
        self.sender = messenger.create_phone(sender["phone_number"])
        self.recipient = messenger.create_phone(recipient["phone_number"])
        self._ids = (sender["id"], recipient["id"])

    async def send(self, amount: str) -> str:
        await self.sender.send_by_bridge(f"send {amount} to {self.recipient.number}")
        await self.sender.send_by_bridge("yes")
        return await self.sender.send_by_bridge(PIN)

    async def get_balances(self) -> tuple[str, str]:
        sender, recipient = self._ids
        driver = self._services_driver
        return await driver.get_balance(sender), await driver.get_balance(recipient)

    async def decide(self, decision: str) -> tuple[str, str]:
        """Decide on the held payment; return the texts that the sender and the recipient read."""
        await self.sender.read_replies()
        await self.recipient.read_replies()
        (alert,) = await list_alerts(self.harness, status="open")
        response = await resolve_alert(self.harness, alert["id"], transaction_decision=decision)
        assert response.status_code == 200, response.text
        await ReceiptWorker(self.harness.services).enqueue_due()
        await MessageSender(self.harness.services, self._messenger.client).send_due()
        return await read_template(self.sender), await read_template(self.recipient)


async def read_template(phone: Phone) -> str:
    """Return the only new template's text, as the phone shows it."""
    (message,) = await phone.read_replies()
    assert isinstance(message, Template)
    (payload,) = render_payloads(message, phone.number)
    return str(render_template(payload["template"])["text"])


def require_neutral(*texts: str) -> None:
    for text in texts:
        assert not [word for word in TELLING_WORDS if word in text.lower()], text


@pytest.fixture
async def held_payments(
    services_driver: ServicesDriver, messenger: MessengerDriver
) -> AsyncIterator[HeldPayments]:
    harness = services_driver.harness
    sender = await harness.create_subscriber(balance="1000.00")
    recipient = await harness.create_subscriber(first_name="Mary", last_name="Sesay", language="fr")
    await update_rule(harness, "Large amount", threshold="100")
    yield HeldPayments(services_driver, messenger, sender, recipient)


async def test_both_parties_get_a_message_that_a_held_payment_was_released(
    held_payments: HeldPayments,
) -> None:
    reply = await held_payments.send("300")
    assert "under review" in reply and "on hold" in reply and "4.50 SLE" in reply
    assert await held_payments.get_balances() == ("1000.00", "0.00")
    assert "under review" in await held_payments.sender.send_by_bridge("history")
    to_sender, to_recipient = await held_payments.decide("release")
    assert to_sender.startswith("The payment of *300.00 SLE* to Mary S. is complete")
    assert to_recipient.startswith("Le paiement de *300,00 SLE* (expéditeur : ")
    assert "effectué" in to_recipient
    require_neutral(to_sender, to_recipient)
    assert await held_payments.get_balances() == ("695.50", "300.00")
    history = await held_payments.sender.send_by_bridge("history")
    assert "300.00 SLE" in history and "fee 4.50 SLE" in history and "review" not in history


async def test_both_parties_get_a_neutral_message_that_a_held_payment_was_rejected(
    held_payments: HeldPayments,
) -> None:
    await held_payments.send("300")
    to_sender, to_recipient = await held_payments.decide("reject")
    assert "to Mary S. was not completed" in to_sender and "no fee was charged" in to_sender
    assert "n'a pas été effectué" in to_recipient and "aucun frais" in to_recipient
    assert await held_payments.get_balances() == ("1000.00", "0.00")
    sender = held_payments.sender
    history = await sender.send_by_bridge("history")
    assert "300.00 SLE" in history and "fee" not in history and "4.50" not in history
    assert "1,000.00 SLE" in await sender.send_by_bridge("balance")
    reason = await sender.send_by_bridge("why was my payment declined?")
    assert "couldn't be completed" in reason
    reason_for_recipient = await held_payments.recipient.send_by_bridge("historique")
    require_neutral(to_sender, to_recipient, history, reason, reason_for_recipient)


async def test_payment_that_compliance_declines_gets_no_advice(
    held_payments: HeldPayments,
) -> None:
    await update_rule(held_payments.harness, "Large amount", action="block")
    sender, payee = held_payments.sender, held_payments.recipient.number
    # The quote declines the payment before the confirmation.
    await sender.send_text(f"send 300 to {payee}")
    replies = await sender.read_replies(everything=True)
    offer = await sender.get_last(OptionList)
    require_neutral(render_plain_text(replies))  # type: ignore[arg-type]
    assert "We can't make this payment" in offer.text
    assert [option.title for option in offer.options] == ["Talk to a person", "Menu"]
    # The chat does not wait for another amount.
    assert "isn't on the list" in await sender.send_text("200")
    assert await held_payments.get_balances() == ("1000.00", "0.00")
    require_neutral(await sender.send_text("why was my payment declined?"))


async def test_payment_that_compliance_declines_after_the_pin_gets_no_advice(
    held_payments: HeldPayments,
) -> None:
    sender, payee = held_payments.sender, held_payments.recipient.number
    await sender.send_by_bridge(f"send 300 to {payee}")
    await sender.send_by_bridge("yes")
    await update_rule(held_payments.harness, "Large amount", action="block")
    reply = await sender.send_by_bridge(PIN)
    assert "We can't make this payment" in reply and "No money was sent" in reply
    assert "Send money" not in reply
    reason = await sender.send_by_bridge("why was my payment declined?")
    assert "no money was taken" in reason
    require_neutral(reply, reason)
    assert await held_payments.get_balances() == ("1000.00", "0.00")
