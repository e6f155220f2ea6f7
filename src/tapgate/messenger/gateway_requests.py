"""Requests from the conversation engine, and how each is sent through the gateway's client.

The engine only creates requests. `perform` sends one and returns its outcome, which is the engine's
next event. A request that is one client operation is a `ClientRequest`; the other classes
combine operations or reduce a response to what the conversation may know. The gateway makes all
decisions about money. Names of other subscribers are masked here, and so is the existence of cards
that do not belong to the subscriber.
"""

import operator
import zlib
from base64 import urlsafe_b64encode
from datetime import datetime
from typing import Any, ClassVar, Final

import msgspec
import structlog

from tapgate.core.public_names import (
    build_public_name,
    clean_person_name,
    get_counterparty_name,
    mask_person_name,
)
from tapgate.messenger.model import (
    GatewayUnreachable,
    Language,
    RequestOutcome,
    RequestRejected,
    RequestSucceeded,
    SecretStruct,
    Subscriber,
)
from tapgate_client import AsyncTapgateClient, TapgateError
from tapgate_client import exceptions as client
from tapgate_client.errors import Code
from tapgate_client.schemas.cards import CardStatus, CardType
from tapgate_client.schemas.subscribers import (
    KycDocumentType,
    SubscriberLanguage,
    SubscriberRecord,
    SubscriberStatus,
)
from tapgate_client.schemas.support import MAX_CUSTOMER_TEXT_LENGTH
from tapgate_client.schemas.transactions import (
    Direction,
    FeePayer,
    PartyRecord,
    PartyType,
    TransactionRecord,
    TransactionStatus,
    TransactionType,
)
from tapgate_client.schemas.wallets import P2pReceipt

_log = structlog.get_logger()


class GatewayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Base class for requests. The result of `perform` is the `result` of `RequestSucceeded`."""

    #: Whether a response of 503 leaves open if money has moved.
    moves_money: ClassVar[bool] = False

    async def perform(self, gateway: AsyncTapgateClient) -> Any:
        raise NotImplementedError


class ClientRequest(GatewayRequest, SecretStruct, frozen=True):
    """Client operation, such as `subscribers.verify_pin`. The result is its response."""

    operation: str
    arguments: tuple[Any, ...]
    fields: dict[str, Any]

    async def perform(self, gateway: AsyncTapgateClient) -> Any:
        send = operator.attrgetter(self.operation)(gateway)
        return await send(*self.arguments, **self.fields)


class MoneyRequest(ClientRequest, frozen=True):
    """Client operation that moves money, with the operation ID as its idempotency key."""

    moves_money: ClassVar[bool] = True


def money_request(operation: str, *arguments: Any, **fields: Any) -> MoneyRequest:
    """Build the request for one client operation that moves money."""
    return MoneyRequest(operation, arguments, fields)


def client_request(operation: str, *arguments: Any, **fields: Any) -> ClientRequest:
    """Build the request for one client operation, with its method's arguments."""
    return ClientRequest(operation, arguments, fields)


class AgentNotFoundError(Exception):
    """The phone number no longer belongs to an agent."""


class CardNotOwnedError(Exception):
    """The card is not the subscriber's own; reported as not found to hide that it exists."""


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
    except AgentNotFoundError:
        return RequestRejected(code=Code.AGENT_NOT_FOUND)
    except CardNotOwnedError:
        return RequestRejected(code=Code.CARD_NOT_FOUND)


def _map_error(
    request: GatewayRequest, error: client.ApiError
) -> RequestRejected | GatewayUnreachable:
    if isinstance(error, client.UnavailableError):
        # A 503 can come before or during the commit, so the transfer may have been executed.
        return GatewayUnreachable(uncertain=request.moves_money)
    if isinstance(error, client.RateLimitedError) and not error.details:
        return GatewayUnreachable(uncertain=False)
    if isinstance(error, client.ServerError):
        return GatewayUnreachable(uncertain=True)
    is_postponed = error.code == Code.FORBIDDEN and "until" in error.details
    if error.code in (Code.UNAUTHORIZED, Code.FORBIDDEN) and not is_postponed:
        # The person cannot fix the messenger's credentials; the log entry is for the operator.
        _log.error("gateway.access_denied", code=error.code)
        return GatewayUnreachable(uncertain=False)
    return RequestRejected(code=error.code, message=error.message, details=error.details)


# Subscribers


class FindSubscriber(GatewayRequest, frozen=True, kw_only=True):
    """Find a subscriber by the person's own phone number."""

    phone: str

    async def perform(self, gateway: AsyncTapgateClient) -> Subscriber | None:
        found = await find_subscriber(gateway, self.phone)
        return None if found is None else to_subscriber(found)


