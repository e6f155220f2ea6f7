"""Quotes: the fee for a transaction, and the error codes with which it would fail."""

from datetime import datetime
from typing import Final

from tapgate import ids, money
from tapgate.auth.principals import Principal
from tapgate.errors import Code
from tapgate.ledger.engine import Ledger
from tapgate.schemas.fees import FeePayer
from tapgate.schemas.records import require_id
from tapgate.schemas.wallets import Quote, QuoteRequest
from tapgate.store.database import Database
from tapgate.subscribers import queries as subscribers

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
    amount, sender_id = money.parse(body.amount, currency), None
    if body.sender_id is not None:
        # A series of quotes would reveal the balance by bisection.
        sender = await subscribers.get_accessible(
            database, caller, now, require_id(ids.SUBSCRIBER, body.sender_id)
        )
        sender_id = sender.id
    assessment = await ledger.assess(
        database, transaction_type=body.type, amount=amount, subscriber_id=sender_id
    )
    rejections = [*assessment.rejections]
    if assessment.insufficient_funds is not None:
        rejections.append(assessment.insufficient_funds)
    can_read_balance = caller.kind != "api_key" or "balance:read" in caller.scopes
    reasons = [
        str(rejection.code)
        for rejection in rejections
        if can_read_balance or rejection.code not in _BALANCE_CODES
    ]
    sender_fee = assessment.fee if assessment.fee_payer == FeePayer.SENDER else 0
    return Quote(
        amount=money.format_decimal(amount, currency),
        fee_amount=money.format_decimal(assessment.fee, currency),
        total=money.format_decimal(amount + sender_fee, currency),
        currency=currency,
        allowed=not reasons,
        reasons=reasons,
    )
