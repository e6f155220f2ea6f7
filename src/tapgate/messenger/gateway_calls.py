"""What the conversation engine asks for, asked of the gateway through its client.

The gateway decides everything about money. Here is only what a person may ask about: their own
wallet and cards, and as much of others as a sender must see.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import structlog

from tapgate.client import AsyncGateway
from tapgate.client import exceptions as client
from tapgate.client.records.cards import Card as CardRecord
from tapgate.client.records.cards import DisclosedCard
from tapgate.client.records.subscribers import Subscriber as SubscriberRecord
from tapgate.client.records.transactions import Party, Transaction
from tapgate.errors import Code
from tapgate.messenger.model import calls
from tapgate.messenger.model.calls import Call, Card, Movement, Payee, Subscriber
from tapgate.messenger.model.events import Answered, Refused, Unreachable
from tapgate.names import mask_name

_TRANSFER = "transfer_p2p"
_ACTIVE = "ACTIVE"
_PARENT = "PARENT"
_SUPPORT_REQUEST = "SUPPORT_REQUEST"

_log = structlog.get_logger()


class GatewayCalls:
    """One of these per process, for everybody."""

    def __init__(self, gateway: AsyncGateway) -> None:
        self._gateway = gateway
        self._by_kind: dict[type, Callable[[Any], Awaitable[object]]] = {
            calls.FindSubscriber: self._find_subscriber,
            calls.Register: self._register,
            calls.ReadBalance: self._read_balance,
            calls.ReadLimits: self._read_limits,
            calls.FindCard: self._find_card,
            calls.FindPayee: self._find_payee,
            calls.Quote: self._quote,
            calls.SendMoney: self._send_money,
            calls.ReadHistory: self._read_history,
            calls.MakeStatement: self._make_statement,
            calls.ReadCards: self._read_cards,
            calls.LinkCard: self._link_card,
            calls.BlockCard: self._block_card,
            calls.UnblockCard: self._unblock_card,
            calls.VerifyPin: self._verify_pin,
            calls.ChangePin: self._change_pin,
            calls.AddDocument: self._add_document,
            calls.AskForPerson: self._ask_for_person,
        }

    async def perform(self, call: Call) -> Answered | Refused | Unreachable:
        try:
            return Answered(result=await self._by_kind[type(call)](call))
        except client.Refused as error:
            return _refused(call, error)
        except client.ConnectionFailed:
            return Unreachable(uncertain=False)
        except client.TapgateError:
            return Unreachable(uncertain=True)
        except _NotTheirsError:
            return Refused(code=Code.CARD_NOT_FOUND)

    async def _find_subscriber(self, call: calls.FindSubscriber) -> Subscriber | None:
        found = await self._by_phone(call.phone)
        return None if found is None else _subscriber(found)

    async def _register(self, call: calls.Register) -> Subscriber:
        registered = await self._gateway.subscribers.register(
            phone_number=call.phone,
            first_name=call.first_name,
            last_name=call.last_name,
            pin=call.pin,
        )
        return _subscriber(registered.subscriber)

    async def _read_balance(self, call: calls.ReadBalance) -> calls.Balance:
        found = await self._gateway.balance.get(call.subscriber_id)
        return calls.Balance(
            balance=found.balance,
            available=found.available,
            held=found.held,
            currency=found.currency,
        )

    async def _read_limits(self, call: calls.ReadLimits) -> calls.Limits:
        rule = await self._gateway.account_rules.get(call.kyc_level)
        return calls.Limits(
            kyc_level=rule.kyc_level,
            currency=rule.currency,
            max_balance=rule.max_balance,
            max_transaction=rule.max_transaction,
            daily_limit=rule.daily_limit,
            monthly_limit=rule.monthly_limit,
        )

    async def _find_card(self, call: calls.FindCard) -> Payee | None:
        try:
            card = await self._gateway.cards.get(call.card_serial)
        except client.NotFound:
            return None
        if card.subscriber_id is None:
            return None
        if card.type == _PARENT:
            owner = await self._gateway.subscribers.get(card.subscriber_id)
            name = _public_name(owner)
        else:
            name = mask_name(card.holder_name or "?")
        return _payee(name, card if card.status == _ACTIVE else None, card.subscriber_id)

    async def _find_payee(self, call: calls.FindPayee) -> Payee | None:
        found = await self._by_phone(call.phone)
        if found is None:
            return None
        cards = await self._gateway.cards.list(subscriber_id=found.id, status=_ACTIVE).page()
        # A child's card would do too, but the parent's is the one that was meant.
        best = min(cards.data, key=lambda card: card.type != _PARENT, default=None)
        return _payee(_public_name(found), best, found.id)

    async def _quote(self, call: calls.Quote) -> calls.Quoted:
        quote = await self._gateway.wallet.quote(
            type=_TRANSFER, amount=call.amount, sender_id=call.sender_id
        )
        return calls.Quoted(
            amount=quote.amount,
            fee_amount=quote.fee_amount,
            total=quote.total,
            currency=quote.currency,
            allowed=quote.allowed,
            reasons=tuple(quote.reasons),
        )

    async def _send_money(self, call: calls.SendMoney) -> calls.Receipt:
        receipt = await self._gateway.wallet.transfer_p2p(
            sender_id=call.sender_id,
            recipient_card_serial=call.card_serial,
            amount=call.amount,
            pin=call.pin,
            request_id=call.request_id,
        )
        return calls.Receipt(
            transaction_id=receipt.transaction_id,
            status="completed" if receipt.status == "completed" else "under_review",
            amount=receipt.amount,
            fee_amount=receipt.fee_amount,
            new_balance=receipt.sender_new_balance,
            recipient_name=receipt.recipient.name or "",
        )

    async def _read_history(self, call: calls.ReadHistory) -> list[Movement]:
        listed = self._gateway.transactions.list(user_id=call.subscriber_id, limit=call.limit)
        return [_movement(one) for one in (await listed.page()).data]

    async def _make_statement(self, call: calls.MakeStatement) -> calls.Statement:
        statement = await self._gateway.wallet.statement(
            subscriber_id=call.subscriber_id,
            from_date=call.from_date,
            to_date=call.to_date,
            format="pdf",
        )
        return calls.Statement(
            link=statement.statement_url or "", from_date=call.from_date, to_date=call.to_date
        )

    async def _read_cards(self, call: calls.ReadCards) -> list[Card]:
        listed = self._gateway.cards.list(subscriber_id=call.subscriber_id)
        return [_card(one) for one in (await listed.page()).data]

    async def _link_card(self, call: calls.LinkCard) -> Card:
        linked = await self._gateway.cards.link(
            subscriber_id=call.subscriber_id, card_serial=call.card_serial, pin=call.pin
        )
        return _card(linked.card)

    async def _block_card(self, call: calls.BlockCard) -> Card:
        await self._require_own(call.subscriber_id, call.card_serial)
        blocked = await self._gateway.cards.block(call.card_serial, reason=call.reason)
        return _card(blocked.card)

    async def _unblock_card(self, call: calls.UnblockCard) -> Card:
        await self._require_own(call.subscriber_id, call.card_serial)
        await self._gateway.subscribers.verify_pin(call.subscriber_id, pin=call.pin)
        unblocked = await self._gateway.cards.unblock(call.card_serial)
        return _card(unblocked.card)

    async def _verify_pin(self, call: calls.VerifyPin) -> bool:
        return (
            await self._gateway.subscribers.verify_pin(call.subscriber_id, pin=call.pin)
        ).verified

    async def _change_pin(self, call: calls.ChangePin) -> bool:
        changed = await self._gateway.subscribers.change_pin(
            call.subscriber_id, old_pin=call.old_pin, new_pin=call.new_pin
        )
        return changed.success

    async def _add_document(self, call: calls.AddDocument) -> str:
        added = await self._gateway.subscribers.add_kyc_document(
            call.subscriber_id, document_type=call.document_type, image=call.picture.content
        )
        return added.kyc_status

    async def _ask_for_person(self, call: calls.AskForPerson) -> bool:
        await self._gateway.compliance.create_alert(
            alert_type=_SUPPORT_REQUEST,
            severity="LOW",
            subscriber_id=call.subscriber_id,
            details={"asked_by": call.phone or call.address},
        )
        return True

    async def _by_phone(self, phone: str) -> SubscriberRecord | None:
        page = await self._gateway.subscribers.list(phone_number=phone, limit=1).page()
        return page.data[0] if page.data else None

    async def _require_own(self, subscriber_id: str, card_serial: str) -> None:
        card = await self._gateway.cards.get(card_serial)
        if card.subscriber_id != subscriber_id:
            raise _NotTheirsError


class _NotTheirsError(Exception):
    """Of other people's cards nobody is told whether they exist."""


