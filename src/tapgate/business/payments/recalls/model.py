"""Stored recalls and their records."""

from datetime import datetime

import msgspec

from tapgate.core.public_names import clean_person_name
from tapgate.core.records import build_record
from tapgate_client import ids, money
from tapgate_client.schemas.recalls import (
    PendingRecall,
    RecallRecord,
    RecallStatus,
    RecallVerdict,
)


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    transaction_id: int
    sender_account: int
    receiver_account: int
    amount: int
    held_amount: int
    currency: str
    reason: str | None
    status: RecallStatus
    decision: RecallVerdict | None
    decided_by: str | None
    decision_reason: str | None
    reversal_id: int | None
    created_at: datetime
    expires_at: datetime

    @property
    def account_ids(self) -> list[int]:
        return [self.sender_account, self.receiver_account]


class NamedRecall(Recall, frozen=True, kw_only=True):
    """Recall with its parties, for staff. The ledger and the audit log have none."""

    sender_id: int
    sender_name: str
    receiver_id: int
    receiver_name: str


class PendingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Open recall from the receiver's point of view."""

    id: int
    transaction_id: int
    amount: int
    held_amount: int
    currency: str
    expires_at: datetime
    sender_name: str


def to_record(recall: Recall, *, masked: bool = False) -> RecallRecord:
    """Return the record. `masked` hides the names, and the texts, in which people may be named."""
    hidden = {"reason": None, "decision_reason": None} if masked else {}
    return build_record(
        RecallRecord,
        recall,
        id=ids.encode(ids.RECALL, recall.id),
        **(_describe_parties(recall, masked=masked) if isinstance(recall, NamedRecall) else {}),
        amount=money.format_decimal(recall.amount, recall.currency),
        held_amount=money.format_decimal(recall.held_amount, recall.currency),
        **hidden,
    )


def _describe_parties(recall: NamedRecall, *, masked: bool) -> dict[str, str | bool | None]:
    parties: dict[str, str | bool | None] = {
        "sender_id": ids.encode(ids.SUBSCRIBER, recall.sender_id),
        "receiver_id": ids.encode(ids.SUBSCRIBER, recall.receiver_id),
    }
    if masked:
        return {**parties, "sender_name": None, "receiver_name": None, "masked": True}
    return parties


def to_original_record(recall: Recall) -> RecallRecord:
    """Return the record as it was when the recall was opened, for a replay."""
    return to_record(
        msgspec.structs.replace(
            recall,
            status=RecallStatus.OPEN,
            decision=None,
            decided_by=None,
            decision_reason=None,
            reversal_id=None,
        )
    )


def to_pending_record(answer: PendingAnswer) -> PendingRecall:
    return build_record(
        PendingRecall,
        answer,
        id=ids.encode(ids.RECALL, answer.id),
        amount=money.format_decimal(answer.amount, answer.currency),
        held_amount=money.format_decimal(answer.held_amount, answer.currency),
        sender_name=clean_person_name(answer.sender_name),
    )
