"""Change notifications between processes, using LISTEN/NOTIFY on a dedicated connection.

A change is published in its database transaction. `wait_for_acks` then requests an acknowledgment
from every listening process. Notifications arrive in commit order, so a process that acknowledges
has run the handlers for all changes committed before the request.

A process registers as a listener only after LISTEN, and uses its caches only after registering. A
process that has not registered yet therefore serves no stale values. A process that loses its
connection silently may serve stale values until a heartbeat detects the loss.
"""

import asyncio
import contextlib
import secrets
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NewType

import asyncpg
import msgspec
import structlog

from tapgate.runtime.store.connect import open_connection
from tapgate.runtime.store.connection_settings import LISTENER_LIMITS
from tapgate.runtime.store.failures import DATABASE_ERRORS
from tapgate.runtime.store.transaction import Transaction

Ticket = NewType("Ticket", str)

_CHANGES_CHANNEL = "tapgate_changes"
_ACK_REQUESTS_CHANNEL = "tapgate_questions"
_LISTENER_APPLICATION_NAME = "tapgate listener"
ACK_TIMEOUT_SECONDS = 1.0
QUERY_TIMEOUT_SECONDS = 2.0
HEARTBEAT_SECONDS = 2.0
_RETRY_SECONDS = 0.2
_LISTENER_POLL_SECONDS = 0.1

_SELECT_READ_ONLY = "SELECT current_setting('transaction_read_only')::bool"

_log = structlog.get_logger()


