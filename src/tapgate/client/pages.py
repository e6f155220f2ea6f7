"""Lists of the gateway, page by page, newest first."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

import msgspec

from tapgate.client.operation import Async, Group, Listing, Operation, Sync, described

P = ParamSpec("P")
T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """`next_cursor` asks for the page after this one; None on the last. `masked`: a transaction on
    the page is masked."""

    data: list[T]
    has_more: bool
    next_cursor: str | None
    masked: bool = False


class _Calls(Protocol):
    def call(self, operation: Operation[T], /) -> T: ...


class _AsyncCalls(Protocol):
    def call(self, operation: Operation[T], /) -> Coroutine[Any, Any, T]: ...


class Pages(Generic[T]):
    """All items, fetched a page at a time while one walks over them."""

    def __init__(self, line: _Calls, listing: Listing[T]) -> None:
        self._line = line
        self._listing = listing

    def page(self, cursor: str | None = None) -> Page[T]:
        """The first page, or the one that a page before points to."""
        return self._line.call(_page(self._listing, cursor))

    def __iter__(self) -> Iterator[T]:
        page = self.page()
        yield from page.data
        while page.next_cursor is not None:
            page = self.page(page.next_cursor)
            yield from page.data


class AsyncPages(Generic[T]):
    """All items, fetched a page at a time while one walks over them."""

    def __init__(self, line: _AsyncCalls, listing: Listing[T]) -> None:
        self._line = line
        self._listing = listing

    async def page(self, cursor: str | None = None) -> Page[T]:
        """The first page, or the one that a page before points to."""
        return await self._line.call(_page(self._listing, cursor))

    async def __aiter__(self) -> AsyncIterator[T]:
        page = await self.page()
        for item in page.data:
            yield item
        while page.next_cursor is not None:
            page = await self.page(page.next_cursor)
            for item in page.data:
                yield item


def _page(listing: Listing[T], cursor: str | None) -> Operation[Page[T]]:
    after = {} if cursor is None else {"cursor": cursor}
    item: Any = listing.answer
    return described(
        "reads",
        "GET",
        listing.template,
        Page[item],
        path=listing.path,
        query={**listing.query, **after},
    )


class listing(Generic[P, T]):  # noqa: N801 - a decorator
    """Makes a method that describes a list into one that walks over it."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Listing[T]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...
    @overload
    def __get__(self, group: Group[Sync], owner: type) -> Callable[P, Pages[T]]: ...
    @overload
    def __get__(self, group: Group[Async], owner: type) -> Callable[P, AsyncPages[T]]: ...
    def __get__(self, group: Group[Any] | None, owner: type) -> Any:
        if group is None:
            return self
        describe, line = self.describe, group._line

        @wraps(describe)
        def walk(*args: P.args, **kwargs: P.kwargs) -> Any:
            return line.walk(describe(group, *args, **kwargs))

        return walk


def listed(template: str, answer: type[T], query: dict[str, Any], **path: str) -> Listing[T]:
    return Listing(template=template, path=path, query=query, answer=answer)
