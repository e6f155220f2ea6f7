"""Queries and pages for lists. `next_cursor` encodes the position of a page's last row."""

from enum import StrEnum
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from tapgate_client import ids
from tapgate_client.errors import invalid_field
from tapgate_client.schemas.fields import IntegerRange, InvalidValueError, LogForm, Rule
from tapgate_client.schemas.values import Word

T = TypeVar("T")

CURSOR_PREFIX = "cur_"
_ENCODED_LENGTH = len(ids.encode("", 0))
INVALID_CURSOR = "must be the next_cursor of an earlier page"


def _decode_cursor(cursor: str) -> tuple[int, ...]:
    """Return the position that a cursor encodes, or an empty tuple if it is not a cursor."""
    text = cursor.removeprefix(CURSOR_PREFIX)
    numbers = [
        ids.decode("", text[start : start + _ENCODED_LENGTH])
        for start in range(0, len(text), _ENCODED_LENGTH)
    ]
    if text == cursor or len(numbers) > 2 or None in numbers:
        return ()
    return tuple(number for number in numbers if number is not None)


class CursorRule(Rule):
    log_form = LogForm.WORD
    example = ids.encode(CURSOR_PREFIX, 1 << 60)

    def check(self, value: str) -> str:
        if not _decode_cursor(value):
            raise InvalidValueError(INVALID_CURSOR)
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"description": "`next_cursor` of the previous page"}


class PageQuery(msgspec.Struct, kw_only=True):
    """Query parameters for a paginated list. Subclasses add filters."""

    limit: Annotated[int, IntegerRange(1, 100)] = 50
    cursor: Annotated[str, CursorRule()] | None = None

    @property
    def position(self) -> tuple[int, ...]:
        """Position of the previous page's last row; empty for the first page."""
        return () if self.cursor is None else _decode_cursor(self.cursor)

    @property
    def before_id(self) -> int:
        """Exclusive upper bound for row ids on this page."""
        return self._get_last_id(default=2**63 - 1)

    @property
    def after_id(self) -> int:
        """Exclusive lower bound for row ids on this page, for a list with the oldest first."""
        return self._get_last_id(default=-1)

    def _get_last_id(self, default: int) -> int:
        """Return the previous page's last ID; reject a cursor from a list in another order."""
        if len(self.position) > 1:
            raise invalid_field("cursor", INVALID_CURSOR)
        return self.position[0] if self.position else default


class PageOrder(StrEnum):
    NEWEST = "newest"
    OLDEST = "oldest"


class OrderedPageQuery(PageQuery, kw_only=True):
    """Query parameters for a list that can also start with the oldest record."""

    order: PageOrder = PageOrder.NEWEST


class NameOrder(StrEnum):
    NEWEST = "newest"
    NAME = "name"


class NamedPageQuery(PageQuery, kw_only=True):
    """Query parameters for a list that can also be sorted by name."""

    order: NameOrder = NameOrder.NEWEST


class Page(msgspec.Struct, Generic[T]):
    """One page of a list. `masked` is true if a row hides a restricted subscriber's data."""

    data: list[T]
    has_more: bool
    next_cursor: Word | None
    masked: bool | msgspec.UnsetType = msgspec.UNSET
