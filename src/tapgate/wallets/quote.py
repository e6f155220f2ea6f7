"""Quotes: the fee for a transaction, and the error codes with which it would fail."""

from typing import Final

from tapgate import money
from tapgate.api.endpoint import Access, Endpoints
from tapgate.api.request_context import RequestContext
from tapgate.errors import Code
from tapgate.schemas.fees import FeePayer
from tapgate.schemas.wallets import Quote, QuoteRequest
from tapgate.subscribers import queries as subscribers
from tapgate.subscribers.model import decode_subscriber_id
from tapgate.transactions.submit import to_minor_units

endpoints = Endpoints("Wallet")


#: Codes that reveal something about a balance.
_BALANCE_CODES: Final = frozenset(
    {Code.INSUFFICIENT_FUNDS, Code.INSUFFICIENT_FLOAT, Code.MAX_BALANCE_EXCEEDED}
)


@endpoints.post(
    "/api/v1/wallet/quote",
    access=Access(scope="payments:write", roles="AF", service=True),
    errors=(Code.CURRENCY_NOT_SUPPORTED, Code.SUBSCRIBER_NOT_FOUND, Code.OTP_REQUIRED),
)
async def create_quote(request: RequestContext, body: QuoteRequest) -> Quote:
    """Get a quote for a transaction.

    `total` is the amount plus a fee that the sender pays. With `sender_id`, `reasons` lists the
    error codes with which the transaction would currently fail because of this subscriber. For
    types that a subscriber can only receive, `sender_id` is the receiving subscriber. Without
    `sender_id`, the quote covers only the fee. For an API key without `balance:read`, `reasons` and
    `allowed` disregard `INSUFFICIENT_FUNDS` and `MAX_BALANCE_EXCEEDED`. A quote moves no money and
    does not count toward limits.
    """
    services, currency = request.services, request.services.settings.currency
    amount, sender_id = to_minor_units(request, body.amount), None
    if body.sender_id is not None:
        # A series of quotes would reveal the balance by bisection.
        sender = await subscribers.get_accessible(
            services.database,
            request.caller,
            services.clock(),
            decode_subscriber_id(body.sender_id),
        )
        sender_id = sender.id
    assessment = await services.ledger.assess(
        services.database, transaction_type=body.type, amount=amount, subscriber_id=sender_id
    )
    rejections = [*assessment.rejections]
    if assessment.insufficient_funds is not None:
        rejections.append(assessment.insufficient_funds)
    reasons = [
        str(rejection.code)
        for rejection in rejections
        if rejection.code not in _BALANCE_CODES or _can_read_balance(request)
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


def _can_read_balance(request: RequestContext) -> bool:
    caller = request.principal
    return caller.kind != "api_key" or "balance:read" in caller.scopes
