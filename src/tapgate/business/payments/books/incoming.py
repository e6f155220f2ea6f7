"""Transfers from customers of another book: the credit, and its outcome for the other book."""

from datetime import timedelta
from typing import Final

import msgspec

from tapgate.business.payments.books.recipients import build_context
from tapgate.business.payments.transactions.money_requests import build_memo, decode_id
from tapgate.core.id_generator import get_time
from tapgate.http.api.idempotency import build_idempotency_key, calculate_fingerprint
from tapgate.http.api.request_context import RequestContext
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import (
    Command,
    Outcome,
    PartnerReference,
    ScopedIdempotencyKey,
)
from tapgate.ledger.engine.group_commit import Ledger
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.errors import Code, invalid_field
from tapgate_client.schemas.books import BookTransfer, BookTransferCancellation
from tapgate_client.schemas.transactions import Channel

#: For clocks that differ, and for the time between the debit and the credit.
_KEY_MARGIN: Final = timedelta(hours=1)
_PATH: Final = "/api/v1/books/transfers"


def build_key(
    request: RequestContext, book: str, body: BookTransfer | BookTransferCancellation
) -> ScopedIdempotencyKey:
    """Return a transfer's idempotency key, which is also that of its cancellation.

    The scope is the book, because another partner may represent it between two attempts. Earlier
    releases stored keys in the scope of the partner.

    The fingerprint has only what decides where how much money goes. The sender may become
    restricted between two attempts, which changes the name.
    """
    key = build_idempotency_key(request, body)
    assert key is not None
    _require_recent(request, key.request_id)
    transfer = BookTransfer(recipient_id=body.recipient_id, sender_name="", amount=body.amount)
    scope = f"book:{book}"
    return msgspec.structs.replace(
        key,
        scope=scope,
        lookup_scopes=(scope, *(key.lookup_scopes or (key.scope,))),
        fingerprint=calculate_fingerprint(_PATH, transfer),
    )


def _require_recent(request: RequestContext, request_id: str) -> None:
    """Reject a transfer whose earlier attempt may have been deleted with its idempotency key.

    Neither a credit nor a cancellation would recognize that it was credited before.
    """
    days = request.services.settings.idempotency_key_days
    number = ids.decode(ids.TRANSACTION, request_id)
    if number is None or not days:
        return
    if get_time(number) < request.services.clock() - timedelta(days=days) + _KEY_MARGIN:
        raise invalid_field("request_id", f"must be less than {days} days old")


def build_credit(
    book: str, partner_id: int, key: ScopedIdempotencyKey, body: BookTransfer, amount: int
) -> Command:
    """Build the command that credits the recipient."""
    return Command(
        type=chart.TRANSFER_P2P,
        channel=Channel.PARTNER,
        payer=commands.partner_party(partner_id),
        payee=commands.subscriber_party(decode_id(ids.SUBSCRIBER, body.recipient_id)),
        amount=amount,
        idempotency_key=key,
        reference=PartnerReference(partner_id, key.request_id),
        context={**(build_memo(body.memo) or {}), **build_context(book, body.sender_name)},
    )


def build_cancellation(
    book: str,
    partner_id: int,
    key: ScopedIdempotencyKey,
    body: BookTransferCancellation,
    amount: int,
) -> Command:
    """Build the command that declines a transfer, unless it was decided before.

    The decline has the transfer's idempotency key, so that a delayed request for the transfer
    replays it.
    """
    return Command(
        type=chart.TRANSFER_P2P,
        channel=Channel.PARTNER,
        payer=commands.partner_party(partner_id),
        payee=commands.subscriber_party(decode_id(ids.SUBSCRIBER, body.recipient_id)),
        amount=amount,
        idempotency_key=key,
        reference=PartnerReference(partner_id, key.request_id),
        context=build_context(book, None),
        caller_error=Code.TRANSFER_CANCELLED,
        declines_caller_error=True,
    )


async def execute(ledger: Ledger, database: Database, command: Command) -> Outcome:
    """Execute a credit or a cancellation. A replay has the outcome of a review that has ended."""
    outcome = await ledger.submit(command)
    result = outcome.result
    if not outcome.replayed or result is None or result.status != chart.UNDER_REVIEW:
        return outcome
    row = await database.fetchrow(
        "SELECT status, failure_code FROM transactions WHERE id = $1", result.transaction_id
    )
    assert row is not None
    if row["status"] == chart.FAILED:
        return msgspec.structs.replace(outcome, code=Code(row["failure_code"]))
    reviewed = msgspec.structs.replace(result, status=row["status"])
    return msgspec.structs.replace(outcome, result=reviewed)