class FindLanguage(GatewayRequest, frozen=True, kw_only=True):
    """Find the language that is stored for a phone number's subscriber.

    The result is None for the default language: it may not be a choice, so the first recognized
    words decide.
    """

    phone: str

    async def perform(self, gateway: AsyncTapgateClient) -> Language | None:
        found = await find_subscriber(gateway, self.phone)
        if found is None or found.language == SubscriberLanguage.EN:
            return None
        language: Language = msgspec.convert(found.language, Language)
        return language


class ObjectToPhoneChange(GatewayRequest, frozen=True, kw_only=True):
    """Object to a phone number change from the number that was replaced.

    The result is False if the number was not replaced in the last 24 hours.
    """

    phone: str

    async def perform(self, gateway: AsyncTapgateClient) -> bool:
        page = await gateway.subscribers.list(replaced_phone_number=self.phone).get_page()
        for found in page.data:
            await gateway.subscribers.dispute_phone_change(found.id, phone_number=self.phone)
        return bool(page.data)


class SendOneTimeCode(GatewayRequest, frozen=True, kw_only=True):
    """Send a one-time code to the phone number that a person has entered.

    The messenger handles this request itself, in `one_time_codes.py`. The request also succeeds if
    a limit prevents the code.
    """

    phone: str


class VerifyOneTimeCode(GatewayRequest, SecretStruct, frozen=True, kw_only=True):
    """Verify a one-time code. The result is whether it is correct.

    The messenger handles this request itself, in `one_time_codes.py`. The request is rejected with
    INVALID_OTP if no valid code or no further attempt is left.
    """

    phone: str
    code: str


class CountKeptImages(GatewayRequest, frozen=True, kw_only=True):
    """Count the person's images that wait for their document type."""


class AddKeptDocument(GatewayRequest, frozen=True, kw_only=True):
    """Upload the oldest kept image. The result is the number of images that are left.

    Without a `document_type`, the image is discarded. The result is None if the image has expired.
    """

    subscriber_id: str
    document_type: KycDocumentType | None


async def find_subscriber(gateway: AsyncTapgateClient, phone: str) -> SubscriberRecord | None:
    page = await gateway.subscribers.list(phone_number=phone, limit=1).get_page()
    return page.data[0] if page.data else None


def to_subscriber(record: SubscriberRecord) -> Subscriber:
    subscriber = msgspec.convert(record, Subscriber, from_attributes=True)
    return msgspec.structs.replace(subscriber, first_name=clean_person_name(record.first_name))


# Transfers and transactions


class Payee(msgspec.Struct, frozen=True, kw_only=True):
    name: str  # masked: `Aminata K.`
    #: False if the card is not active.
    can_receive: bool
    #: Card serial, or phone number, which starts with a plus sign.
    payee: str
    subscriber_id: str
    #: Code of the other book in which the payee lives.
    book: str | None = None


async def _find_in_other_book(
    gateway: AsyncTapgateClient,
    *,
    phone_number: str | None = None,
    card_serial: str | None = None,
) -> Payee | None:
    try:
        customer = await gateway.books.look_up(phone_number=phone_number, card_serial=card_serial)
    except client.NotFoundError:
        return None
    return Payee(
        name=f"{customer.name} ({customer.book})" if customer.name else customer.book,
        can_receive=customer.can_receive,
        payee=phone_number or card_serial or "",
        subscriber_id=customer.subscriber_id,
        book=customer.book,
    )


class FindPayeeByCard(GatewayRequest, frozen=True, kw_only=True):
    card_serial: str

    async def perform(self, gateway: AsyncTapgateClient) -> Payee | None:
        try:
            card = await gateway.cards.get(self.card_serial)
        except client.NotFoundError:
            return await _find_in_other_book(gateway, card_serial=self.card_serial)
        owner = None
        if card.subscriber_id is not None:
            owner = await gateway.subscribers.get(card.subscriber_id)
        if owner is None or owner.status == SubscriberStatus.CLOSED:
            return await _find_in_other_book(gateway, card_serial=self.card_serial)
        if card.type == CardType.PARENT:
            name = _format_public_name(owner)
        else:
            name = mask_person_name(card.holder_name or "?")
        return Payee(
            name=name,
            can_receive=card.status == CardStatus.ACTIVE,
            payee=card.serial,
            subscriber_id=owner.id,
        )


