"""Batches: credits to many wallets, such as salaries and grants."""

from enum import StrEnum
from typing import Annotated, Final

import msgspec

from tapgate_client import ids
from tapgate_client.schemas.common import ErrorCode
from tapgate_client.schemas.fields import InvalidValueError, Label, LogForm, Rule
from tapgate_client.schemas.pagination import OrderedPageQuery, PageOrder, PageQuery
from tapgate_client.schemas.transactions import MoneyRequest
from tapgate_client.schemas.values import Example, Id, Money, Time, Word

MAX_LINES: Final = 50_000
#: Source that pays from cash, instead of a partner's ID.
PLATFORM_SOURCE: Final = "platform"


class BatchSourceType(StrEnum):
    PARTNER = "partner"
    PLATFORM = "platform"


class BatchStatus(StrEnum):
    DRAFT = "draft"
    VALIDATED = "validated"
    RUNNING = "running"
    COMPLETED = "completed"
    COMPLETED_WITH_ERRORS = "completed_with_errors"
    CANCELLED = "cancelled"


class BatchLineStatus(StrEnum):
    PENDING = "pending"
    INVALID = "invalid"
    PAID = "paid"
    FAILED = "failed"
    SKIPPED = "skipped"  # not paid, because the batch was canceled


class BatchColumn(StrEnum):
    """Column of an uploaded file."""

    PHONE_NUMBER = "phone_number"
    CARD_SERIAL = "card_serial"
    AMOUNT = "amount"
    REFERENCE = "reference"


class SourceIdRule(Rule):
    """A partner's ID, or `platform`."""

    log_form = LogForm.WORD
    example = ids.encode(ids.PARTNER, 1 << 58)

    def check(self, value: str) -> str:
        if value != PLATFORM_SOURCE and ids.decode(ids.PARTNER, value) is None:
            raise InvalidValueError(f"must be a partner's ID or {PLATFORM_SOURCE}")
        return value

    def to_json_schema(self) -> dict[str, str]:
        return {"description": f"A partner's ID, or `{PLATFORM_SOURCE}` to pay from cash"}


class BatchSource(msgspec.Struct, frozen=True, kw_only=True):
    """Who pays. The ID of the platform is `platform`."""

    type: BatchSourceType
    id: Id
    name: str | None


class BatchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Batch. `total_amount` is the sum of the lines that can be paid."""

    id: Id
    name: Annotated[str, Example("Salaries November")]
    source: BatchSource
    status: BatchStatus
    lines: int
    valid: int
    invalid: int
    paid: int
    failed: int
    total_amount: Money
    paid_amount: Money
    currency: Word
    created_by: Id
    created_at: Time
    updated_at: Time
    completed_at: Time | None


class NewBatch(MoneyRequest, kw_only=True):
    name: Annotated[Label, Example("Salaries November")]
    source_id: Annotated[str, SourceIdRule()]


class BatchRun(MoneyRequest, kw_only=True):
    """Start of a batch."""


class BatchFilters(PageQuery, kw_only=True):
    status: BatchStatus | None = None


class BatchLineRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Line of a batch. `column` is the column of the file that `code` is about."""

    row: int
    phone_number: str | None
    card_serial: Word | None
    amount: Annotated[str, Example("500.00")]
    reference: Annotated[str, Example("EMP-0017")]
    status: BatchLineStatus
    code: ErrorCode | None
    column: BatchColumn | None
    transaction_id: Id | None


class BatchLineFormat(StrEnum):
    JSON = "json"
    CSV = "csv"


class BatchLineFilters(OrderedPageQuery, kw_only=True):
    """Lines in the order of the file, unless the newest (last) come first."""

    order: PageOrder = PageOrder.OLDEST
    status: BatchLineStatus | None = None
    format: BatchLineFormat = BatchLineFormat.JSON

    @property
    def expensive_format(self) -> str | None:
        """The format if it contains all lines, otherwise None."""
        return self.format if self.format == BatchLineFormat.CSV else None
