"""Batches and their lines. No I/O."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from tapgate.core.records import build_record
from tapgate.ledger import commands
from tapgate.ledger.commands import Party
from tapgate_client import ids, money
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.batches import (
    PLATFORM_SOURCE,
    BatchColumn,
    BatchLineRecord,
    BatchLineStatus,
    BatchRecord,
    BatchSource,
    BatchSourceType,
    BatchStatus,
)

#: Column that a line's error is about. Errors of the receiver are about its phone number or card.
_COLUMN_BY_CODE: Final[Mapping[str, BatchColumn]] = {
    Code.DUPLICATE_REFERENCE: BatchColumn.REFERENCE,
    Code.MAX_BALANCE_EXCEEDED: BatchColumn.AMOUNT,
    Code.INSUFFICIENT_FUNDS: BatchColumn.AMOUNT,
}
#: Statuses in which a batch can be canceled.
CANCELLABLE: Final = frozenset({BatchStatus.DRAFT, BatchStatus.VALIDATED, BatchStatus.RUNNING})


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    name: str
    partner_id: int | None  # None: the platform pays from cash
    status: BatchStatus
    lines: int
    valid: int
    invalid: int
    paid: int
    failed: int
    total_amount: int
    paid_amount: int
    currency: str
    created_by: int
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None
    run_by: str | None
    approval_id: int | None
    source_name: str | None

    @property
    def public_id(self) -> str:
        return ids.encode(ids.BATCH, self.id)

    @property
    def payer(self) -> Party:
        if self.partner_id is None:
            return commands.CASH_PARTY
        return commands.partner_party(self.partner_id)

    def require_status(self, *allowed: BatchStatus) -> None:
        if self.status not in allowed:
            raise ApiError(Code.BATCH_NOT_READY, details={"status": self.status})


class StoredLine(msgspec.Struct, frozen=True, kw_only=True):
    row: int
    phone_number: str | None
    card_serial: str | None
    amount_text: str
    amount: int | None
    reference: str
    status: BatchLineStatus
    code: str | None
    problem: BatchColumn | None
    transaction_id: int | None

    @property
    def id(self) -> int:
        """Position in a list."""
        return self.row

    @property
    def column(self) -> BatchColumn | None:
        if self.code is None or self.problem is not None:
            return self.problem
        is_card = self.card_serial is not None
        receiver = BatchColumn.CARD_SERIAL if is_card else BatchColumn.PHONE_NUMBER
        return _COLUMN_BY_CODE.get(self.code, receiver)


class PayableLine(msgspec.Struct, frozen=True):
    """Line to pay."""

    row: int
    subscriber_id: int
    amount: int
    reference: str


def to_record(batch: Batch) -> BatchRecord:
    is_platform = batch.partner_id is None
    return build_record(
        BatchRecord,
        batch,
        id=batch.public_id,
        source=BatchSource(
            type=BatchSourceType.PLATFORM if is_platform else BatchSourceType.PARTNER,
            id=PLATFORM_SOURCE
            if batch.partner_id is None
            else ids.encode(ids.PARTNER, batch.partner_id),
            name=batch.source_name,
        ),
        total_amount=money.format_decimal(batch.total_amount, batch.currency),
        paid_amount=money.format_decimal(batch.paid_amount, batch.currency),
    )


def to_line_record(line: StoredLine, currency: str) -> BatchLineRecord:
    """Return the API record. An amount that cannot be read is shown as uploaded."""
    amount = line.amount_text
    if line.amount is not None:
        amount = money.format_decimal(line.amount, currency)
    return build_record(BatchLineRecord, line, amount=amount, column=line.column)
