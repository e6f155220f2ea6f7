"""Processor records, their public representation, and status transitions."""

from datetime import datetime
from typing import Final

import msgspec

from tapgate.core.records import build_record
from tapgate.http.api.transitions import Transition
from tapgate_client import ids, money
from tapgate_client.errors import Code
from tapgate_client.schemas.processors import ProcessorRecord, ProcessorStatus


class Processor(msgspec.Struct, frozen=True, kw_only=True):
    """Processor as stored, with money in minor units."""

    id: int
    account_id: int
    name: str
    phone_number: str
    email: str
    currency: str
    created_at: datetime
    updated_at: datetime
    status: ProcessorStatus = ProcessorStatus.ACTIVE
    suspend_reason: str | None = None
    balance: int = 0


def to_record(processor: Processor) -> ProcessorRecord:
    return build_record(
        ProcessorRecord,
        processor,
        id=ids.encode(ids.PROCESSOR, processor.id),
        balance=money.format_decimal(processor.balance, processor.currency),
    )


SUSPEND: Final[Transition[ProcessorStatus]] = Transition(
    "suspended", {ProcessorStatus.ACTIVE: ProcessorStatus.SUSPENDED}, Code.ALREADY_SUSPENDED
)
ACTIVATE: Final[Transition[ProcessorStatus]] = Transition(
    "activated", {ProcessorStatus.SUSPENDED: ProcessorStatus.ACTIVE}, Code.NOT_SUSPENDED
)


def apply_transition(
    processor: Processor, transition: Transition[ProcessorStatus], reason: str | None
) -> Processor:
    """Return the processor with its next status; raise if the transition is not allowed."""
    status = transition.apply(processor.status)
    suspend_reason = reason if status == ProcessorStatus.SUSPENDED else None
    return msgspec.structs.replace(processor, status=status, suspend_reason=suspend_reason)
