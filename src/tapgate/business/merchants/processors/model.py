"""Processor records, their public representation, and status transitions."""

from datetime import datetime

import msgspec

from tapgate.business.owners.status_transitions import build_suspension
from tapgate.core.records import build_record
from tapgate_client import ids, money
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


SUSPEND, ACTIVATE = build_suspension(ProcessorStatus.ACTIVE, ProcessorStatus.SUSPENDED)
