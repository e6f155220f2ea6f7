"""Sends what is due, at least once: to many people at the same time, to each in order.

A message is marked once the provider has taken it. Whoever is killed between the two sends it
again: a person may read something twice, but never nothing.
"""

import asyncio
import contextlib
from datetime import timedelta
from typing import NoReturn

import structlog

from tapgate import ids
from tapgate.clock import Clock
from tapgate.messenger.channel.graph import Graph, GraphError
from tapgate.messenger.channel.render import Payload, RenderError, payloads
from tapgate.messenger.outbox import claims
from tapgate.messenger.outbox.claims import Claim
from tapgate.messenger.outbox.sealed import UnreadableError, opened
from tapgate.service.background import run_periodically
from tapgate.store.database import Database
from tapgate.vault import Vault

TICK_SECONDS = 0.5
#: What is older is no longer worth reading: a one-time code, a question long forgotten.
GIVE_UP_AFTER = timedelta(hours=24)

_AT_ONCE = 20
#: How long those under way may take to end once the process is told to stop.
_FAREWELL_SECONDS = 5.0

_log = structlog.get_logger()


class Sender:
    """Works in the background. Any number may run, in any number of processes.

    `keep`: what was sent can still be read in the outbox. Never so in production.
    """

    def __init__(
        self, database: Database, vault: Vault, graph: Graph | None, clock: Clock, *, keep: bool
    ) -> None:
        self._database = database
        self._vault = vault
        self._graph = graph
        self._clock = clock
        self._keep = keep
        self._wake = asyncio.Event()
        self._under_way: set[asyncio.Task[None]] = set()
        self._stopping = False

    def wake(self) -> None:
        """Something was put into the outbox: do not wait for the next round."""
        self._wake.set()

    async def run(self) -> NoReturn:
        """Sends until it is cancelled. Without a provider everything stays in the outbox."""
        if self._graph is None:
            _log.warning("outbox.not_sent", missing="graph")
            await asyncio.get_running_loop().create_future()
        try:
            await run_periodically(
                self.start_due, every=TICK_SECONDS, name="outbox.sender", wake=self._wake
            )
        finally:
            await self._farewell()

    async def start_due(self) -> int:
        """Begins to send what is due, as far as there is room; how many there were."""
        room = _AT_ONCE - len(self._under_way)
        if self._graph is None or room <= 0:
            return 0
        claimed = await claims.claim(self._database, now=self._clock(), limit=room)
        for claim in claimed:
            task = asyncio.create_task(self._handle_all(self._graph, claim))
            self._under_way.add(task)
            task.add_done_callback(self._done)
        return len(claimed)

    async def send_due(self) -> None:
        """Everything that is due, and whatever is due after it, to the end."""
        while await self.start_due() or self._under_way:
            await asyncio.wait(set(self._under_way))

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._wake.set()  # there is room again
        if not task.cancelled() and (error := task.exception()) is not None:
            # PostgreSQL went away: the claim runs out and the message is sent once more.
            _log.warning("outbox.not_marked", error=type(error).__name__)

    async def _farewell(self) -> None:
        self._stopping = True
        if self._under_way:
            _, late = await asyncio.wait(self._under_way, timeout=_FAREWELL_SECONDS)
            for task in late:
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*late, return_exceptions=True)

    async def _handle_all(self, graph: Graph, claim: Claim) -> None:
        """And whatever is next for the same person: to look for it among everybody's takes long
        when much is waiting."""
        claimed = [claim]
        while claimed:
            await self._handle(graph, claimed[0])
            claimed = [] if self._stopping else await self._next(claim.address)

    async def _next(self, address: str) -> list[Claim]:
        return await claims.claim(self._database, now=self._clock(), limit=1, address=address)

    async def _handle(self, graph: Graph, claim: Claim) -> None:
        if claim.created_at + GIVE_UP_AFTER <= self._clock():
            await self._refuse(claim, claim.problem or "too old")
            return
        try:
            parts = self._parts(claim)
        except RenderError:
            await self._refuse(claim, "cannot be shown")
            return
        except UnreadableError:
            # Perhaps the wrong secret key, which the operator can put right.
            await self._put_off(claim, "unreadable")
            return
        await self._send(graph, claim, parts)

    def _parts(self, claim: Claim) -> list[Payload]:
        if claim.content is None:
            raise UnreadableError("gone")
        return payloads(opened(self._vault, claim.id, claim.content), claim.address)

    async def _send(self, graph: Graph, claim: Claim, parts: list[Payload]) -> None:
        taken = claim.taken
        try:
            for part in parts[len(taken) :]:
                taken.append(await graph.send(part) or "-")
                if len(taken) < len(parts):
                    await claims.hold(self._database, claim, taken, self._clock())
        except GraphError as error:
            if error.retry:
                await self._put_off(claim, error.code)
            else:
                await self._refuse(claim, error.code)
        else:
            await claims.sent(self._database, claim, taken, self._clock(), keep=self._keep)

    async def _put_off(self, claim: Claim, problem: str) -> None:
        _log.info("outbox.put_off", problem=problem, attempts=claim.attempts, **_named(claim))
        await claims.put_off(self._database, claim, problem, self._clock())

    async def _refuse(self, claim: Claim, problem: str) -> None:
        _log.warning("outbox.refused", problem=problem, **_named(claim))
        await claims.refused(self._database, claim, problem, self._clock(), keep=self._keep)


def _named(claim: Claim) -> dict[str, str]:
    return {"message_id": ids.encode(ids.MESSAGE, claim.id)}
