"""Cursor pagination for lists.

The cursor encodes the position of a page's last row, so that rows added between two requests cause
neither duplicates nor gaps. In most lists, which are newest first, the position is the row's ID. In
a list with another order, it is the row's sort key followed by its ID.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TypeVar

import msgspec

from tapgate_client import ids
from tapgate_client.schemas.pagination import CURSOR_PREFIX, Page, PageQuery

Row = TypeVar("Row")
T = TypeVar("T")


def encode_cursor(position: int | tuple[int, ...]) -> str:
    numbers = (position,) if isinstance(position, int) else position
    return CURSOR_PREFIX + "".join(ids.encode("", number) for number in numbers)


def paginate(
    rows: Sequence[Row],
    query: PageQuery,
    to_record: Callable[[Row], T],
    key: Callable[[Row], int | tuple[int, ...]] = attrgetter("id"),
) -> Page[T]:
    """Return a page of rows that were selected with `LIMIT query.limit + 1`.

    `to_record` returns a row's record, `key` its position.
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