def _refused(call: Call, error: client.Refused) -> Refused | Unreachable:
    over_limit = isinstance(error, client.RateLimited) and error.details
    if isinstance(error, client.TryLater) and not over_limit:
        # Lost while the gateway was committing looks the same as lost before.
        may_have_moved = isinstance(call, calls.SendMoney) and error.status == 503
        return Unreachable(uncertain=may_have_moved)
    if isinstance(error, client.ServerFailed):
        return Unreachable(uncertain=True)
    if error.code in (Code.UNAUTHORIZED, Code.FORBIDDEN):
        # Nothing that the person could do about it, much that an operator can.
        _log.error("gateway.refuses_messenger", code=error.code)
        return Unreachable(uncertain=False)
    return Refused(code=error.code, message=error.message, details=error.details)


def _subscriber(record: SubscriberRecord) -> Subscriber:
    return Subscriber(
        id=record.id,
        first_name=record.first_name,
        status=record.status,
        kyc_level=record.kyc_level,
        kyc_status=record.kyc_status,
    )


def _public_name(record: SubscriberRecord) -> str:
    """As the gateway writes it on the receipt."""
    return f"{record.first_name} {record.last_name[:1]}."


def _payee(name: str, card: CardRecord | None, subscriber_id: str) -> Payee:
    return Payee(
        name=name,
        card_serial=None if card is None else card.serial,
        subscriber_id=subscriber_id,
    )


def _card(record: CardRecord | DisclosedCard) -> Card:
    return Card(
        serial=record.serial,
        type=record.type,
        status=record.status,
        holder_name=record.holder_name,
    )


def _movement(record: Transaction) -> Movement:
    is_credit = record.direction == "credit"
    return Movement(
        transaction_id=record.id,
        type=record.type,
        status=record.status,
        direction="credit" if is_credit else "debit",
        amount=record.amount,
        fee_amount=record.fee_amount,
        currency=record.currency,
        other=record.merchant_name or _name(record.from_ if is_credit else record.to),
        at=datetime.fromisoformat(record.created_at),
    )


def _name(party: Party | None) -> str | None:
    """Shops and agents are called by their names, people by as much as they show."""
    if party is None or not party.name:
        return None
    return mask_name(party.name) if party.type == "subscriber" else party.name
