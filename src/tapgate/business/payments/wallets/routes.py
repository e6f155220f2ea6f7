"""Endpoints for wallets."""

import msgspec

from tapgate.business.customers.subscribers.restriction import require_account_access
from tapgate.business.payments.books import recipients
from tapgate.business.payments.books.recipients import Recipient
from tapgate.business.payments.transactions.money_requests import (
    build_memo,
    decode_id,
    format_amount,
    get_channel,
    get_pin_policy,
    submit_request,
    to_minor_units,
)
from tapgate.business.payments.wallets import balance, quote
from tapgate.core.message_templates import Notice
from tapgate.core.public_names import clean_person_name
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.idempotency import build_idempotency_key
from tapgate.http.api.notice_declarations import Unnoticed
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command
from tapgate_client import ids
from tapgate_client.errors import Code
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.wallets import (
    Balance,
    P2pReceipt,
    P2pTransferRequest,
    Quote,
    QuoteRequest,
    TransferReceipt,
    TransferRequest,
)
from tapgate_client.schemas.wallets import Recipient as RecipientRecord

endpoints = Endpoints("Wallet", owners=NEVER)

#: Error codes with which both kinds of transfer may fail.
_DECLINE_CODES = (
    Code.INVALID_PIN,
    Code.ACCOUNT_LOCKED,
    Code.SUBSCRIBER_BLOCKED,
    Code.TRANSACTION_LIMIT_EXCEEDED,
    Code.DAILY_LIMIT_EXCEEDED,
    Code.MONTHLY_LIMIT_EXCEEDED,
    Code.COMPLIANCE_REJECTED,
    Code.INSUFFICIENT_FUNDS,
    Code.MAX_BALANCE_EXCEEDED,
)


#: Operations that a transfer into this account kind also counts as. A commission balance can be
#: paid out to the float.
_FUNDING_OPERATIONS = {
    chart.FLOAT: Operation.AGENT_FUND,
    chart.COMMISSION: Operation.AGENT_FUND,
    chart.CLEARING: Operation.PARTNER_FUND,
}


@endpoints.post(
    "/api/v1/wallet/transfer-p2p",
    access=Access(scope="payments:write", roles="AF", service=True),
    moves_money=True,
    errors=(
        Code.SUBSCRIBER_NOT_FOUND,
        Code.CARD_NOT_FOUND,
        Code.SELF_TRANSFER,
        Code.CARD_NOT_ACTIVE,
        *_DECLINE_CODES,
    ),
    unguarded=Unguarded.PIN,
    objects=ObjectAccess.PIN,
    unnoticed=Unnoticed.RECEIPT,
)
async def transfer_p2p(request: RequestContext, body: P2pTransferRequest) -> Reply[P2pReceipt]:
    """Send money to a cardholder, or to a phone number's owner.

    Identify the recipient by either `recipient_card_serial` or `recipient_phone_number`. The money
    is credited to the wallet that the card spends from. With the default fee rules, the
    sender pays the fee in addition to the amount. Only the amount counts toward limits. If a
    compliance rule requires a review, the transfer has the status `under_review`: the money is held
    until the review releases it to the recipient or returns it to the sender.

    A recipient whom this installation does not have may live in [another book](books.md). The
    receipt then names the book. The sender is debited at once, and the other book credits the
    recipient within seconds. If it refuses the transfer, the sender gets amount and fee back with a
    message, and the transfer has the status `reversed`.
    """
    recipient = await _find_recipient(request, body)
    command = Command(
        type=chart.TRANSFER_P2P,
        channel=get_channel(request.principal),
        payer=commands.subscriber_party(decode_id(ids.SUBSCRIBER, body.sender_id)),
        payee=recipient.party,
        amount=to_minor_units(request, body.amount),
        payer_pin=body.pin,
        pin_policy=get_pin_policy(request.principal, chart.TRANSFER_P2P),
        idempotency_key=build_idempotency_key(request, body),
        context=recipient.add_context(build_memo(body.memo)),
        caller_error=recipient.caller_error,
        caller_error_details={"party": "receiver"},
        book_transfer=recipient.book_transfer,
    )
    result = await submit_request(request, command)
    customer = recipient.customer
    name = result.payee_name if customer is None else customer.name
    return result.build_reply(
        P2pReceipt,
        "Transfer completed" if customer is None else "Transfer sent to another book",
        fee_amount=result.fee,
        sender_new_balance=result.payer_balance,
        recipient=RecipientRecord(
            name=clean_person_name(name) if name else None,
            card_serial=body.recipient_card_serial or msgspec.UNSET,
            book=msgspec.UNSET if customer is None else customer.book,
        ),
    )


async def _find_recipient(request: RequestContext, body: P2pTransferRequest) -> Recipient:
    if body.recipient_card_serial is not None:
        return await recipients.find_by_card(request.services, body.recipient_card_serial)
    assert body.recipient_phone_number is not None
    return await recipients.find_by_phone(request.services, body.recipient_phone_number)


