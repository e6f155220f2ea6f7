"""Stages of a record on its way: what has happened, what happens now, and what is ahead."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from tapgate.sites.console.translation.translator import source_text
from tapgate_client.schemas.approvals import ApprovalStatus
from tapgate_client.schemas.disputes import DisputeStatus
from tapgate_client.schemas.payouts import PayoutStatus

Record = Mapping[str, Any]


class Progress(StrEnum):
    DONE = "done"
    CURRENT = "current"
    AHEAD = "ahead"
    FAILED = "failed"  # the way ended here


class Stage(NamedTuple):
    """Stage with its time, if the record has one, and a text of the record about it."""

    label: str
    progress: Progress = Progress.DONE
    at: str | None = None
    note: str | None = None


_REQUESTED: Final = source_text("Requested")
_SENT: Final = source_text("Sent to the bank")
_PAID: Final = source_text("Paid by the bank")
_CANCELED: Final = source_text("Request canceled")
_APPROVAL: Final = source_text("Approval by the platform")
_ANSWER: Final = source_text("Your answer")
_DECISION: Final = source_text("Decision by the platform")
_EXECUTION: Final = source_text("Automatic execution")


def list_payout_stages(payout: Record) -> list[Stage]:
    changed_at = payout["updated_at"]
    match PayoutStatus(payout["status"]):
        case PayoutStatus.REQUESTED:
            rest = [Stage(_SENT, Progress.CURRENT), Stage(_PAID, Progress.AHEAD)]
        case PayoutStatus.SUBMITTED:
            rest = [Stage(_SENT, at=changed_at), Stage(_PAID, Progress.CURRENT)]
        case PayoutStatus.PAID:
            rest = [Stage(_SENT), Stage(_PAID, at=changed_at)]
        case PayoutStatus.RETURNED:
            label, reason = source_text("Returned by the bank"), payout["return_reason"]
            rest = [Stage(_SENT), Stage(label, Progress.FAILED, changed_at, reason)]
        case PayoutStatus.CANCELLED:
            rest = [Stage(_CANCELED, Progress.FAILED, changed_at)]
    return [Stage(_REQUESTED, at=payout["created_at"]), *rest]


def list_approval_stages(approval: Record) -> list[Stage]:
    changed_at = approval["updated_at"]
    match ApprovalStatus(approval["status"]):
        case ApprovalStatus.PENDING:
            rest = [Stage(_APPROVAL, Progress.CURRENT), Stage(_EXECUTION, Progress.AHEAD)]
        case ApprovalStatus.APPROVED:
            rest = [Stage(_APPROVAL), Stage(_EXECUTION, Progress.CURRENT)]
        case ApprovalStatus.EXECUTED:
            rest = [Stage(_APPROVAL), Stage(_EXECUTION, at=changed_at)]
        case ApprovalStatus.FAILED:
            label = source_text("Not executed")
            rest = [Stage(_APPROVAL), Stage(label, Progress.FAILED, changed_at)]
        case ApprovalStatus.REJECTED:
            label = source_text("Rejected by the platform")
            rest = [Stage(label, Progress.FAILED, changed_at)]
        case ApprovalStatus.CANCELLED:
            rest = [Stage(_CANCELED, Progress.FAILED, changed_at)]
        case ApprovalStatus.EXPIRED:
            label = source_text("Not approved in time")
            rest = [Stage(label, Progress.FAILED, approval["expires_at"])]
    return [Stage(_REQUESTED, at=approval["created_at"], note=approval["maker_name"]), *rest]


def list_dispute_stages(dispute: Record) -> list[Stage]:
    """Return the stages since the customer contested the payment."""
    changed_at = dispute["updated_at"]
    answer = [Stage(_ANSWER)] if dispute["merchant_response"] else []
    match DisputeStatus(dispute["status"]):
        case DisputeStatus.OPEN:
            rest = [
                Stage(_ANSWER, Progress.CURRENT, dispute["due_at"]),
                Stage(_DECISION, Progress.AHEAD),
            ]
        case DisputeStatus.ANSWERED:
            rest = [Stage(_ANSWER, at=changed_at), Stage(_DECISION, Progress.CURRENT)]
        case DisputeStatus.REFUNDED:
            label = source_text("Refunded to the customer")
            rest = [*answer, Stage(label, Progress.FAILED, changed_at)]
        case DisputeStatus.REJECTED:
            rest = [*answer, Stage(source_text("Decided in your favor"), at=changed_at)]
        case DisputeStatus.WITHDRAWN:
            rest = [*answer, Stage(source_text("Dispute withdrawn"), at=changed_at)]
    opened = Stage(source_text("Contested by the customer"), at=dispute["created_at"])
    return [opened, *rest]
