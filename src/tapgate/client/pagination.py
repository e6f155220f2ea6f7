"""Cursor pagination of lists."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

import msgspec

from tapgate.client.operation import (
    AsyncMode,
    ListOperation,
    Operation,
    OperationGroup,
    SyncMode,
    build_operation,
)

P = ParamSpec("P")
T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list.

    `next_cursor` identifies the next page and is None on the last page. `masked` is true if any
    record on the page is masked.
    """

    data: list[T]
    has_more: bool
    next_cursor: str | None
    masked: bool = False


class _SyncSender(Protocol):
    def send(self, operation: Operation[T], /) -> T: ...


class _AsyncSender(Protocol):
    def send(self, operation: Operation[T], /) -> Coroutine[Any, Any, T]: ...


class Paginator(Generic[T]):
    """Iterable that yields all items of a list and fetches pages as needed."""

    def __init__(self, transport: _SyncSender, listing: ListOperation[T]) -> None:
        self._transport = transport
        self._operation = listing

    def get_page(self, cursor: str | None = None) -> Page[T]:
        """Return the first page, or the page that starts at a previous page's `next_cursor`."""
        return self._transport.send(_build_page_operation(self._operation, cursor))

    def __iter__(self) -> Iterator[T]:
        page = self.get_page()
        yield from page.data
        while page.next_cursor is not None:
            page = self.get_page(page.next_cursor)
            yield from page.data


class AsyncPaginator(Generic[T]):
    """Asynchronous iterable that yields all items of a list and fetches pages as needed."""

    def __init__(self, transport: _AsyncSender, listing: ListOperation[T]) -> None:
        self._transport = transport
        self._operation = listing

    async def get_page(self, cursor: str | None = None) -> Page[T]:
        """Return the first page, or the page that starts at a previous page's `next_cursor`."""
        return await self._transport.send(_build_page_operation(self._operation, cursor))

    async def __aiter__(self) -> AsyncIterator[T]:
        page = await self.get_page()
        for item in page.data:
            yield item
        while page.next_cursor is not None:
            page = await self.get_page(page.next_cursor)
            for item in page.data:
                yield item


def _build_page_operation(listing: ListOperation[T], cursor: str | None) -> Operation[Page[T]]:
    cursor_query = {} if cursor is None else {"cursor": cursor}
    item_type: Any = listing.item_type
    return build_operation(
        "reads",
        "GET",
        listing.path_template,
        Page[item_type],
        path=listing.path_parameters,
        query={**listing.query, **cursor_query},
    )


class list_operation(Generic[P, T]):  # noqa: N801 - a decorator
    """Decorator that turns a method returning a `ListOperation` into one returning a paginator."""

    def __init__(self, describe: Callable[Concatenate[Any, P], ListOperation[T]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self, group: OperationGroup[SyncMode], owner: type
    ) -> Callable[P, Paginator[T]]: ...
    @overload
    def __get__(
        self, group: OperationGroup[AsyncMode], owner: type
    ) -> Callable[P, AsyncPaginator[T]]: ...
    def __get__(self, group: OperationGroup[Any] | None, owner: type) -> Any:
        if group is None:
            return self
        describe, transport = self.describe, group._transport

        @wraps(describe)
        def start_pagination(*args: P.args, **kwargs: P.kwargs) -> Any:
            return transport.paginate(describe(group, *args, **kwargs))

        return start_pagination


def build_list(
    template: str, response_type: type[T], query: dict[str, Any], **path: str
) -> ListOperation[T]:
    return ListOperation(
        path_template=template, path_parameters=path, query=query, item_type=response_type
    )
