"""One writer per node: a node's workers send their commands to one of them.

The ledger is fast because a batch shares its round trips and its disk flush. If every worker always
wrote separate batches, more workers would mean smaller batches. The worker that holds a lock file
is therefore the writer: it executes the commands of all workers, which they send over a Unix
socket. A worker with very many commands, or beside idle cores, executes its commands itself
(`own_load.py`), because the writer uses only one core. So does every worker while there is no
writer, for example because it was killed. Both ways are safe at any time, because commands are
decided under database locks.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Final, Generic, Self, TypeVar

import msgspec
import structlog

from tapgate.ledger.commands import LedgerCommand, Outcome
from tapgate.ledger.engine.group_commit import MAX_BATCH_SIZE, Ledger, PendingCommand
from tapgate.ledger.engine.own_load import OwnLoad
from tapgate.runtime import local_rpc
from tapgate.runtime.idle_cores import IdleCores
from tapgate.runtime.local_rpc import Failure, encode_frame, read_frame
from tapgate.runtime.store.file_lock import FileLock
from tapgate_client.errors import ApiError, unavailable

log = structlog.get_logger()

_RETRY_SECONDS: Final = 0.05
#: How long a stopping writer waits until the other workers have received their outcomes.
HANDOVER_SECONDS: Final = 5.0
#: With fewer commands in progress, latency matters more than the cost of small batches.
_MIN_EXPECTED_COMMANDS: Final = 8
#: Number of batches after which one waits even if waiting does not seem worthwhile.
_TRIAL_INTERVAL: Final = 16
#: The wait for more commands depends on the last batch's duration, up to this maximum.
MAX_BATCH_SECONDS: Final = 0.03

T = TypeVar("T")


class _Request(msgspec.Struct, array_like=True, frozen=True, gc=False):
    number: int
    command: LedgerCommand


class _Response(msgspec.Struct, array_like=True, frozen=True, gc=False):
    number: int  # 0: the writer stops and accepts no further commands
    outcome: Outcome | None
    failure: Failure | None = None


_request_decoder = msgspec.msgpack.Decoder(list[_Request])
_response_decoder = msgspec.msgpack.Decoder(list[_Response])


class _Channel(Generic[T]):
    """Messages to a socket's other end. Messages from one event loop iteration share a frame."""

    def __init__(self, stream: asyncio.StreamWriter) -> None:
        self.stream = stream
        self._unsent: list[T] = []
        self.closed = asyncio.Event()

    def send(self, message: T) -> None:
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self.flush)
        self._unsent.append(message)

    def flush(self) -> None:
        if self._unsent and not self.stream.is_closing():
            self.stream.write(encode_frame(self._unsent))
        self._unsent.clear()

    def close(self) -> None:
        """Close the socket without waiting until a process that may hang has read everything."""
        self.closed.set()
        self.stream.transport.abort()