class FindPayeeByPhone(GatewayRequest, frozen=True, kw_only=True):
    phone: str

    async def perform(self, gateway: AsyncTapgateClient) -> Payee | None:
        found = await find_subscriber(gateway, self.phone)
        if found is None or found.status == SubscriberStatus.CLOSED:
            return await _find_in_other_book(gateway, phone_number=self.phone)
        return Payee(
            name=_format_public_name(found),
            can_receive=True,
            payee=self.phone,
            subscriber_id=found.id,
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


#: A transfer that was partly reversed cannot be recalled, but a payment can be disputed in part.
_UNDOABLE_STATUSES: Final = (TransactionStatus.COMPLETED, TransactionStatus.PARTIALLY_REFUNDED)


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
    id: str = ""


class ListTransactions(GatewayRequest, frozen=True, kw_only=True):
    """List a subscriber's transactions, newest first."""

    subscriber_id: str
    limit: int

    async def perform(self, gateway: AsyncTapgateClient) -> list[TransactionSummary]:
        listed = gateway.transactions.list(user_id=self.subscriber_id, limit=self.limit)
        return [_to_transaction_summary(record) for record in (await listed.get_page()).data]


class ListUndoable(GatewayRequest, frozen=True, kw_only=True):
    """List a subscriber's own payments that may be undone since a day, newest first.

    `including` is the ID of a payment that is listed even if others are newer.
    """

    subscriber_id: str
    types: tuple[TransactionType, ...]
    since: str
    limit: int
    including: str | None = None

    async def perform(self, gateway: AsyncTapgateClient) -> list[TransactionSummary]:
        found: list[TransactionSummary] = []
        for transaction_type in self.types:
            listed = gateway.transactions.list(
                user_id=self.subscriber_id, type=transaction_type, from_=self.since, limit=50
            )
            records = (await listed.get_page()).data
            if self.including not in (None, *(record.id for record in records)):
                records = [record async for record in listed]
            found += [
                _to_transaction_summary(record)
                for record in records
                if record.direction == Direction.DEBIT and record.status in _UNDOABLE_STATUSES
            ]
        found.sort(key=lambda summary: summary.at, reverse=True)
        return [
            summary
            for number, summary in enumerate(found)
            if number < self.limit or summary.id == self.including
        ]


class GetProof(GatewayRequest, frozen=True, kw_only=True):
    """Get a transaction's inclusion proof, packed for a link.

    The proof leaves out the totals of the day, which are the operator's.
    """

    transaction_id: str

    async def perform(self, gateway: AsyncTapgateClient) -> str:
        proof = await gateway.day_close.get_transaction_proof(self.transaction_id)
        day = msgspec.structs.replace(proof.day, totals=msgspec.UNSET)
        content = msgspec.json.encode(msgspec.structs.replace(proof, day=day))
        return urlsafe_b64encode(zlib.compress(content, 9)).decode().rstrip("=")


class LastTransfers(msgspec.Struct, frozen=True, kw_only=True):
    """Newest incoming and outgoing transfers; None if there is none."""

    incoming: TransactionSummary | None
    outgoing: TransactionSummary | None


class GetLastTransfers(GatewayRequest, frozen=True, kw_only=True):
    """Find the subscriber's last transfer in each direction, whatever its status."""

    subscriber_id: str

    async def perform(self, gateway: AsyncTapgateClient) -> LastTransfers:
        listed = gateway.transactions.list(
            user_id=self.subscriber_id, type=TransactionType.TRANSFER_P2P, limit=50
        )
        transfers = [_to_transaction_summary(record) for record in (await listed.get_page()).data]
        return LastTransfers(
            incoming=next((item for item in transfers if item.is_credit), None),
            outgoing=next((item for item in transfers if not item.is_credit), None),
        )


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


def is_phone_payee(payee: str) -> bool:
    """Return whether a payee is a phone number, not a card serial."""
    return payee.startswith("+")


def _format_public_name(record: SubscriberRecord) -> str:
    """Return the name in the form the gateway prints on receipts."""
    return build_public_name(record.first_name, record.last_name)


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
        counterparty_name=_get_counterparty_name(record.merchant_name, counterparty),
        at=datetime.fromisoformat(record.created_at),
        failure_code=record.failure_code,
        id=record.id,
    )


def _get_counterparty_name(merchant_name: str | None, party: PartyRecord | None) -> str | None:
    """Return the counterparty's name, masked for a subscriber, or None if it is unknown."""
    name = "" if party is None else party.name or ""
    if not (merchant_name or name):
        return None
    is_person = party is not None and party.type == PartyType.SUBSCRIBER
    shown = get_counterparty_name(merchant_name, name, is_person=is_person)
    return mask_person_name(shown) if is_person and not merchant_name else shown


# Support


class GetSupportContact(GatewayRequest, frozen=True, kw_only=True):
    """Get the branding's support contact; None if there is none or the request fails."""

    async def perform(self, gateway: AsyncTapgateClient) -> str | None:
        try:
            return (await gateway.branding.get()).support_contact
        except TapgateError:
            return None


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
        await gateway.support.receive_message(
            phone_number=self.phone,
            text=(text if self.transcript else self.text)[:MAX_CUSTOMER_TEXT_LENGTH],
            append_only=self.append_only,
            message_id=self.message_id,
        )
