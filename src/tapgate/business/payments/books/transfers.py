"""Transfers to other books as staff see them, and what staff decide about them.

A decision only changes what the worker does next. Neither can move money twice: the other book
decides each transfer once, and a return waits until it has confirmed that it will never credit the
transfer. Only if the other book was removed from the settings, staff can confirm it instead.
"""

from datetime import datetime
from typing import Any, Final

import msgspec

from tapgate.auth.actors import Actor
from tapgate.core.records import build_record
from tapgate.events.audit.trail import AuditTrail
from tapgate.http.api.book_peers import BookPeers
from tapgate.ledger import chart
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids, money
from tapgate_client.errors import ApiError, Code, invalid_field, require_found
from tapgate_client.schemas.books import (
    BookTransferFilters,
    BookTransferRecord,
    BookTransferReturn,
    BookTransferStatus,
)

_trail = AuditTrail("transaction")

_OPEN: Final = frozenset({BookTransferStatus.PENDING, BookTransferStatus.STOPPED})
_SELECT: Final = """
    SELECT b.id, b.book, b.status, b.attempts, b.error, b.refusal_code, b.created_at,
           b.next_attempt_at, b.refused_since, b.return_requested_at, b.ended_at,
           t.amount, t.currency, t.status AS transaction_status
    FROM book_transfers b JOIN transactions t ON t.id = b.id"""

_CONFIRMATION_NEEDED: Final = (
    "is allowed only for stopped transfers to a book that is not in TAPGATE_BOOK_PEERS"
)


class StoredTransfer(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    book: str
    status: BookTransferStatus
    attempts: int
    error: str | None
    refusal_code: str | None
    created_at: datetime
    next_attempt_at: datetime
    refused_since: datetime | None
    return_requested_at: datetime | None
    ended_at: datetime | None
    amount: int
    currency: str
    transaction_status: str

    @property
    def public_id(self) -> str:
        return ids.encode(ids.TRANSACTION, self.id)

    @property
    def is_open(self) -> bool:
        return self.status in _OPEN

    @property
    def can_return(self) -> bool:
        """Whether a return can be requested: it is neither decided yet nor up to a review."""
        return self._is_undecided and self.return_requested_at is None

    def can_return_unconfirmed(self, peers: BookPeers) -> bool:
        """Whether staff can confirm a return, because the other book cannot.

        Only a stopped transfer: another process, with other settings, may be sending a pending one.
        """
        is_stopped = self.status == BookTransferStatus.STOPPED
        return self._is_undecided and is_stopped and self.book not in peers.codes

    @property
    def _is_undecided(self) -> bool:
        is_completed = self.transaction_status == chart.COMPLETED
        return self.is_open and is_completed and self.refusal_code is None


def to_record(transfer: StoredTransfer, peers: BookPeers) -> BookTransferRecord:
    is_due = transfer.status == BookTransferStatus.PENDING
    return build_record(
        BookTransferRecord,
        transfer,
        id=transfer.public_id,
        can_return=transfer.can_return,
        can_return_unconfirmed=transfer.can_return_unconfirmed(peers),
        amount=money.format_decimal(transfer.amount, transfer.currency),
        next_attempt_at=transfer.next_attempt_at if is_due else None,
    )


async def list_page(database: Database, filters: BookTransferFilters) -> list[StoredTransfer]:
    conditions = PageConditions(filters, "b.id")
    conditions.where_word("b.status", filters.status)
    return [StoredTransfer(**row) for row in await conditions.fetch(database, _SELECT)]


async def get(reader: Any, transfer_id: int) -> StoredTransfer:
    row = await reader.fetchrow(f"{_SELECT} WHERE b.id = $1", transfer_id)
    return StoredTransfer(**require_found(row, Code.TRANSACTION_NOT_FOUND))


async def retry(tx: Transaction, actor: Actor, transfer_id: int) -> StoredTransfer:
    """Make a transfer due now, and repeat refusals for another day."""
    before = await _lock(tx, transfer_id)
    if not before.is_open:
        raise ApiError(Code.ALREADY_RESOLVED, "The transfer has ended.")
    return await _make_due(tx, actor, before, "delivery_retried")


async def request_return(
    tx: Transaction, actor: Actor, peers: BookPeers, transfer_id: int, decision: BookTransferReturn
) -> StoredTransfer:
    """Let the worker cancel a transfer in the other book, and then return the money.

    Without confirmation, the worker returns the money at once.
    """
    before = await _lock(tx, transfer_id)
    require_returnable(before, peers, decision)
    action, change = "return_requested", ", return_requested_at = $2"
    if decision.without_confirmation:
        action = "returned_unconfirmed"
        change += f", refusal_code = '{Code.TRANSFER_CANCELLED}'"
    return await _make_due(tx, actor, before, action, change=change, reason=decision.reason)


def require_returnable(
    transfer: StoredTransfer, peers: BookPeers, decision: BookTransferReturn
) -> None:
    if transfer.is_open and transfer.transaction_status == chart.UNDER_REVIEW:
        raise ApiError(Code.NOT_REVERSIBLE, "The transfer is under review. Reject it instead.")
    if decision.without_confirmation:
        if not transfer.can_return_unconfirmed(peers):
            raise invalid_field("without_confirmation", _CONFIRMATION_NEEDED)
    elif not transfer.can_return:
        raise ApiError(Code.ALREADY_RESOLVED, "The transfer has ended, or is being returned.")


async def _lock(tx: Transaction, transfer_id: int) -> StoredTransfer:
    await tx.execute("SELECT FROM book_transfers WHERE id = $1 FOR NO KEY UPDATE", transfer_id)
    return await get(tx, transfer_id)


async def _make_due(
    tx: Transaction,
    actor: Actor,
    before: StoredTransfer,
    action: str,
    *,
    change: str = "",
    reason: str | None = None,
) -> StoredTransfer:
    """Let the worker attempt a transfer now, with a further change, and record the decision."""
    await tx.execute(
        f"""UPDATE book_transfers
            SET status = 'pending', next_attempt_at = $2, refused_since = NULL{change}
            WHERE id = $1""",
        before.id,
        tx.now(),
    )
    after = await get(tx, before.id)
    status = (before.status, after.status)
    await _trail.record(
        tx, actor, before.public_id, action, reason=reason, changes={"transfer_status": status}
    )
    return after
