"""Cursor pagination for lists."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Generic, TypeVar

from tapgate_client.operation import Operation
from tapgate_client.schemas.pagination import Page

T = TypeVar("T")


class Paginator(Generic[T]):
    """Iterable that yields all items in a list and fetches pages as needed."""

    def __init__(
        self, send: Callable[[Operation[Page[T]]], Page[T]], operation: Operation[Page[T]]
    ) -> None:
        self._send = send
        self._operation = operation

    def get_page(self, cursor: str | None = None) -> Page[T]:
        """Return the first page, or the page that starts at a previous page's `next_cursor`."""
        return self._send(self._operation.at_cursor(cursor))

    def __iter__(self) -> Iterator[T]:
        page = self.get_page()
        yield from page.data
        while page.next_cursor is not None:
            page = self.get_page(page.next_cursor)
            yield from page.data


class AsyncPaginator(Generic[T]):
    """Asynchronous iterable that yields all items in a list and fetches pages as needed."""

    def __init__(
        self,
        send: Callable[[Operation[Page[T]]], Awaitable[Page[T]]],
        operation: Operation[Page[T]],
    ) -> None:
        self._send = send
        self._operation = operation

    async def get_page(self, cursor: str | None = None) -> Page[T]:
        """Return the first page, or the page that starts at a previous page's `next_cursor`."""
        return await self._send(self._operation.at_cursor(cursor))

    async def __aiter__(self) -> AsyncIterator[T]:
        page = await self.get_page()
        for item in page.data:
            yield item
        while page.next_cursor is not None:
            page = await self.get_page(page.next_cursor)
            for item in page.data:
                yield item
