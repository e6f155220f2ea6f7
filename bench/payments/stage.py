"""Runs one phase after the other against an installation and keeps count of them."""

import asyncio
import sys
from array import array
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import asyncpg
import msgspec

from bench.payments import books, requests
from bench.payments.installation import Installation
from bench.payments.load import GO, READY, Plan, Tally
from bench.payments.results import Cpu, Overload, Phase
from bench.payments.world import Card, World
from tapgate.clock import system_clock

#: As many as the compliance rules let a subscriber make in an hour without an alert.
PAYMENTS_PER_CARD = 10
_ROOT = Path(__file__).parents[2]
#: Prepared for each second of a phase; never more are sent.
_MOST_PER_SECOND = 8_000

#: How long it takes until all of many connections have been answered or refused, and more.
_LEAD_IN_SECONDS = 1.0
_LATER = "503"

#: Makes the requests of a phase from the cards whose turn it is.
Build = Callable[[list[Card]], list[bytes]]


class Stage:
    def __init__(
        self, installation: Installation, world: World, connection: asyncpg.Connection
    ) -> None:
        self._installation = installation
        self._world = world
        self._connection = connection
        self._turn = 0
        self.phases_left = 1
        self.answered = 0
        self.approved = 0
        self.last_sent: list[bytes] = []

    async def run(
        self, kind: str, build: Build, *, round_: int, connections: int, seconds: float
    ) -> Phase:
        """One of which every request is a card's next turn to pay."""
        built = self._built(build, seconds, share=self.phases_left)
        plan = Plan(self._installation.port, connections, seconds, built)
        phase, tally = await self._measured(kind, round_, plan)
        self._carried(tally)
        self.last_sent = plan.requests[: tally.sent]
        return phase

    async def overload(
        self, build: Build, *, round_: int, connections: int, seconds: float, usual: Phase
    ) -> Overload:
        """One with more connections than are taken on; `usual` is what it is compared with."""
        built = self._built(build, _LEAD_IN_SECONDS + seconds, share=2)
        plan = Plan(
            self._installation.port,
            min(connections, len(built) // 2),
            seconds,
            built,
            lead_in=_LEAD_IN_SECONDS,
            insists=True,
        )
        phase, tally = await self._measured("overload", round_, plan)
        self._carried(tally)
        first = _percentiles(tally.first_refusals)
        return Overload(
            phase=phase,
            ratio=round(phase.per_second / usual.per_second, 2),
            compared_at=usual.connections,
            refused=tally.statuses.get(_LATER, 0),
            first_refused=len(array("d", tally.first_refusals)),
            first_p50_ms=first["p50_ms"],
            first_p99_ms=first["p99_ms"],
        )

    async def repeat(
        self, kind: str, some: list[bytes], *, round_: int, connections: int, seconds: float
    ) -> Phase:
        """One of requests that move nothing, the same ones again and again."""
        count = int(seconds * 2 * _MOST_PER_SECOND)
        built = (some * (count // len(some) + 1))[:count]
        plan = Plan(self._installation.port, connections, seconds, built)
        phase, _ = await self._measured(kind, round_, plan)
        return phase

    def _built(self, build: Build, seconds: float, *, share: int) -> list[bytes]:
        cards = list(islice(self._turns(), self._count(seconds, share)))
        self.phases_left = max(1, self.phases_left - 1)
        return build(cards)

    def _carried(self, tally: Tally) -> None:
        self._turn += tally.sent
        self.approved += tally.statuses.get("200", 0) - tally.replayed

    def _turns(self) -> Iterator[Card]:
        cards, number = self._world.cards, self._turn
        while number < len(cards) * PAYMENTS_PER_CARD:
            yield cards[number % len(cards)]
            number += 1

    def _count(self, seconds: float, share: int) -> int:
        """A fast machine runs out of turns before it runs out of time: then each phase is shorter
        by as much."""
        left = len(self._world.cards) * PAYMENTS_PER_CARD - self._turn
        return min(int(seconds * _MOST_PER_SECOND), left // share)

    async def _measured(self, kind: str, round_: int, plan: Plan) -> tuple[Phase, Tally]:
        client = await _Client.start(plan)
        began = system_clock()
        workers_before, postgres_before = self._cpu()
        tally = await client.go()
        workers_after, postgres_after = self._cpu()
        workers = [after - was for after, was in zip(workers_after, workers_before, strict=True)]
        answered = sum(tally.statuses.values())
        self.answered += answered
        return Phase(
            kind=kind,
            round=round_,
            connections=plan.connections,
            seconds=round(tally.seconds, 3),
            per_second=round(tally.in_time / tally.seconds, 1),
            **_percentiles(tally.latencies),
            answered=answered,
            replayed=tally.replayed,
            declined={status: n for status, n in tally.statuses.items() if status != "200"},
            cpu=Cpu(
                workers=_each(sum(workers), answered),
                postgres=_each(postgres_after - postgres_before, answered),
                load_client=_each(tally.cpu_seconds, answered),
                busiest_worker=round(max(workers) / (sum(workers) or 1.0), 2),
            ),
            batches=await books.batches_since(self._connection, began),
        ), tally

    def _cpu(self) -> tuple[list[float], float]:
        return self._installation.worker_seconds(), self._installation.postgres_seconds()


class _Client:
    """The load client, connected and waiting for the word."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, plan: Plan) -> "_Client":
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.payments.load"),
            cwd=_ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        encoded = msgspec.msgpack.encode(plan)
        process.stdin.write(len(encoded).to_bytes(8))
        process.stdin.write(encoded)
        await process.stdin.drain()
        if await process.stdout.readline() != READY:
            raise RuntimeError("the load client could not connect")
        return cls(process)

    async def go(self) -> Tally:
        said, _ = await self._process.communicate(GO)
        if self._process.returncode != 0:
            raise RuntimeError("the load client failed")
        tally = msgspec.msgpack.decode(said, type=Tally)
        for status, body in tally.refusals.items():
            print(f"  {status}: {body.decode(errors='replace')}", file=sys.stderr)
        return tally


def _each(seconds: float, answered: int) -> float:
    return round(seconds / answered * 1e6, 1)


def _percentiles(latencies: bytes) -> dict[str, float]:
    ordered = sorted(array("d", latencies)) or [0.0]
    last = len(ordered) - 1
    return {
        f"p{percent}_ms": round(ordered[min(last, len(ordered) * percent // 100)] * 1000, 2)
        for percent in (50, 99)
    }


def payments(world: World) -> Build:
    """Each card at the next processor's till."""

    def build(cards: list[Card]) -> list[bytes]:
        timestamp, tills = requests.now(), world.terminals
        return [
            requests.payment(card, tills[number % len(tills)], timestamp)
            for number, card in enumerate(cards)
        ]

    return build


def transfers(world: World) -> Build:
    """Each to the holder of a card that is not among those sending at the same time."""
    half = len(world.cards) // 2
    receivers = dict(zip(world.cards, [*world.cards[half:], *world.cards[:half]], strict=True))

    def build(cards: list[Card]) -> list[bytes]:
        return [requests.transfer(card, receivers[card], world.api_key) for card in cards]

    return build
