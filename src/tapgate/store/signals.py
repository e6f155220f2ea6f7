"""What one process changed, told to all of them: LISTEN and NOTIFY over one own connection.

A change is published in its database transaction. `settled` then asks every listening process for
an answer: notifications arrive in the order of their commits, so whoever answers has run the
handlers of all changes committed before. A process says that it listens only after LISTEN, and
trusts its caches only after it has said so; whoever is not asked has nothing old to remember.
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

from tapgate.store.connect import open_connection
from tapgate.store.database import FAILURES

Ticket = NewType("Ticket", str)

_CHANGES = "tapgate_changes"
_QUESTIONS = "tapgate_questions"
_LISTENER = "tapgate listener"
_SETTLE_SECONDS = 1.0
_ANSWER_SECONDS = 2.0
_HEARTBEAT_SECONDS = 2.0
_RETRY_SECONDS = 0.2
_RECOUNT_SECONDS = 0.1

_log = structlog.get_logger()


class Signals:
    def __init__(self, url: str) -> None:
        self._url = url
        self._answers = f"tapgate_answers_{secrets.token_hex(8)}"
        self._handlers: dict[str, list[Callable[[str], None]]] = defaultdict(list)
        self._gap_handlers: list[Callable[[], None]] = []
        self._answered: dict[str, set[int]] = {}
        self._news = asyncio.Event()  # somebody answered
        self._up = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._connection: Any = None
        self._pid = 0  # PostgreSQL's process of the connection
        self._answering: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    @property
    def listening(self) -> bool:
        """While this is False, changes are missed: what is remembered may be old."""
        return self._up.is_set()

    def on(self, topic: str, handler: Callable[[str], None]) -> None:
        self._handlers[topic].append(handler)

    def on_gap(self, handler: Callable[[], None]) -> None:
        """Called whenever listening begins (again): changes may have been missed before."""
        self._gap_handlers.append(handler)

    async def start(self) -> None:
        """Returns when it listens, or when that takes too long: it goes on trying by itself."""
        self._task = asyncio.create_task(self._keep_listening())
        await _happens(self._up, within=_ANSWER_SECONDS)

    async def stop(self) -> None:
        self._stopping = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, *self._answering, return_exceptions=True)
            self._task = None

    async def publish(self, tx: asyncpg.Connection, topic: str, payload: str) -> Ticket:
        """Part of the database transaction: told to everybody if and when it commits."""
        message = msgspec.json.encode((topic, payload)).decode()
        await tx.execute("SELECT pg_notify($1, $2)", _CHANGES, message)
        return Ticket(secrets.token_hex(8))

    async def settled(self, ticket: Ticket) -> None:
        """After the commit: returns when every listening process knows, or after a second."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SETTLE_SECONDS):
                while True:
                    await self._up.wait()
                    with contextlib.suppress(*FAILURES):
                        return await self._hear_from_everybody(ticket)
                    await asyncio.sleep(_RETRY_SECONDS)

    async def _hear_from_everybody(self, ticket: Ticket) -> None:
        answered = self._answered[ticket] = set()
        try:
            asked = await self._listeners()
            await self._notify(_QUESTIONS, f"{self._answers} {ticket}")
            while not asked <= answered:
                self._news.clear()
                if not await _happens(self._news, within=_RECOUNT_SECONDS):
                    asked &= await self._listeners()  # whoever has gone will not answer
        finally:
            del self._answered[ticket]

    async def _listeners(self) -> set[int]:
        rows = await self._query(
            """SELECT pid FROM pg_stat_activity
               WHERE application_name = $1 AND datname = current_database()""",
            _LISTENER,
        )
        return {row["pid"] for row in rows}

    async def _notify(self, channel: str, payload: str) -> None:
        await self._query("SELECT pg_notify($1, $2)", channel, payload)

    async def _query(self, sql: str, *arguments: object) -> list[asyncpg.Record]:
        # Whoever asked may give up; the connection, which others use too, must not notice. Nor is
        # it a complaint to anybody if the query fails after that.
        query = asyncio.ensure_future(self._query_in_turn(sql, *arguments))
        query.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(query)

    async def _query_in_turn(self, sql: str, *arguments: object) -> list[asyncpg.Record]:
        async with self._one_at_a_time:
            if self._connection is None:
                raise ConnectionError("not connected")
            return await self._connection.fetch(sql, *arguments)  # type: ignore[no-any-return]

    async def _keep_listening(self) -> None:
        while True:
            try:
                await self._listen()
            except Exception as error:
                # Whatever it was: a process that stopped listening for good would be slow for good.
                _log.warning("signals.lost", error=type(error).__name__)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _listen(self) -> None:
        """Until the connection is lost."""
        connection = await open_connection(
            self._url, timeout=_ANSWER_SECONDS, command_timeout=_ANSWER_SECONDS
        )
        lost = asyncio.Event()

        def on_loss(_connection: object) -> None:
            self._up.clear()
            lost.set()

        try:
            connection.add_termination_listener(on_loss)
            await connection.add_listener(_CHANGES, self._on_change)
            await connection.add_listener(_QUESTIONS, self._on_question)
            await connection.add_listener(self._answers, self._on_answer)
            # Not the connection's own idea of it, which behind a pooler is the pooler's.
            self._pid = await connection.fetchval("SELECT pg_backend_pid()")
            await connection.execute(f"SET application_name = '{_LISTENER}'")
            self._connection = connection
            for forget in self._gap_handlers:
                forget()
            self._up.set()
            while not await _happens(lost, within=_HEARTBEAT_SECONDS):
                await self._query("SELECT")  # a connection can also be lost without a word
        finally:
            self._connection = None
            self._up.clear()
            if self._stopping:
                await _close(connection)
            else:
                connection.terminate()

    def _on_change(self, _connection: object, _pid: int, _channel: str, message: str) -> None:
        topic, payload = msgspec.json.decode(message, type=tuple[str, str])
        for handler in self._handlers[topic]:
            try:
                handler(payload)
            except Exception:
                _log.exception("signals.handler_failed", topic=topic)

    def _on_question(self, _connection: Any, _pid: int, _channel: str, question: str) -> None:
        asker, _, ticket = question.partition(" ")
        answering = asyncio.create_task(self._answer(asker, f"{ticket} {self._pid}"))
        self._answering.add(answering)
        answering.add_done_callback(self._answering.discard)

    async def _answer(self, asker: str, answer: str) -> None:
        with contextlib.suppress(*FAILURES):
            await self._notify(asker, answer)

    def _on_answer(self, _connection: object, _pid: int, _channel: str, answer: str) -> None:
        ticket, _, pid = answer.partition(" ")
        if ticket in self._answered:
            self._answered[ticket].add(int(pid))
            self._news.set()


async def _close(connection: asyncpg.Connection) -> None:
    """End the session in order, or without the server if it does not respond."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            await connection.close()
    except (TimeoutError, *FAILURES):
        connection.terminate()


async def _happens(event: asyncio.Event, *, within: float) -> bool:
    try:
        async with asyncio.timeout(within):
            return await event.wait()
    except TimeoutError:
        return False
