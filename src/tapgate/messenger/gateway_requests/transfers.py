"""Requests that find a payee, quote a transfer and send money."""

from typing import ClassVar

import msgspec

from tapgate.messenger.gateway_requests.base import GatewayRequest
from tapgate.messenger.gateway_requests.subscribers import find_subscriber
from tapgate.messenger.model import SecretStruct
from tapgate_client import AsyncTapgateClient
from tapgate_client import exceptions as client
from tapgate_client.names import build_public_name, mask_person_name
from tapgate_client.schemas.cards import CardStatus, CardType
from tapgate_client.schemas.subscribers import SubscriberRecord
from tapgate_client.schemas.transactions import TransactionType
from tapgate_client.schemas.wallets import P2pReceipt, Quote


class Payee(msgspec.Struct, frozen=True, kw_only=True):
    name: str  # masked: `Aminata K.`
    #: False if the card is not active.
    can_receive: bool
    #: Card serial, or phone number, which starts with a plus sign.
    payee: str
    subscriber_id: str


class FindPayeeByCard(GatewayRequest, frozen=True, kw_only=True):
    card_serial: str

    async def perform(self, gateway: AsyncTapgateClient) -> Payee | None:
        try:
            card = await gateway.cards.get(self.card_serial)
        except client.NotFoundError:
            return None
        if card.subscriber_id is None:
            return None
        if card.type == CardType.PARENT:
            name = _format_public_name(await gateway.subscribers.get(card.subscriber_id))
        else:
            name = mask_person_name(card.holder_name or "?")
        return Payee(
            name=name,
            can_receive=card.status == CardStatus.ACTIVE,
            payee=card.serial,
            subscriber_id=card.subscriber_id,
        )


class FindPayeeByPhone(GatewayRequest, frozen=True, kw_only=True):
    phone: str

    async def perform(self, gateway: AsyncTapgateClient) -> Payee | None:
        found = await find_subscriber(gateway, self.phone)
        if found is None:
            return None
        return Payee(
            name=_format_public_name(found),
            can_receive=True,
            payee=self.phone,
            subscriber_id=found.id,
        )


class QuoteTransfer(GatewayRequest, frozen=True, kw_only=True):
    """Quote a transfer. Without a sender, the quote has only the fee and the total."""

    sender_id: str | None
    amount: str
    #: None if the recipient is not known, or is known by phone number.
    recipient_card_serial: str | None = None

    async def perform(self, gateway: AsyncTapgateClient) -> Quote:
        return await gateway.wallet.quote(
            type=TransactionType.TRANSFER_P2P,
            amount=self.amount,
            sender_id=self.sender_id,
            recipient_card_serial=self.recipient_card_serial,
        )


class SendMoney(GatewayRequest, SecretStruct, frozen=True, kw_only=True):
    """Send money. `request_id` is the operation ID and serves as the idempotency key."""

    moves_money: ClassVar[bool] = True

    request_id: str
    sender_id: str
    #: Card serial, or phone number, which starts with a plus sign.
    payee: str
    amount: str
    pin: str

    async def perform(self, gateway: AsyncTapgateClient) -> P2pReceipt:
        is_phone = is_phone_payee(self.payee)
        return await gateway.wallet.transfer_p2p(
            sender_id=self.sender_id,
            recipient_card_serial=None if is_phone else self.payee,
            recipient_phone_number=self.payee if is_phone else None,
            amount=self.amount,
            pin=self.pin,
            request_id=self.request_id,
        )


def is_phone_payee(payee: str) -> bool:
    """Return whether a payee is a phone number, not a card serial."""
    return payee.startswith("+")


def _format_public_name(record: SubscriberRecord) -> str:
    """Return the name in the form the gateway prints on receipts."""
    return build_public_name(record.first_name, record.last_name)
