"""Lists in pages, newest first: the cursor is the id of the last row shown, so that rows added
meanwhile neither repeat nor hide one."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from tapgate import ids
from tapgate.edge.fields import IntegerRange, InvalidValueError, Rule

Row = TypeVar("Row")
T = TypeVar("T")

_CURSOR_PREFIX = "cur_"


class CursorRule(Rule):
    example = ids.encode(_CURSOR_PREFIX, 1 << 60)

    def check(self, value: str) -> str:
        if ids.decode(_CURSOR_PREFIX, value) is None:
            raise InvalidValueError("is not a cursor that a list gave out")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"description": "`next_cursor` of the page before"}


class PageQuery(msgspec.Struct, kw_only=True):
    """The query of every list; filters are added by inheriting."""

    limit: Annotated[int, IntegerRange(1, 100)] = 50
    cursor: Annotated[str, CursorRule()] | None = None

    @property
    def before_id(self) -> int:
        """Only rows with a smaller id belong on this page."""
        number = None if self.cursor is None else ids.decode(_CURSOR_PREFIX, self.cursor)
        return 2**63 - 1 if number is None else number


class Page(msgspec.Struct, Generic[T]):
    """`masked` is there, and true, when personal data of a restricted subscriber is hidden in a
    row."""

    data: list[T]
    has_more: bool
    next_cursor: str | None
    masked: bool | msgspec.UnsetType = msgspec.UNSET


def paginate(
    rows: Sequence[Row], limit: int, key: Callable[[Row], int], show: Callable[[Row], T]
) -> Page[T]:
    """One page of rows that were asked for with `LIMIT limit + 1`; `key` is a row's id."""
    shown = rows[:limit]
    has_more = len(rows) > limit
    data = [show(row) for row in shown]
    return Page(
        data=data,
        has_more=has_more,
        next_cursor=ids.encode(_CURSOR_PREFIX, key(shown[-1])) if has_more else None,
        masked=any(getattr(record, "masked", False) for record in data) or msgspec.UNSET,
    )
