"""Transfers from customers of another book: the credit, and its outcome for the other book."""

from typing import Any, Final

import msgspec

from tapgate.business.payments.books.recipients import build_context
from tapgate.business.payments.transactions.money_requests import build_memo, decode_id
from tapgate.http.api.idempotency import build_idempotency_key, calculate_fingerprint
from tapgate.http.api.request_context import RequestContext
from tapgate.ledger import chart, commands
from tapgate.ledger.archive.archived import ARCHIVED
from tapgate.ledger.commands import (
    Command,
    Outcome,
    PartnerReference,
    ScopedIdempotencyKey,
    TransactionResult,
    build_outcome,
)
from tapgate.ledger.engine.group_commit import Ledger
from tapgate.runtime.store.database import Database
from tapgate_client import ids, money
from tapgate_client.errors import Code
from tapgate_client.schemas.books import BookTransfer, BookTransferCancellation
from tapgate_client.schemas.transactions import Channel

#: Scope of idempotency keys that are never deleted, with the code of the sending book.
BOOK_SCOPE_PREFIX: Final = "book:"
_PATH: Final = "/api/v1/books/transfers"
#: A partner reference is stored only while its transaction has not failed.
_FIND_ARCHIVED: Final = """
    SELECT key.transaction_id, EXISTS (
        SELECT FROM partners JOIN partner_references stored
          ON stored.partner_id = partners.id AND stored.reference = key.request_id
        WHERE stored.transaction_id = key.transaction_id) AS is_credited
    FROM idempotency_keys key WHERE key.scope = ANY ($1) AND key.request_id = $2"""


def build_credit(request: RequestContext, book: str, body: BookTransfer) -> Command:
    """Build the command that credits the recipient."""
    context = {**(build_memo(body.memo) or {}), **build_context(book, body.sender_name)}
    return _build_command(request, book, body, context)


def build_cancellation(
    request: RequestContext, book: str, body: BookTransferCancellation
) -> Command:
    """Build the command that declines a transfer, unless it was decided before.

    The decline has the transfer's idempotency key, so that a delayed request for the transfer
    replays it.
    """
    return msgspec.structs.replace(
        _build_command(request, book, body, build_context(book, None)),
        caller_error=Code.TRANSFER_CANCELLED,
        declines_caller_error=True,
    )


def _build_command(
    request: RequestContext,
    book: str,
    body: BookTransfer | BookTransferCancellation,
    context: dict[str, Any],
) -> Command:
    partner_id = request.principal.partner_id
    assert partner_id is not None
    key = _build_key(request, book, body)
    return Command(
        type=chart.TRANSFER_P2P,
        channel=Channel.PARTNER,
        payer=commands.partner_party(partner_id),
        payee=commands.subscriber_party(decode_id(ids.SUBSCRIBER, body.recipient_id)),
        amount=money.parse(body.amount, request.services.settings.currency),
        idempotency_key=key,
        reference=PartnerReference(partner_id, key.request_id),
        context=context,
    )


def _build_key(
    request: RequestContext, book: str, body: BookTransfer | BookTransferCancellation
) -> ScopedIdempotencyKey:
    """Return a transfer's idempotency key, which is also that of its cancellation.

    The scope is the book, because another partner may represent it between two attempts. Keys in
    this scope are kept forever, because a transfer may be repeated after months. Earlier releases
    stored keys in the partner's scope.

    The fingerprint has only what decides where how much money goes. The sender may become
    restricted between two attempts, which changes the name.
    """
    key = build_idempotency_key(request, body)
    assert key is not None
    transfer = BookTransfer(recipient_id=body.recipient_id, sender_name="", amount=body.amount)
    scope = f"{BOOK_SCOPE_PREFIX}{book}"
    return msgspec.structs.replace(
        key,
        scope=scope,
        lookup_scopes=(scope, *(key.lookup_scopes or (key.scope,))),
        fingerprint=calculate_fingerprint(_PATH, transfer),
    )


async def execute(ledger: Ledger, database: Database, command: Command) -> Outcome:
    """Execute a credit or a cancellation.

    A replay has the outcome of a review that has ended, and of a transaction that was archived.
    """
    outcome = await ledger.submit(command)
    if outcome.code == Code.DUPLICATE_REQUEST and outcome.details == ARCHIVED:
        return await _find_archived(database, command) or outcome
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


async def _find_archived(database: Database, command: Command) -> Outcome | None:
    """Return the outcome of an archived transfer. No transaction is archived under review.

    Without a partner reference, the transfer was declined, because references that are transaction
    IDs are kept forever, too. For other references, the outcome is unknown.
    """
    key = command.idempotency_key
    assert key is not None
    row = await database.fetchrow(_FIND_ARCHIVED, list(key.lookup_scopes), key.request_id)
    assert row is not None
    code = None if row["is_credited"] else Code.TRANSFER_CANCELLED
    if code is not None and ids.decode(ids.TRANSACTION, key.request_id) is None:
        return None
    result = TransactionResult(
        transaction_id=row["transaction_id"],
        status=chart.COMPLETED if code is None else chart.FAILED,
        amount=command.amount or 0,
        fee=0,
        code=code,
    )
    return build_outcome(result, replayed=True)
