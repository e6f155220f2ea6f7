"""KYC review queue: subscribers who wait for a decision, and the admins who review them."""

from datetime import datetime
from typing import Final

import msgspec

from tapgate.auth.actors import Actor
from tapgate.auth.principals import Principal
from tapgate.business.customers.subscribers import queries as subscribers
from tapgate.business.customers.subscribers.restriction import exclude_hidden
from tapgate.core.records import build_record
from tapgate.events.audit.trail import AuditTrail, diff_records
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.kyc_reviews import KycReviewFilters, KycReviewRecord
from tapgate_client.schemas.subscribers import KycDocumentType

_SELECT: Final = """
    SELECT s.id AS subscriber_id, s.first_name, s.last_name, s.phone_number, a.kyc_level,
           s.kyc_pending_since AS waiting_since, assignment.assignee, admins.name AS assignee_name,
           ARRAY(SELECT DISTINCT document_type FROM kyc_documents
                 WHERE subscriber_id = s.id AND decided_at IS NULL ORDER BY 1) AS documents
    FROM subscribers s JOIN accounts a ON a.id = s.account_id
    LEFT JOIN kyc_assignments assignment ON assignment.subscriber_id = s.id
    LEFT JOIN admins ON admins.id = assignment.assignee"""
_IS_WAITING: Final = "s.kyc_status = 'PENDING' AND s.kyc_pending_since IS NOT NULL"

_trail = AuditTrail("subscriber")


class KycReview(msgspec.Struct, frozen=True, kw_only=True):
    subscriber_id: int
    first_name: str
    last_name: str
    phone_number: str
    kyc_level: int
    waiting_since: datetime
    assignee: int | None
    assignee_name: str | None
    documents: list[str]

    @property
    def position(self) -> tuple[int, int]:
        """Position in the queue."""
        return subscribers.get_queue_position(self.waiting_since, self.subscriber_id)


class _Assignment(msgspec.Struct, frozen=True):
    """Assignment fields in the audit log."""

    kyc_assignee: str | None


def to_record(review: KycReview) -> KycReviewRecord:
    documents = [KycDocumentType(name) for name in review.documents]
    return build_record(KycReviewRecord, review, documents=documents)


async def list_page(
    database: Database, filters: KycReviewFilters, caller: Principal, now: datetime
) -> list[KycReview]:
    """Return a page of the queue, longest wait first, plus one row if there are more."""
    conditions = subscribers.QueueConditions(filters)
    conditions.add(_IS_WAITING)
    conditions.where_id("s.id", ids.SUBSCRIBER, filters.subscriber_id)
    conditions.where_assignee("assignment.assignee", filters.assignee)
    exclude_hidden(conditions, caller, now)
    return [KycReview(**row) for row in await conditions.fetch(database, _SELECT)]


async def assign(tx: Transaction, actor: Actor, subscriber_id: int) -> KycReview:
    """Assign a review to the calling admin."""
    before = await _get_waiting(tx, actor, subscriber_id)
    await tx.execute(
        """INSERT INTO kyc_assignments (subscriber_id, assignee, assigned_at) VALUES ($1, $2, $3)
           ON CONFLICT (subscriber_id) DO UPDATE SET assignee = $2, assigned_at = $3""",
        subscriber_id,
        ids.decode(ids.ADMIN, actor.id),
        tx.now(),
    )
    return await _record_change(tx, actor, before, "kyc_assigned")


async def unassign(tx: Transaction, actor: Actor, subscriber_id: int) -> KycReview:
    """Return a review to the queue for other admins."""
    before = await _get_waiting(tx, actor, subscriber_id)
    await tx.execute("DELETE FROM kyc_assignments WHERE subscriber_id = $1", subscriber_id)
    return await _record_change(tx, actor, before, "kyc_unassigned")


async def _get_waiting(tx: Transaction, actor: Actor, subscriber_id: int) -> KycReview:
    """Return a waiting subscriber's review, if the actor may access the subscriber.

    The lock delays a decision until the assignment is committed, so that the decision removes it.
    """
    await subscribers.get_accessible(tx, actor.principal, tx.now(), subscriber_id)
    row = await tx.fetchrow(
        f"{_SELECT} WHERE s.id = $1 AND {_IS_WAITING} FOR NO KEY UPDATE OF s", subscriber_id
    )
    if row is None:
        raise ApiError(
            Code.ALREADY_RESOLVED, "The subscriber does not wait for a KYC decision anymore."
        )
    return KycReview(**row)


async def _record_change(
    tx: Transaction, actor: Actor, before: KycReview, action: str
) -> KycReview:
    row = await tx.fetchrow(f"{_SELECT} WHERE s.id = $1", before.subscriber_id)
    after = KycReview(**row)
    changes = diff_records(_to_assignment(before), _to_assignment(after))
    public_id = ids.encode(ids.SUBSCRIBER, after.subscriber_id)
    await _trail.record(tx, actor, public_id, action, changes=changes)
    return after


def _to_assignment(review: KycReview) -> _Assignment:
    assignee = review.assignee
    return _Assignment(None if assignee is None else ids.encode(ids.ADMIN, assignee))
