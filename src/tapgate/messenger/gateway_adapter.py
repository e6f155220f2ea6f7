"""Adapter that executes the conversation engine's requests through the gateway's client.

The gateway makes all decisions about money. The adapter masks the names of other subscribers, and
rejects blocking or unblocking a card that does not belong to the subscriber.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import structlog

from tapgate.client import AsyncTapgateClient
from tapgate.client import exceptions as client
from tapgate.errors import Code
from tapgate.messenger.model import gateway_requests
from tapgate.messenger.model.events import GatewayUnreachable, RequestRejected, RequestSucceeded
from tapgate.messenger.model.gateway_requests import (
    Card,
    GatewayRequest,
    Payee,
    Subscriber,
    TransactionSummary,
)
from tapgate.names import mask_name
from tapgate.schemas.cards import CardRecord, CardStatus, CardType, DisclosedCard
from tapgate.schemas.subscribers import SubscriberRecord
from tapgate.schemas.transactions import PartyRecord, TransactionRecord, TransactionType

_SUPPORT_ALERT_TYPE = "SUPPORT_REQUEST"

_log = structlog.get_logger()


class GatewayAdapter:
    """Executes gateway requests; one instance per process, shared by all conversations."""

    def __init__(self, gateway: AsyncTapgateClient) -> None:
        self._gateway = gateway
        self._handlers: dict[type, Callable[[Any], Awaitable[object]]] = {
            gateway_requests.FindSubscriber: self._find_subscriber,
            gateway_requests.RegisterSubscriber: self._register_subscriber,
            gateway_requests.GetBalance: self._get_balance,
            gateway_requests.GetLimits: self._get_limits,
            gateway_requests.FindPayeeByCard: self._find_payee_by_card,
            gateway_requests.FindPayeeByPhone: self._find_payee_by_phone,
            gateway_requests.QuoteTransfer: self._quote_transfer,
            gateway_requests.SendMoney: self._send_money,
            gateway_requests.ListTransactions: self._list_transactions,
            gateway_requests.CreateStatement: self._create_statement,
            gateway_requests.ListCards: self._list_cards,
            gateway_requests.LinkCard: self._link_card,
            gateway_requests.BlockCard: self._block_card,
            gateway_requests.UnblockCard: self._unblock_card,
            gateway_requests.VerifyPin: self._verify_pin,
            gateway_requests.ChangePin: self._change_pin,
            gateway_requests.AddDocument: self._add_document,
            gateway_requests.RequestSupport: self._request_support,
        }

    async def perform(
        self, request: GatewayRequest
    ) -> RequestSucceeded | RequestRejected | GatewayUnreachable:
        try:
            return RequestSucceeded(result=await self._handlers[type(request)](request))
        except client.ApiError as error:
            return _map_error(request, error)
        except client.ApiConnectionError:
            return GatewayUnreachable(uncertain=False)
        except client.TapgateError:
            return GatewayUnreachable(uncertain=True)
        except _CardNotOwnedError:
            return RequestRejected(code=Code.CARD_NOT_FOUND)

    async def _find_subscriber(self, request: gateway_requests.FindSubscriber) -> Subscriber | None:
        found = await self._find_subscriber_by_phone(request.phone)
        return None if found is None else _to_subscriber(found)

    async def _register_subscriber(
        self, request: gateway_requests.RegisterSubscriber
    ) -> Subscriber:
        registered = await self._gateway.subscribers.register(
            phone_number=request.phone,
            first_name=request.first_name,
            last_name=request.last_name,
            pin=request.pin,
        )
        return _to_subscriber(registered.subscriber)

    async def _get_balance(self, request: gateway_requests.GetBalance) -> gateway_requests.Balance:
        found = await self._gateway.balances.get(request.subscriber_id)
        return gateway_requests.Balance(
            balance=found.balance,
            available=found.available,
            held=found.held,
            currency=found.currency,
        )

    async def _get_limits(self, request: gateway_requests.GetLimits) -> gateway_requests.Limits:
        rule = await self._gateway.account_rules.get(request.kyc_level)
        return gateway_requests.Limits(
            kyc_level=rule.kyc_level,
            currency=rule.currency,
            max_balance=rule.max_balance,
            max_transaction=rule.max_transaction,
            daily_limit=rule.daily_limit,
            monthly_limit=rule.monthly_limit,
        )

    async def _find_payee_by_card(self, request: gateway_requests.FindPayeeByCard) -> Payee | None:
        try:
            card = await self._gateway.cards.get(request.card_serial)
        except client.NotFoundError:
            return None
        if card.subscriber_id is None:
            return None
        if card.type == CardType.PARENT:
            owner = await self._gateway.subscribers.get(card.subscriber_id)
            name = _format_public_name(owner)
        else:
            name = mask_name(card.holder_name or "?")
        return _to_payee(
            name, card if card.status == CardStatus.ACTIVE else None, card.subscriber_id
        )

    async def _find_payee_by_phone(
        self, request: gateway_requests.FindPayeeByPhone
    ) -> Payee | None:
        found = await self._find_subscriber_by_phone(request.phone)
        if found is None:
            return None
        cards = await self._gateway.cards.list(
            subscriber_id=found.id, status=CardStatus.ACTIVE
        ).get_page()
        # Prefer the parent card: a sender who gives a phone number means its owner.
        best = min(cards.data, key=lambda card: card.type != CardType.PARENT, default=None)
        return _to_payee(_format_public_name(found), best, found.id)

    async def _quote_transfer(
        self, request: gateway_requests.QuoteTransfer
    ) -> gateway_requests.TransferQuote:
        quote = await self._gateway.wallet.quote(
            type=TransactionType.TRANSFER_P2P, amount=request.amount, sender_id=request.sender_id
        )
        return gateway_requests.TransferQuote(
            amount=quote.amount,
            fee_amount=quote.fee_amount,
            total=quote.total,
            currency=quote.currency,
            allowed=quote.allowed,
            reasons=tuple(quote.reasons),
        )

    async def _send_money(self, request: gateway_requests.SendMoney) -> gateway_requests.Receipt:
        receipt = await self._gateway.wallet.transfer_p2p(
            sender_id=request.sender_id,
            recipient_card_serial=request.card_serial,
            amount=request.amount,
            pin=request.pin,
            request_id=request.request_id,
        )
        return gateway_requests.Receipt(
            transaction_id=receipt.transaction_id,
            status="completed" if receipt.status == "completed" else "under_review",
            amount=receipt.amount,
            fee_amount=receipt.fee_amount,
            new_balance=receipt.sender_new_balance,
            recipient_name=receipt.recipient.name or "",
        )

    async def _list_transactions(
        self, request: gateway_requests.ListTransactions
    ) -> list[TransactionSummary]:
        listed = self._gateway.transactions.list(user_id=request.subscriber_id, limit=request.limit)
        return [
            _to_transaction_summary(transaction) for transaction in (await listed.get_page()).data
        ]

    async def _create_statement(
        self, request: gateway_requests.CreateStatement
    ) -> gateway_requests.Statement:
        statement = await self._gateway.wallet.create_statement(
            subscriber_id=request.subscriber_id,
            from_date=request.from_date,
            to_date=request.to_date,
            format="pdf",
        )
        return gateway_requests.Statement(
            link=statement.statement_url or "", from_date=request.from_date, to_date=request.to_date
        )

    async def _list_cards(self, request: gateway_requests.ListCards) -> list[Card]:
        listed = self._gateway.cards.list(subscriber_id=request.subscriber_id)
        return [_to_card(item) for item in (await listed.get_page()).data]

    async def _link_card(self, request: gateway_requests.LinkCard) -> Card:
        linked = await self._gateway.cards.link(
            subscriber_id=request.subscriber_id, card_serial=request.card_serial, pin=request.pin
        )
        return _to_card(linked.card)

    async def _block_card(self, request: gateway_requests.BlockCard) -> Card:
        await self._require_own_card(request.subscriber_id, request.card_serial)
        blocked = await self._gateway.cards.block(request.card_serial, reason=request.reason)
        return _to_card(blocked.card)

    async def _unblock_card(self, request: gateway_requests.UnblockCard) -> Card:
        await self._require_own_card(request.subscriber_id, request.card_serial)
        await self._gateway.subscribers.verify_pin(request.subscriber_id, pin=request.pin)
        unblocked = await self._gateway.cards.unblock(request.card_serial)
        return _to_card(unblocked.card)

    async def _verify_pin(self, request: gateway_requests.VerifyPin) -> bool:
        return (
            await self._gateway.subscribers.verify_pin(request.subscriber_id, pin=request.pin)
        ).verified

    async def _change_pin(self, request: gateway_requests.ChangePin) -> bool:
        changed = await self._gateway.subscribers.change_pin(
            request.subscriber_id, old_pin=request.old_pin, new_pin=request.new_pin
        )
        return changed.success

    async def _add_document(self, request: gateway_requests.AddDocument) -> str:
        added = await self._gateway.subscribers.add_kyc_document(
            request.subscriber_id, document_type=request.document_type, image=request.image.content
        )
        return added.kyc_status

    async def _request_support(self, request: gateway_requests.RequestSupport) -> bool:
        await self._gateway.compliance.create_alert(
            alert_type=_SUPPORT_ALERT_TYPE,
            severity="LOW",
            subscriber_id=request.subscriber_id,
            details={"asked_by": request.phone or request.address},
        )
        return True

    async def _find_subscriber_by_phone(self, phone: str) -> SubscriberRecord | None:
        page = await self._gateway.subscribers.list(phone_number=phone, limit=1).get_page()
        return page.data[0] if page.data else None

    async def _require_own_card(self, subscriber_id: str, card_serial: str) -> None:
        card = await self._gateway.cards.get(card_serial)
        if card.subscriber_id != subscriber_id:
            raise _CardNotOwnedError


class _CardNotOwnedError(Exception):
    """The card is not the subscriber's own; reported as not found to hide that it exists."""