class WriterConnection:
    """A worker's connection to the writer."""

    def __init__(self, reader: asyncio.StreamReader, stream: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._channel = _Channel[_Request](stream)
        self._waiting: dict[int, asyncio.Future[Outcome]] = {}
        self._count = 0
        self._last_activity = monotonic()
        #: Set when the writer stops, or the connection is lost. A writer that stops still sends the
        #: outcomes for commands it has accepted.
        self.is_closing = False

    @classmethod
    async def open(cls, path: Path) -> Self | None:
        """Connect to the writer, or return None if none responds."""
        streams = await local_rpc.connect(path)
        return None if streams is None else cls(*streams)

    def submit(self, command: LedgerCommand) -> asyncio.Future[Outcome]:
        """Send a command. Only allowed before `is_closing` is set."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        if not self._waiting:
            self._last_activity = monotonic()
        self._count += 1
        self._waiting[self._count] = future
        self._channel.send(_Request(self._count, command))
        return future

    async def run(self) -> None:
        """Receive outcomes until the writer stops or no longer responds."""
        watchdog = asyncio.create_task(self._close_if_unresponsive())
        try:
            while (frame := await read_frame(self._reader)) is not None:
                self._last_activity = monotonic()
                for response in _response_decoder.decode(frame):
                    self._receive(response)
                if self.is_closing and not self._waiting:
                    return
        finally:
            self.is_closing = True
            watchdog.cancel()
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(
                        unavailable("The connection to the ledger was lost. Try again shortly.")
                    )
                    future.exception()  # mark as retrieved, in case the caller was canceled
            self._channel.close()

    def _receive(self, response: _Response) -> None:
        if response.number == 0:
            self.is_closing = True
            return
        future = self._waiting.pop(response.number)
        if future.done():  # the caller was canceled
            return
        if response.failure is not None:
            future.set_exception(response.failure.to_error())
        elif response.outcome is not None:
            future.set_result(response.outcome)

    async def _close_if_unresponsive(self) -> None:
        while True:
            timeout = local_rpc.RESPONSE_TIMEOUT_SECONDS
            await asyncio.sleep(timeout / 4)
            if self._waiting and monotonic() - self._last_activity > timeout:
                log.error("ledger.writer_unresponsive", waiting=len(self._waiting))
                self._reader.feed_eof()


class NodeLedger(Ledger):
    """A worker's ledger, which shares one writer with the node's other workers."""

    def __init__(
        self,
        socket_path: Path,
        *arguments: Any,
        idle_cores: IdleCores | None = None,
        **options: Any,
    ) -> None:
        """`idle_cores` measures the machine if PostgreSQL runs on it too."""
        super().__init__(*arguments, **options)
        self._socket_path = socket_path
        self.lock = FileLock(socket_path.with_suffix(".lock"))
        self.writer: WriterConnection | None = None
        self.channels: set[_Channel[_Response]] = set()
        self._sharing: asyncio.Task[None] | None = None
        self.last_batch_seconds = self.last_batch_end = 0.0
        self.expected_commands = 0
        self.has_expected = asyncio.Event()
        self.batches_without_wait = 0
        self._own_load = OwnLoad(idle_cores)

    def start(self) -> Self:
        super().start()
        self._sharing = asyncio.create_task(self._share())
        return self

    async def stop(self) -> None:
        if self._sharing is not None:
            self._sharing.cancel()
            await asyncio.wait([self._sharing])
        for channel in self.channels:
            channel.send(_Response(0, None))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HANDOVER_SECONDS):
                await asyncio.gather(*(channel.closed.wait() for channel in self.channels))
        await super().stop()

    async def submit(self, command: LedgerCommand) -> Outcome:
        with self._own_load:
            return await super().submit(command)

    async def gather_batch(self) -> None:
        """Wait also for the other workers, whose commands arrive later than the writer's own.

        The wait ends when most of the expected commands have arrived, when none arrives for half
        the last batch's duration, or when that duration has passed since the batch ended.
        """
        await super().gather_batch()
        batch_seconds = min(self.last_batch_seconds, MAX_BATCH_SECONDS)
        deadline = self.last_batch_end + batch_seconds
        previous_count = 0
        while previous_count < len(self._pending) < self.expected_commands:
            if monotonic() > deadline:
                break
            previous_count = len(self._pending)
            self.has_expected.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(batch_seconds / 2):
                    await self.has_expected.wait()

    def enqueue(self, command: LedgerCommand) -> "asyncio.Future[Outcome]":
        future = super().enqueue(command)
        if len(self._pending) >= self.expected_commands:
            self.has_expected.set()
        return future

    async def _process_batch(self, batch: Sequence[PendingCommand]) -> ApiError | None:
        started = monotonic()
        outage = await super()._process_batch(batch)
        self.last_batch_end = monotonic()
        self.last_batch_seconds = self.last_batch_end - started
        self.expected_commands = self.estimate_commands(len(batch), len(self._pending))
        return outage

    def estimate_commands(self, size: int, arrived: int) -> int:
        """Return how many commands to wait for after a batch, 0 if the next one should start.

        If clients wait for responses before they send more, few commands arrive during a batch,
        and about as many as it had arrive after it. Otherwise commands arrive at any time. Waiting
        would only delay them: the longest wait is as long as a batch, so at least half as many
        arrive during a batch as it has. If the clients are divided into groups that take turns,
        the two cases look alike, so one batch of several waits in any case.
        """
        self.batches_without_wait += 1
        total = min(size + arrived, MAX_BATCH_SIZE)
        if not self.channels or self._own_load.has_own_batches or total < _MIN_EXPECTED_COMMANDS:
            return 0
        if arrived * 3 > size and self.batches_without_wait < _TRIAL_INTERVAL:
            return 0
        self.batches_without_wait = 0
        return total - total // 8

    def _dispatch(self, command: LedgerCommand) -> Awaitable[Outcome]:
        writer = self.writer
        if writer is None or writer.is_closing or self._own_load.has_own_batches:
            return super()._dispatch(command)
        return writer.submit(command)

    async def _share(self) -> None:
        """Be the writer, or use the writer, as long as the process runs."""
        try:
            while True:
                if self.lock.acquire():
                    await self._serve()
                self.writer = await WriterConnection.open(self._socket_path)
                if self.writer is not None:
                    await self._use_writer(self.writer)
                await asyncio.sleep(_RETRY_SECONDS)
        except OSError as error:
            log.error("ledger.writer_failed", error=type(error).__name__, exc_info=True)
        finally:
            self.lock.release()

    async def _use_writer(self, writer: WriterConnection) -> None:
        try:
            await writer.run()
        finally:
            self.writer = None

    async def _serve(self) -> None:
        self._socket_path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._accept, self._socket_path)
        self._socket_path.chmod(0o600)
        try:
            await asyncio.get_running_loop().create_future()  # until canceled
        finally:
            server.close()

    async def _accept(self, reader: asyncio.StreamReader, stream: asyncio.StreamWriter) -> None:
        """Execute another worker's commands until it disconnects."""
        channel = _Channel[_Response](stream)
        self.channels.add(channel)
        try:
            stream.write(local_rpc.GREETING)
            while (frame := await read_frame(reader)) is not None:
                for request in _request_decoder.decode(frame):
                    self._execute(request, channel)
        finally:
            self.channels.discard(channel)
            channel.close()

    def _execute(self, request: _Request, channel: _Channel[_Response]) -> None:
        def respond(future: asyncio.Future[Outcome]) -> None:
            error = future.exception()
            if isinstance(error, ApiError):
                channel.send(_Response(request.number, None, Failure.from_error(error)))
            else:
                channel.send(_Response(request.number, future.result()))

        try:
            self.enqueue(request.command).add_done_callback(respond)
        except ApiError as error:
            channel.send(_Response(request.number, None, Failure.from_error(error)))
