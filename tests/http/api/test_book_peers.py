"""Another book that responds slowly, or without end, costs neither memory nor other requests."""

import asyncio
import contextlib
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from cases import each
from tapgate.core.settings import load_settings
from tapgate.core.settings.books import BookPeer
from tapgate.http.api.book_peers import BookPeers
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.exceptions import TapgateError

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
MEGABYTE = 2**20
#: A lookup ends after 3 seconds, and after at most one second in the queue; a busy machine needs
#: longer. Without a bound it would take a minute.
MAX_LOOKUP_SECONDS = 20.0

Respond = Callable[[asyncio.StreamWriter], Awaitable[None]]


async def send_without_end(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"%x\r\n%b\r\n" % (MEGABYTE, b" " * MEGABYTE))
        await writer.drain()


async def send_a_long_body(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % (64 * MEGABYTE))
    for _ in range(64):
        writer.write(b" " * MEGABYTE)
        await writer.drain()


async def send_an_encoded_body(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nbody")
    await writer.drain()


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"Content-Length: 1000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.2)


async def say_nothing(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


@contextlib.asynccontextmanager
async def open_peers(folder: Path, **books: Respond) -> AsyncIterator[BookPeers]:
    """Serve the other books, and open this book's clients for them."""
    partner, key = ids.encode(ids.PARTNER, 1), ids.encode(ids.KEY, 1)
    peers = {}
    async with contextlib.AsyncExitStack() as stack:
        tasks: set[asyncio.Task[None] | None] = set()
        for code, respond in books.items():

            async def serve(
                reader: asyncio.StreamReader,
                writer: asyncio.StreamWriter,
                respond: Respond = respond,
            ) -> None:
                tasks.add(asyncio.current_task())
                try:
                    await reader.readuntil(b"\r\n\r\n")
                    await respond(writer)
                except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                    pass
                finally:
                    writer.transport.abort()

            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            stack.callback(server.close)
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            peers[code] = BookPeer(url=url, partner=partner, own_partner=partner, key=key)
        settings = load_settings({"TAPGATE_DATA_DIR": str(folder)}).replace(
            book="north", book_peers=peers, book_secrets=dict.fromkeys(peers, "s" * 32)
        )
        book_peers = BookPeers(settings)
        stack.push_async_callback(book_peers.close)
        try:
            yield book_peers
        finally:
            for task in tasks:
                assert task is not None
                task.cancel()
            await asyncio.gather(*filter(None, tasks))


async def find_code(peers: BookPeers, number: int) -> Code:
    with pytest.raises(ApiError) as caught:
        await peers.find_customer(("phone_number", f"+23276{number:06}"))
    return caught.value.code


@each("respond", [send_without_end, send_a_long_body, send_an_encoded_body, drip, say_nothing])
async def test_lookup_ends_in_time_and_reads_little(respond: Respond, tmp_path: Path) -> None:
    async with open_peers(tmp_path, south=respond) as peers:
        await find_code(peers, 1)  # imports and connections
        tracemalloc.start()
        try:
            started = time.monotonic()
            assert await find_code(peers, 2) == Code.SERVICE_UNAVAILABLE
            assert time.monotonic() - started < MAX_LOOKUP_SECONDS
            assert tracemalloc.get_traced_memory()[1] < 8 * MEGABYTE
        finally:
            tracemalloc.stop()


@each("respond", [send_without_end, send_a_long_body, send_an_encoded_body])
async def test_other_requests_are_bounded_too(respond: Respond, tmp_path: Path) -> None:
    async with open_peers(tmp_path, south=respond) as peers:
        with pytest.raises(TapgateError):
            await peers.get_client("south").books.get_position()


async def test_many_lookups_in_a_silent_book_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async with open_peers(tmp_path, south=say_nothing) as peers:
        started = time.monotonic()
        codes = await asyncio.gather(*(find_code(peers, number) for number in range(300)))
        assert {*codes} == {Code.SERVICE_UNAVAILABLE}
        assert time.monotonic() - started < MAX_LOOKUP_SECONDS