class Signals:
    def __init__(self, url: str) -> None:
        self._url = url
        self._ack_channel = f"tapgate_answers_{secrets.token_hex(8)}"
        self._handlers: dict[str, list[Callable[[str], None]]] = defaultdict(list)
        self._reconnect_handlers: list[Callable[[], None]] = []
        self._acks: dict[str, set[int]] = {}
        self._ack_received = asyncio.Event()  # set whenever an acknowledgment arrives
        self._connected = asyncio.Event()
        self._query_lock = asyncio.Lock()
        self.connection: Any = None
        self._pid = 0  # the connection's backend PID
        self._ack_tasks: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    @property
    def is_listening(self) -> bool:
        """Whether changes are received. While False, cached values may be stale."""
        return self._connected.is_set()

    def subscribe(self, topic: str, handler: Callable[[str], None]) -> None:
        self._handlers[topic].append(handler)

    def on_reconnect(self, handler: Callable[[], None]) -> None:
        """Register a handler that runs whenever listening starts or resumes.

        Changes published before that may have been missed.
        """
        self._reconnect_handlers.append(handler)

    async def start(self) -> None:
        """Start listening in the background.

        Return once connected, or after a timeout while connection attempts continue.
        """
        self._task = asyncio.create_task(self._keep_listening())
        await _wait_for_event(self._connected, timeout_seconds=QUERY_TIMEOUT_SECONDS)

    async def stop(self) -> None:
        self._stopping = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, *self._ack_tasks, return_exceptions=True)
            self._task = None

    async def publish(
        self, tx: asyncpg.Connection | Transaction, topic: str, payload: str
    ) -> Ticket:
        """Publish a change when `tx` commits. Return a ticket for `wait_for_acks`."""
        message = msgspec.json.encode((topic, payload)).decode()
        await tx.execute("SELECT pg_notify($1, $2)", _CHANGES_CHANNEL, message)
        return Ticket(secrets.token_hex(8))

    async def publish_and_wait(self, tx: Transaction, topic: str, payload: str = "") -> None:
        """Publish a change when `tx` commits, and call `wait_for_acks` after the commit."""
        ticket = await self.publish(tx, topic, payload)
        tx.after_commit(lambda: self.wait_for_acks(ticket))

    async def wait_for_acks(self, ticket: Ticket) -> None:
        """Wait until all listening processes have acknowledged, for at most one second.

        A timeout is not an error. Call this after the database transaction that published the
        change has committed.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ACK_TIMEOUT_SECONDS):
                while True:
                    await self._connected.wait()
                    with contextlib.suppress(*DATABASE_ERRORS):
                        return await self.collect_acks(ticket)
                    await asyncio.sleep(_RETRY_SECONDS)

    async def collect_acks(self, ticket: Ticket) -> None:
        acknowledged = self._acks[ticket] = set()
        try:
            listeners = await self._list_listeners()
            await self._notify(_ACK_REQUESTS_CHANNEL, f"{self._ack_channel} {ticket}")
            while not listeners <= acknowledged:
                self._ack_received.clear()
                if not await _wait_for_event(
                    self._ack_received, timeout_seconds=_LISTENER_POLL_SECONDS
                ):
                    listeners &= await self._list_listeners()  # drop disconnected processes
        finally:
            del self._acks[ticket]

    async def _list_listeners(self) -> set[int]:
        rows = await self._query(
            """SELECT pid FROM pg_stat_activity
               WHERE application_name = $1 AND datname = current_database()""",
            _LISTENER_APPLICATION_NAME,
        )
        return {row["pid"] for row in rows}

    async def _notify(self, channel: str, payload: str) -> None:
        await self._query("SELECT pg_notify($1, $2)", channel, payload)

    async def _query(self, sql: str, *arguments: object) -> list[asyncpg.Record]:
        # The caller may be canceled, but the query on the shared connection must not be. The
        # callback retrieves an abandoned query's exception, so asyncio does not log it.
        query = asyncio.ensure_future(self._query_locked(sql, *arguments))
        query.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(query)

    async def _query_locked(self, sql: str, *arguments: object) -> list[asyncpg.Record]:
        async with self._query_lock:
            if self.connection is None:
                raise ConnectionError("not connected")
            return await self.connection.fetch(sql, *arguments)  # type: ignore[no-any-return]

    async def _keep_listening(self) -> None:
        while True:
            try:
                await self._listen()
            except Exception as error:
                # Retry after any error: without signals, the process would bypass its caches
                # forever.
                _log.warning("signals.connection_lost", error=type(error).__name__)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _listen(self) -> None:
        """Listen until the connection is lost."""
        connection = await open_connection(
            self._url,
            timeout=QUERY_TIMEOUT_SECONDS,
            command_timeout=QUERY_TIMEOUT_SECONDS,
            settings=LISTENER_LIMITS.to_settings(),
        )
        lost = asyncio.Event()

        def on_loss(connection: object) -> None:
            self._connected.clear()
            lost.set()

        try:
            connection.add_termination_listener(on_loss)
            await connection.add_listener(_CHANGES_CHANNEL, self._on_change)
            await connection.add_listener(_ACK_REQUESTS_CHANNEL, self._on_ack_request)
            await connection.add_listener(self._ack_channel, self._on_ack)
            # `get_server_pid` may return the pooler's PID.
            self._pid = await connection.fetchval("SELECT pg_backend_pid()")
            _require_writable(await connection.fetch(_SELECT_READ_ONLY))
            await connection.execute(f"SET application_name = '{_LISTENER_APPLICATION_NAME}'")
            self.connection = connection
            for handler in self._reconnect_handlers:
                handler()
            self._connected.set()
            while not await _wait_for_event(lost, timeout_seconds=HEARTBEAT_SECONDS):
                # Also detects a connection that was lost silently.
                _require_writable(await self._query(_SELECT_READ_ONLY))
        finally:
            self.connection = None
            self._connected.clear()
            if self._stopping:
                await _close(connection)
            else:
                connection.terminate()

    def _on_change(self, connection: object, _pid: int, _channel: str, message: str) -> None:
        topic, payload = msgspec.json.decode(message, type=tuple[str, str])
        for handler in self._handlers[topic]:
            try:
                handler(payload)
            except Exception:
                _log.exception("signals.handler_failed", topic=topic)

    def _on_ack_request(self, connection: Any, _pid: int, _channel: str, request: str) -> None:
        ack_channel, _, ticket = request.partition(" ")
        task = asyncio.create_task(self._send_ack(ack_channel, f"{ticket} {self._pid}"))
        self._ack_tasks.add(task)
        task.add_done_callback(self._ack_tasks.discard)

    async def _send_ack(self, channel: str, payload: str) -> None:
        with contextlib.suppress(*DATABASE_ERRORS):
            await self._notify(channel, payload)

    def _on_ack(self, connection: object, _pid: int, _channel: str, payload: str) -> None:
        ticket, _, pid = payload.partition(" ")
        if ticket in self._acks:
            self._acks[ticket].add(int(pid))
            self._ack_received.set()


def _require_writable(rows: list[asyncpg.Record]) -> None:
    """Raise ConnectionError if the server is read-only: changes are published on another one."""
    if rows[0][0]:
        raise ConnectionError("the server is read-only")


async def _close(connection: asyncpg.Connection) -> None:
    """Close gracefully, or terminate if the server does not respond."""
    try:
        async with asyncio.timeout(QUERY_TIMEOUT_SECONDS):
            await connection.close()
    except (TimeoutError, *DATABASE_ERRORS):
        connection.terminate()


async def _wait_for_event(event: asyncio.Event, *, timeout_seconds: float) -> bool:
    try:
        async with asyncio.timeout(timeout_seconds):
            return await event.wait()
    except TimeoutError:
        return False
