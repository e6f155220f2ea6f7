"""Endpoints for wallets."""

from tapgate import ids
from tapgate.api.endpoint import Access, Endpoints, Reply
from tapgate.api.request_context import RequestContext
from tapgate.errors import Code
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command
from tapgate.schemas.wallets import (
    P2pReceipt,
    P2pTransferRequest,
    Recipient,
    TransferReceipt,
    TransferRequest,
)
from tapgate.subscribers.restriction import require_account_access
from tapgate.transactions.submit import (
    ReceiptFields,
    build_idempotency_key,
    decode_id,
    get_channel,
    submit,
    to_minor_units,
)

endpoints = Endpoints("Wallet")

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
)
async def transfer_p2p(request: RequestContext, body: P2pTransferRequest) -> Reply[P2pReceipt]:
    """Send money to the holder of a card.

    The money is credited to the wallet that the card spends from. With the default fee rules, the
    sender pays the fee in addition to the amount. Only the amount counts toward limits. If a
    compliance rule requires a review, the transfer has the status `under_review`: the money is held
    until the review releases it to the recipient or returns it to the sender.
    """

    def build_receipt(receipt_fields: ReceiptFields) -> P2pReceipt:
        return P2pReceipt(
            message=receipt_fields.build_message("Transfer completed"),
            transaction_id=receipt_fields.transaction_id,
            status=receipt_fields.status,
            amount=receipt_fields.amount,
            fee_amount=receipt_fields.fee,
            sender_new_balance=receipt_fields.payer_balance,
            recipient=Recipient(
                name=receipt_fields.payee_name, card_serial=body.recipient_card_serial
            ),
        )

    command = Command(
        type=chart.TRANSFER_P2P,
        channel=get_channel(request.principal),
        payer=commands.subscriber_party(decode_id(ids.SUBSCRIBER, body.sender_id)),
        payee=commands.card_party(body.recipient_card_serial),
        amount=to_minor_units(request, body.amount),
        payer_pin=body.pin,
        pin_policy="required",
        idempotency_key=build_idempotency_key(request, body),
        context=None if body.memo is None else {"memo": body.memo},
    )
    return await submit(request, command, build_receipt)


@endpoints.post(
    "/api/v1/wallet/transfer",
    access=Access(scope="payments:write", roles="AF"),
    moves_money=True,
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
)
async def transfer_funds(request: RequestContext, body: TransferRequest) -> Reply[TransferReceipt]:
    """Move money from one account to another.

    An API key can transfer only between subscribers' accounts and must send the sender's PIN. A
    system_admin or finance_user can transfer between any accounts.
    """

    def build_receipt(receipt_fields: ReceiptFields) -> TransferReceipt:
        from_balance, to_balance = receipt_fields.balances
        return TransferReceipt(
            message=receipt_fields.build_message("Transfer completed"),
            transaction_id=receipt_fields.transaction_id,
            status=receipt_fields.status,
            amount=receipt_fields.amount,
            from_balance=from_balance,
            to_balance=to_balance,
        )

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
        pin_policy="required" if is_api_key else "if_given",
        wallets_only=is_api_key,
        idempotency_key=build_idempotency_key(request, body),
        context=None if body.description is None else {"memo": body.description},
    )
    return await submit(request, command, build_receipt)
