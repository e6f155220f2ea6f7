"""Cursor pagination of lists, newest first.

The cursor encodes the ID of the last row of a page, so that rows added between two requests cause
neither duplicates nor gaps.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from tapgate import ids
from tapgate.schemas.fields import IntegerRange, InvalidValueError, Rule

Row = TypeVar("Row")
T = TypeVar("T")

_CURSOR_PREFIX = "cur_"


class CursorRule(Rule):
    example = ids.encode(_CURSOR_PREFIX, 1 << 60)

    def check(self, value: str) -> str:
        if ids.decode(_CURSOR_PREFIX, value) is None:
            raise InvalidValueError("must be the next_cursor of an earlier page")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"description": "`next_cursor` of the previous page"}


class PageQuery(msgspec.Struct, kw_only=True):
    """Query parameters of a paginated list. Subclasses add filters."""

    limit: Annotated[int, IntegerRange(1, 100)] = 50
    cursor: Annotated[str, CursorRule()] | None = None

    @property
    def before_id(self) -> int:
        """Exclusive upper bound of the row ids on this page."""
        number = self._decode_cursor()
        return 2**63 - 1 if number is None else number

    @property
    def after_id(self) -> int:
        """Exclusive lower bound of the row ids on this page, for a list with the oldest first."""
        number = self._decode_cursor()
        return -1 if number is None else number

    def _decode_cursor(self) -> int | None:
        return None if self.cursor is None else ids.decode(_CURSOR_PREFIX, self.cursor)


def encode_cursor(last_id: int) -> str:
    """Return the cursor of the page after a row."""
    return ids.encode(_CURSOR_PREFIX, last_id)


class Page(msgspec.Struct, Generic[T]):
    """One page of a list.

    `masked` is true if personal data of a restricted subscriber is hidden in a row, and absent
    otherwise.
    """

    data: list[T]
    has_more: bool
    next_cursor: str | None
    masked: bool | msgspec.UnsetType = msgspec.UNSET


def paginate(
    rows: Sequence[Row],
    query: PageQuery,
    to_record: Callable[[Row], T],
    key: Callable[[Row], int] = attrgetter("id"),
) -> Page[T]:
    """Return a page of rows that were selected with `LIMIT query.limit + 1`.

    `to_record` returns the record of a row, `key` its id.
    """
    page_rows = rows[: query.limit]
    has_more = len(rows) > query.limit
    data = [to_record(row) for row in page_rows]
    return Page(
        data=data,
        has_more=has_more,
        next_cursor=encode_cursor(key(page_rows[-1])) if has_more else None,
        masked=any(getattr(record, "masked", False) for record in data) or msgspec.UNSET,
    )
