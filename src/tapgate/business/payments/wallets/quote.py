"""Quotes: the fee for a transaction, and the error codes with which it would fail."""

from datetime import datetime
from typing import Final

from tapgate.auth.principals import Principal
from tapgate.business.customers.cards import queries as cards
from tapgate.business.customers.cards.model import Card
from tapgate.business.customers.subscribers import queries as subscribers
from tapgate.business.customers.subscribers.restriction import require_account_access
from tapgate.business.payments.transactions.money_requests import get_pin_policy
from tapgate.core.records import require_id
from tapgate.ledger import chart
from tapgate.ledger.commands import Party, card_party, subscriber_party
from tapgate.ledger.decisions.assess import Assessment, RemainingLimits, build_command
from tapgate.ledger.engine.group_commit import Ledger
from tapgate.runtime.store.database import Database
from tapgate_client import ids, money
from tapgate_client.errors import Code, invalid_field
from tapgate_client.schemas.transactions import FeePayer
from tapgate_client.schemas.wallets import Quote, QuoteLimits, QuoteRequest

#: Codes that reveal something about a balance.
_BALANCE_CODES: Final = frozenset(
    {Code.INSUFFICIENT_FUNDS, Code.INSUFFICIENT_FLOAT, Code.MAX_BALANCE_EXCEEDED}
)


async def get_quote(
    ledger: Ledger,
    database: Database,
    caller: Principal,
    body: QuoteRequest,
    *,
    currency: str,
    now: datetime,
) -> Quote:
    amount = money.parse(body.amount, currency)
    subscriber = await _find_subscriber(database, caller, body, now)
    recipient = None
    if body.recipient_card_serial is not None:
        card = await _get_card(database, caller, body.recipient_card_serial, now)
        recipient = card_party(card.serial)
    command = build_command(
        body.type,
        amount,
        subscriber,
        recipient=recipient,
        pin_policy=get_pin_policy(caller, body.type),
    )
    assessment = await ledger.assess(database, command)
    can_read_balance = caller.kind != "api_key" or "balance:read" in caller.scopes
    reasons = [
        str(code)
        for code in _list_error_codes(body.type, assessment)
        if can_read_balance or code not in _BALANCE_CODES
    ]
    sender_fee = assessment.fee if assessment.fee_payer == FeePayer.SENDER else 0
    return Quote(
        amount=money.format_decimal(amount, currency),
        fee_amount=money.format_decimal(assessment.fee, currency),
        total=money.format_decimal(amount + sender_fee, currency),
        currency=currency,
        allowed=not reasons,
        reasons=reasons,
        pin_required=assessment.pin_required,
        limits=_format_limits(assessment.limits, currency),
    )


async def _find_subscriber(
    database: Database, caller: Principal, body: QuoteRequest, now: datetime
) -> Party | None:
    """Return the party that `sender_id` or `card_serial` identifies, or None without both.

    The caller needs access to a restricted subscriber, because a series of quotes would reveal the
    balance by bisection.
    """
    sender = None
    if body.sender_id is not None:
        sender = await subscribers.get_accessible(
            database, caller, now, require_id(ids.SUBSCRIBER, body.sender_id)
        )
    if body.card_serial is None:
        return None if sender is None else subscriber_party(sender.id)
    card = await _get_card(database, caller, body.card_serial, now)
    if sender is not None and sender.account_id != card.account_id:
        raise invalid_field("card_serial", "must be a card of the sender")
    return card_party(card.serial)


async def _get_card(database: Database, caller: Principal, serial: str, now: datetime) -> Card:
    card = await cards.get(database, serial)
    await require_account_access(database, caller, now, [card.account_id])
    return card


def _list_error_codes(transaction_type: str, assessment: Assessment) -> list[Code]:
    codes = [rejection.code for rejection in assessment.rejections]
    if transaction_type == chart.ONLINE_PAYMENT and assessment.pin_required:
        codes.insert(0, Code.PIN_REQUIRED)  # an in-app payment cannot have a PIN
    return codes


def _format_limits(limits: RemainingLimits | None, currency: str) -> QuoteLimits | None:
    if limits is None:
        return None
    return QuoteLimits(
        transaction=money.format_decimal(limits.transaction, currency),
        daily_remaining=money.format_decimal(limits.day, currency),
        monthly_remaining=money.format_decimal(limits.month, currency),
    )