async def _describe_transfer(request: GuardedRequest, body: TransferRequest) -> Proposal | None:
    if request.principal.kind == "api_key":
        return None  # only between wallets, and the payer authorizes it with the PIN
    sides = await balance.describe_accounts(
        request.services.database, [body.from_account_id, body.to_account_id]
    )
    payer, payee = sides.get(body.from_account_id), sides.get(body.to_account_id)
    if payer is None or payee is None:
        return None  # the ledger rejects the transfer
    amount = to_minor_units(request, body.amount)
    operations = [Operation.WALLET_TRANSFER]
    if payer.kind == chart.SETTLEMENT:
        operations.insert(0, Operation.PROCESSOR_TRANSFER)
    if payee.kind in _FUNDING_OPERATIONS:
        operations.insert(0, _FUNDING_OPERATIONS[payee.kind])
    return Proposal(
        operations=tuple(operations),
        summary=f"Transfer {format_amount(request, amount)} from {payer.name} to {payee.name}",
        resource_id=payee.holder_id,
        amount=amount,
    )


@endpoints.post(
    "/api/v1/wallet/transfer",
    access=Access(scope="payments:write", roles="AF"),
    moves_money=True,
    step_up=True,
    guard=Guard(
        _describe_transfer,
        Operation.WALLET_TRANSFER,
        Operation.PROCESSOR_TRANSFER,
        Operation.AGENT_FUND,
        Operation.PARTNER_FUND,
    ),
    errors=(
        Code.ACCOUNT_NOT_FOUND,
        Code.OTP_REQUIRED,
        Code.SELF_TRANSFER,
        Code.PIN_REQUIRED,
        Code.AGENT_NOT_ACTIVE,
        Code.PROCESSOR_SUSPENDED,
        Code.PARTNER_SUSPENDED,
        Code.INSUFFICIENT_FLOAT,
        *_DECLINE_CODES,
    ),
    objects=ObjectAccess.UNRESTRICTED | ObjectAccess.PIN | ObjectAccess.SUBSCRIBER_WALLETS,
    notices=(Notice.MONEY_CORRECTED,),
)
async def transfer_funds(request: GuardedRequest, body: TransferRequest) -> Reply[TransferReceipt]:
    """Move money from one account to another.

    An API key can transfer only between subscribers' accounts and must send the sender's PIN. A
    system_admin or finance_user can transfer between any accounts.
    """
    is_api_key = request.principal.kind == "api_key"
    payer, payee = (
        decode_id(ids.ACCOUNT, account) for account in (body.from_account_id, body.to_account_id)
    )
    # The receipt reveals balances, and not every caller may see a restricted subscriber's balance.
    # With the PIN, the payer has authorized the transfer, so access to the payer is not checked.
    disclosed_accounts = [payee] if body.pin is not None else [payer, payee]
    await require_account_access(
        request.services.database, request.caller, request.services.clock(), disclosed_accounts
    )
    command = Command(
        type=chart.TRANSFER,
        channel=get_channel(request.principal),
        payer=commands.account_party(payer),
        payee=commands.account_party(payee),
        amount=to_minor_units(request, body.amount),
        payer_pin=body.pin,
        pin_policy=get_pin_policy(request.principal, chart.TRANSFER),
        wallets_only=is_api_key,
        idempotency_key=build_idempotency_key(request, body),
        context=build_memo(body.description),
    )
    result = await submit_request(request, command)
    return result.build_reply(
        TransferReceipt,
        "Transfer completed",
        from_balance=result.payer_balance,
        to_balance=result.payee_balance,
    )


@endpoints.post(
    "/api/v1/wallet/quote",
    access=Access(scope="payments:write", roles="AF", service=True),
    errors=(
        Code.SUBSCRIBER_NOT_FOUND,
        Code.CARD_NOT_FOUND,
        Code.OTP_REQUIRED,
    ),
    unguarded=Unguarded.NO_EFFECT,
    objects=ObjectAccess.UNRESTRICTED,
    effect="reads",
    unnoticed=Unnoticed.NO_CHANGE,
)
async def create_quote(request: RequestContext, body: QuoteRequest) -> Quote:
    """Get a quote for a transaction.

    `total` is the amount plus a fee that the sender pays. `reasons` lists the error codes with
    which the transaction would currently fail because of the subscribers and cards in the request,
    in the order of the checks. Identify the sender by `sender_id`, by `card_serial` or by both. For
    types that a subscriber can only receive, this is the receiving subscriber. With
    `recipient_card_serial`, a P2P transfer quote also covers the recipient. Without a subscriber,
    it covers only the fee.

    `pin_required` is true if the sender must enter the PIN. For card payments, it depends on the
    no-PIN limits: it is null without a sender, and without `card_serial` it disregards earlier
    payments with the card. In-app payments cannot have a PIN, so `reasons` then has `PIN_REQUIRED`.
    `limits` has what the sender may spend per transaction, and what is left for today (also within
    the card's own limit) and this month. It is null if no limits apply.

    For an API key without `balance:read`, `reasons` and `allowed` disregard `INSUFFICIENT_FUNDS`
    and `MAX_BALANCE_EXCEEDED`. A quote moves no money, verifies no PIN and does not count toward
    limits.
    """
    services = request.services
    return await quote.get_quote(
        services.ledger,
        services.database,
        request.principal,
        body,
        currency=services.settings.currency,
        now=services.clock(),
    )


@endpoints.get(
    "/api/v1/balance/{user_id}",
    access=Access(scope="balance:read", roles="ACSF", service=True),
    errors=(*balance.NOT_FOUND_CODES.values(), Code.ACCOUNT_NOT_FOUND, Code.OTP_REQUIRED),
    objects=ObjectAccess.UNRESTRICTED,
)
async def get_balance(request: RequestContext, user_id: str) -> Balance:
    """Get the balance of a subscriber, an agent (the float), a processor or a partner."""
    services = request.services
    return await balance.get_balance(
        services.database, request.caller, user_id, now=services.clock()
    )
