"""Requests from the conversation engine, and how each is sent through the gateway's client.

The engine only creates requests. `perform` sends one and returns its outcome, which is the engine's
next event. The gateway makes all decisions about money. Names of other subscribers are masked here,
and so is the existence of cards that do not belong to the subscriber.
"""

from datetime import datetime
from typing import Any

import msgspec
import structlog

from tapgate.client import AsyncTapgateClient
from tapgate.client import exceptions as client
from tapgate.errors import Code
from tapgate.images import EncodedImage
from tapgate.messenger.model import (
    Card,
    GatewayUnreachable,
    Language,
    RequestOutcome,
    RequestRejected,
    RequestSucceeded,
    SecretStruct,
    Subscriber,
)
from tapgate.names import mask_name
from tapgate.schemas.agents import AgentStatus
from tapgate.schemas.cards import CardRecord, CardStatus, CardType, DisclosedCard
from tapgate.schemas.subscribers import KycDocumentType, Limits, SubscriberRecord
from tapgate.schemas.support import MAX_CUSTOMER_TEXT_LENGTH
from tapgate.schemas.transactions import (
    Direction,
    FeePayer,
    PartyRecord,
    TransactionRecord,
    TransactionStatus,
    TransactionType,
)
from tapgate.schemas.wallets import Balance, P2pReceipt, Quote

_log = structlog.get_logger()


class Payee(msgspec.Struct, frozen=True, kw_only=True):
    name: str  # masked: `Aminata K.`
    #: False if the card is not active.
    can_receive: bool
    #: Card serial, or phone number, which starts with a plus sign.
    payee: str
    subscriber_id: str