def _map_error(
    request: GatewayRequest, error: client.ApiError
) -> RequestRejected | GatewayUnreachable:
    if isinstance(error, client.UnavailableError):
        # A 503 can come before or during the commit, so the transfer may have been executed.
        return GatewayUnreachable(uncertain=isinstance(request, gateway_requests.SendMoney))
    if isinstance(error, client.RateLimitedError) and not error.details:
        return GatewayUnreachable(uncertain=False)
    if isinstance(error, client.ServerError):
        return GatewayUnreachable(uncertain=True)
    if error.code in (Code.UNAUTHORIZED, Code.FORBIDDEN):
        # The person cannot fix the messenger's credentials; the log entry is for the operator.
        _log.error("gateway.access_denied", code=error.code)
        return GatewayUnreachable(uncertain=False)
    return RequestRejected(code=error.code, message=error.message, details=error.details)


def _to_subscriber(record: SubscriberRecord) -> Subscriber:
    return Subscriber(
        id=record.id,
        first_name=record.first_name,
        status=record.status,
        kyc_level=record.kyc_level,
        kyc_status=record.kyc_status,
    )


def _format_public_name(record: SubscriberRecord) -> str:
    """Return the name in the form the gateway prints on receipts."""
    return f"{record.first_name} {record.last_name[:1]}."


def _to_payee(name: str, card: CardRecord | None, subscriber_id: str) -> Payee:
    return Payee(
        name=name,
        card_serial=None if card is None else card.serial,
        subscriber_id=subscriber_id,
    )


def _to_card(record: CardRecord | DisclosedCard) -> Card:
    return Card(
        serial=record.serial,
        type=record.type or None,  # unset on the card of a restricted subscriber
        status=record.status,
        holder_name=record.holder_name or None,
    )


def _to_transaction_summary(record: TransactionRecord) -> TransactionSummary:
    is_credit = record.direction == "credit"
    return TransactionSummary(
        transaction_id=record.id,
        type=record.type,
        status=record.status,
        direction="credit" if is_credit else "debit",
        amount=record.amount,
        fee_amount=record.fee_amount,
        currency=record.currency,
        counterparty_name=record.merchant_name
        or _get_counterparty_name(record.from_ if is_credit else record.to),
        at=datetime.fromisoformat(record.created_at),
    )


def _get_counterparty_name(party: PartyRecord | None) -> str | None:
    """Return the party's name, masked for a subscriber, or None if the name is unknown."""
    if party is None or not party.name:
        return None
    return mask_name(party.name) if party.type == "subscriber" else party.name
