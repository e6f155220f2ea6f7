"""Recalls: request, answer, decision and expiry, each through the ledger."""

from datetime import timedelta
from typing import Final, NoReturn

import msgspec

from tapgate.auth.actors import SYSTEM_ACTOR, Actor
from tapgate.business.payments.recalls import queries
from tapgate.business.payments.recalls.model import Recall, to_record
from tapgate.business.payments.recalls.recall_messages import tell_parties
from tapgate.core.vault import Vault
from tapgate.events.audit.trail import AuditTrail, diff_records
from tapgate.http.api.services import Services
from tapgate.ledger.commands import (
    Outcome,
    RecallDecision,
    RecallRequest,
    ScopedIdempotencyKey,
)
from tapgate.runtime.background import do_for_each, run_periodically
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.recalls import RecallStatus
from tapgate_client.schemas.transactions import Channel

#: How long the receiver's money is held.
HOLD_PERIOD: Final = timedelta(hours=24)
_POLL_SECONDS: Final = 5.0

_trail = AuditTrail("recall")


async def request_recall(
    services: Services,
    actor: Actor,
    transaction_id: int,
    reason: str | None,
    key: ScopedIdempotencyKey,
) -> tuple[Recall, bool]:
    """Open a recall; also return whether the request was a replay."""
    outcome = await services.ledger.submit(
        RecallRequest(
            transaction_id=transaction_id,
            max_age_seconds=services.settings.recall_hours * 3600,
            hold_seconds=int(HOLD_PERIOD.total_seconds()),
            idempotency_key=key,
            reason=reason,
            audit=actor.build_audit_facts(reason),
        )
    )
    outcome.require_accepted()
    if outcome.replayed:
        return await queries.get_by_transaction(services.database, transaction_id), True
    return _decode(outcome), False


async def end_recall(
    services: Services,
    actor: Actor,
    recall: Recall,
    status: RecallStatus,
    *,
    channel: Channel,
    is_return: bool = False,
    reason: str | None = None,
    approval_id: int | None = None,
) -> Recall:
    """End an open recall as returned, kept, expired or decided."""
    outcome = await services.ledger.submit(
        RecallDecision(
            recall_id=recall.id,
            transaction_id=recall.transaction_id,
            status=status,
            is_return=is_return,
            channel=channel,
            reason=reason,
            decided_by=actor.id if status == RecallStatus.DECIDED else None,
            audit=actor.build_audit_facts(reason),
            approval_id=approval_id,
        )
    )
    outcome.require_accepted()
    return _decode(outcome)


def _decode(outcome: Outcome) -> Recall:
    """Return the recall that was recorded, without another read that could fail."""
    assert outcome.related is not None
    return msgspec.msgpack.decode(outcome.related, type=Recall)


async def record_recall(
    tx: Transaction, command: RecallRequest | RecallDecision, *, vault: Vault
) -> bytes:
    """Record a recall step in the audit log and tell both parties, when the ledger commits it."""
    assert command.audit is not None
    actor = Actor.from_audit_facts(command.audit)
    recall = await queries.get_by_transaction(tx, command.transaction_id)
    record = to_record(recall)
    if isinstance(command, RecallRequest):
        action, changes = "opened", diff_records(None, record)
    else:
        action, changes = recall.status, {"status": (RecallStatus.OPEN, recall.status)}
        if recall.decision is not None:
            changes["decision"] = (None, recall.decision)
    await _trail.record(tx, actor, record.id, action, reason=command.reason, changes=changes)
    await tell_parties(tx, vault, recall)
    return msgspec.msgpack.encode(recall)


class RecallWorker:
    """Ends recalls that nobody has answered in time."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def run(self) -> NoReturn:
        await run_periodically(self.work, every=_POLL_SECONDS, name="recalls")

    async def work(self) -> None:
        services = self._services
        recalls = await queries.list_expired(services.database, services.clock())
        await do_for_each(recalls, self._expire)

    async def _expire(self, recall: Recall) -> None:
        try:
            await end_recall(
                self._services, SYSTEM_ACTOR, recall, RecallStatus.EXPIRED, channel=Channel.API
            )
        except ApiError as error:
            if error.code != Code.RECALL_NOT_OPEN:  # another process was faster
                raise