class TransactionSummary(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    status: str
    is_credit: bool
    amount: str
    #: Fee that the subscriber paid: in addition to the amount sent, or out of the amount received.
    fee: str
    currency: str
    counterparty_name: str | None  # masked for a subscriber
    at: datetime
    failure_code: str | None = None


class AgentSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What the public may know about an agent."""

    name: str
    address: str


class GatewayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Base class of requests. The result of `perform` is the `result` of `RequestSucceeded`."""

    async def perform(self, gateway: AsyncTapgateClient) -> Any:
        raise NotImplementedError


class FindSubscriber(GatewayRequest, frozen=True, kw_only=True):
    """Find a subscriber by the person's own phone number."""

    phone: str

    async def perform(self, gateway: AsyncTapgateClient) -> Subscriber | None:
        found = await find_subscriber(gateway, self.phone)
        return None if found is None else to_subscriber(found)


class RegisterSubscriber(GatewayRequest, SecretStruct, frozen=True, kw_only=True):
    phone: str
    first_name: str
    last_name: str
    pin: str
    language: Language

    async def perform(self, gateway: AsyncTapgateClient) -> Subscriber:
        registered = await gateway.subscribers.register(
            phone_number=self.phone,
            first_name=self.first_name,
            last_name=self.last_name,
            pin=self.pin,
            language=self.language,
        )
        return to_subscriber(registered.subscriber)


class GetBalance(GatewayRequest, frozen=True, kw_only=True):
    subscriber_id: str

    async def perform(self, gateway: AsyncTapgateClient) -> Balance:
        return await gateway.balances.get(self.subscriber_id)


class GetLimits(GatewayRequest, frozen=True, kw_only=True):
    subscriber_id: str

    async def perform(self, gateway: AsyncTapgateClient) -> Limits:
        return await gateway.subscribers.get_limits(self.subscriber_id)


class FindAgents(GatewayRequest, frozen=True, kw_only=True):
    """Find active agents by a part of their address."""

    place: str
    limit: int

    async def perform(self, gateway: AsyncTapgateClient) -> list[AgentSummary]:
        listed = gateway.agents.list(
            address=self.place, status=AgentStatus.ACTIVE, limit=self.limit
        )
        return [
            AgentSummary(name=agent.business_name or agent.name, address=agent.address or "")
            for agent in (await listed.get_page()).data
        ]


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
            name = mask_name(card.holder_name or "?")
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


class ListTransactions(GatewayRequest, frozen=True, kw_only=True):
    """List a subscriber's transactions, newest first."""

    subscriber_id: str
    limit: int

    async def perform(self, gateway: AsyncTapgateClient) -> list[TransactionSummary]:
        listed = gateway.transactions.list(user_id=self.subscriber_id, limit=self.limit)
        return [_to_transaction_summary(record) for record in (await listed.get_page()).data]


class GetLastDecline(GatewayRequest, frozen=True, kw_only=True):
    """Find the subscriber's last failed transaction as the payer."""

    subscriber_id: str

    async def perform(self, gateway: AsyncTapgateClient) -> TransactionSummary | None:
        listed = gateway.transactions.list(
            user_id=self.subscriber_id, status=TransactionStatus.FAILED, limit=20
        )
        for record in (await listed.get_page()).data:
            if record.direction != Direction.CREDIT:
                return _to_transaction_summary(record)
        return None


class CreateStatement(GatewayRequest, frozen=True, kw_only=True):
    """Create a PDF statement and return its link. Dates are YYYY-MM-DD."""

    subscriber_id: str
    from_date: str
    to_date: str

    async def perform(self, gateway: AsyncTapgateClient) -> str:
        statement = await gateway.wallet.create_statement(
            subscriber_id=self.subscriber_id,
            from_date=self.from_date,
            to_date=self.to_date,
            format="pdf",
        )
        return statement.statement_url or ""


class ListCards(GatewayRequest, frozen=True, kw_only=True):
    subscriber_id: str

    async def perform(self, gateway: AsyncTapgateClient) -> list[Card]:
        listed = gateway.cards.list(subscriber_id=self.subscriber_id)
        return [to_card(item) for item in (await listed.get_page()).data]


class LinkCard(GatewayRequest, SecretStruct, frozen=True, kw_only=True):
    subscriber_id: str
    card_serial: str
    pin: str

    async def perform(self, gateway: AsyncTapgateClient) -> Card:
        linked = await gateway.cards.link(
            subscriber_id=self.subscriber_id, card_serial=self.card_serial, pin=self.pin
        )
        return to_card(linked.card)


class BlockCard(GatewayRequest, frozen=True, kw_only=True):
    subscriber_id: str
    card_serial: str
    reason: str  # lost, stolen, damaged, customer_request

    async def perform(self, gateway: AsyncTapgateClient) -> Card:
        await _require_own_card(gateway, self.subscriber_id, self.card_serial)
        return to_card((await gateway.cards.block(self.card_serial, reason=self.reason)).card)


class UnblockCard(GatewayRequest, SecretStruct, frozen=True, kw_only=True):
    """Unblock a card after verifying the subscriber's PIN."""

    subscriber_id: str
    card_serial: str
    pin: str

    async def perform(self, gateway: AsyncTapgateClient) -> Card:
        await _require_own_card(gateway, self.subscriber_id, self.card_serial)
        await gateway.subscribers.verify_pin(self.subscriber_id, pin=self.pin)
        return to_card((await gateway.cards.unblock(self.card_serial)).card)


class VerifyPin(GatewayRequest, SecretStruct, frozen=True, kw_only=True):
    subscriber_id: str
    pin: str

    async def perform(self, gateway: AsyncTapgateClient) -> None:
        await gateway.subscribers.verify_pin(self.subscriber_id, pin=self.pin)


class ChangePin(GatewayRequest, SecretStruct, frozen=True, kw_only=True):
    subscriber_id: str
    old_pin: str
    new_pin: str

    async def perform(self, gateway: AsyncTapgateClient) -> None:
        await gateway.subscribers.change_pin(
            self.subscriber_id, old_pin=self.old_pin, new_pin=self.new_pin
        )


class AddDocument(GatewayRequest, frozen=True, kw_only=True):
    subscriber_id: str
    document_type: KycDocumentType
    image: EncodedImage

    async def perform(self, gateway: AsyncTapgateClient) -> None:
        await gateway.subscribers.add_kyc_document(
            self.subscriber_id, document_type=self.document_type, image=self.image.content
        )


class ContactSupport(GatewayRequest, SecretStruct, frozen=True, kw_only=True):
    """Pass a text to support staff. The runner adds `transcript` and `message_id`.

    With `append_only`, no support request is opened: the gateway rejects the text with
    REQUEST_NOT_FOUND if the phone number has none.
    """

    phone: str
    text: str
    append_only: bool = False
    transcript: tuple[str, ...] = ()
    #: Identifies the customer's message, so that an interrupted turn passes it on once.
    message_id: str | None = None

    async def perform(self, gateway: AsyncTapgateClient) -> None:
        text = "\n".join((self.text, "", "Last messages in the chat:", *self.transcript))
        await gateway.support.send_message(
            phone_number=self.phone,
            text=(text if self.transcript else self.text)[:MAX_CUSTOMER_TEXT_LENGTH],
            append_only=self.append_only,
            message_id=self.message_id,
        )


class SendOneTimeCode(GatewayRequest, frozen=True, kw_only=True):
    """Send a one-time code to the phone number that a person has entered.

    The messenger handles this request itself, in `one_time_codes.py`. The request also succeeds if
    no code is sent because of a limit.
    """

    phone: str


class VerifyOneTimeCode(GatewayRequest, SecretStruct, frozen=True, kw_only=True):
    """Verify a one-time code. The result is whether it is correct.

    The messenger handles this request itself, in `one_time_codes.py`. The request is rejected with
    INVALID_OTP if no valid code or no further attempt is left.
    """

    phone: str
    code: str


async def perform(gateway: AsyncTapgateClient, request: GatewayRequest) -> RequestOutcome:
    """Send a request through the client; errors become outcomes."""
    try:
        return RequestSucceeded(result=await request.perform(gateway))
    except client.ApiError as error:
        return _map_error(request, error)
    except client.ApiConnectionError:
        return GatewayUnreachable(uncertain=False)
    except client.TapgateError:
        return GatewayUnreachable(uncertain=True)
    except _CardNotOwnedError:
        return RequestRejected(code=Code.CARD_NOT_FOUND)


class _CardNotOwnedError(Exception):
    """The card is not the subscriber's own; reported as not found to hide that it exists."""


def _map_error(
    request: GatewayRequest, error: client.ApiError
) -> RequestRejected | GatewayUnreachable:
    if isinstance(error, client.UnavailableError):
        # A 503 can come before or during the commit, so the transfer may have been executed.
        return GatewayUnreachable(uncertain=isinstance(request, SendMoney))
    if isinstance(error, client.RateLimitedError) and not error.details:
        return GatewayUnreachable(uncertain=False)
    if isinstance(error, client.ServerError):
        return GatewayUnreachable(uncertain=True)
    if error.code in (Code.UNAUTHORIZED, Code.FORBIDDEN):
        # The person cannot fix the messenger's credentials; the log entry is for the operator.
        _log.error("gateway.access_denied", code=error.code)
        return GatewayUnreachable(uncertain=False)
    return RequestRejected(code=error.code, message=error.message, details=error.details)


async def find_subscriber(gateway: AsyncTapgateClient, phone: str) -> SubscriberRecord | None:
    page = await gateway.subscribers.list(phone_number=phone, limit=1).get_page()
    return page.data[0] if page.data else None


async def _require_own_card(
    gateway: AsyncTapgateClient, subscriber_id: str, card_serial: str
) -> None:
    card = await gateway.cards.get(card_serial)
    if card.subscriber_id != subscriber_id:
        raise _CardNotOwnedError


def to_subscriber(record: SubscriberRecord) -> Subscriber:
    return msgspec.convert(record, Subscriber, from_attributes=True)


def _format_public_name(record: SubscriberRecord) -> str:
    """Return the name in the form the gateway prints on receipts."""
    return f"{record.first_name} {record.last_name[:1]}."


def to_card(record: CardRecord | DisclosedCard) -> Card:
    return Card(
        serial=record.serial,
        type=record.type or None,  # unset on the card of a restricted subscriber
        status=record.status,
        holder_name=record.holder_name or None,
    )


def is_phone_payee(payee: str) -> bool:
    """Return whether a payee is a phone number, not a card serial."""
    return payee.startswith("+")


def _to_transaction_summary(record: TransactionRecord) -> TransactionSummary:
    is_credit = record.direction == Direction.CREDIT
    counterparty = record.from_ if is_credit else record.to
    fee_payer = FeePayer.RECEIVER if is_credit else FeePayer.SENDER
    return TransactionSummary(
        type=record.type,
        status=record.status,
        is_credit=is_credit,
        amount=record.amount,
        fee=record.fee_amount if record.fee_payer == fee_payer else "0.00",
        currency=record.currency,
        counterparty_name=record.merchant_name or _get_public_name(counterparty),
        at=datetime.fromisoformat(record.created_at),
        failure_code=record.failure_code,
    )


def _get_public_name(party: PartyRecord | None) -> str | None:
    """Return the party's name, masked for a subscriber, or None if the name is unknown."""
    if party is None or not party.name:
        return None
    return mask_name(party.name) if party.type == "subscriber" else party.name
