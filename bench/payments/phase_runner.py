"""Runner that executes benchmark phases against an installation and counts their results."""

import asyncio
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import asyncpg
import msgspec

from bench.payments import books, requests
from bench.payments.dataset import Card, Dataset
from bench.payments.installation import Installation
from bench.payments.load_client import GO, READY, LoadPlan, LoadResult
from bench.payments.results import Cpu, Overload, Phase
from tapgate_client.clock import system_clock

#: Maximum payments per subscriber and hour that raise no compliance alert.
PAYMENTS_PER_CARD = 10
_ROOT = Path(__file__).parents[2]
#: Requests prepared per second in a phase, which limits the throughput that can be measured.
#: Phases with repeated requests prepare twice as many.
_MAX_REQUESTS_PER_SECOND = 8_000

#: More than enough for every connection to get its first response. A short phase has less.
_WARM_UP_SECONDS = 1.0
_UNAVAILABLE_STATUS = "503"
_MAX_DRAIN_SECONDS = 60.0
_HAS_DELIVERIES = """
    SELECT EXISTS (SELECT FROM notices)
        OR EXISTS (SELECT FROM messages WHERE status = 'pending')
        OR EXISTS (SELECT FROM deliveries JOIN events ON events.id = event_id
                   WHERE status = 'pending' AND type = 'transaction.completed')"""

#: Builds a phase's requests from the cards whose turn it is.
RequestBuilder = Callable[[list[Card]], list[bytes]]


class PhaseRunner:
    def __init__(
        self, installation: Installation, dataset: Dataset, connection: asyncpg.Connection
    ) -> None:
        self._installation = installation
        self._dataset = dataset
        self._connection = connection
        self._next_turn = 0
        self.phases_left = 1
        self.answered = 0
        self.approved = 0
        self.last_requests: list[bytes] = []

    async def run(
        self, kind: str, build: RequestBuilder, *, round_: int, connections: int, seconds: float
    ) -> Phase:
        """Run a phase in which the cards take turns to pay, one request per turn."""
        built_requests = self._build_requests(build, seconds, phases=self.phases_left)
        plan = LoadPlan(self._installation.port, connections, seconds, built_requests)
        phase, result = await self._measure(kind, round_, plan)
        self._count_results(result)
        self.last_requests = plan.requests[: result.sent]
        return phase

    async def run_overload(
        self,
        build: RequestBuilder,
        *,
        round_: int,
        connections: int,
        seconds: float,
        baseline: Phase,
    ) -> Overload:
        """Run a phase with more connections than the gateway serves at the same time.

        Rejected requests are retried immediately. `baseline` is a phase without overload.
        """
        lead_in = min(_WARM_UP_SECONDS, seconds)
        built_requests = self._build_requests(build, lead_in + seconds, phases=2)
        plan = LoadPlan(
            self._installation.port,
            min(connections, len(built_requests) // 2),
            seconds,
            built_requests,
            lead_in=lead_in,
            insists=True,
        )
        phase, result = await self._measure("overload", round_, plan)
        self._count_results(result)
        first = _compute_percentiles(result.first_refusals)
        return Overload(
            phase=phase,
            ratio=round(phase.per_second / baseline.per_second, 2),
            compared_at=baseline.connections,
            refused=result.statuses.get(_UNAVAILABLE_STATUS, 0),
            first_refused=len(array("d", result.first_refusals)),
            first_p50_ms=first["p50_ms"],
            first_p99_ms=first["p99_ms"],
        )

    async def run_repeated(
        self, kind: str, repeated: list[bytes], *, round_: int, connections: int, seconds: float
    ) -> Phase:
        """Run a phase that repeats the same requests, which move no money."""
        count = int(seconds * 2 * _MAX_REQUESTS_PER_SECOND)
        built_requests = (repeated * (count // len(repeated) + 1))[:count]
        plan = LoadPlan(self._installation.port, connections, seconds, built_requests)
        phase, _ = await self._measure(kind, round_, plan)
        return phase

    async def wait_for_deliveries(self) -> None:
        """Wait until all receipts and events have been sent, and clean up after them."""
        deadline = time.monotonic() + _MAX_DRAIN_SECONDS
        while await self._connection.fetchval(_HAS_DELIVERIES):
            if time.monotonic() > deadline:
                raise TimeoutError("receipts or events have not been sent")
            await asyncio.sleep(0.1)
        # Otherwise autovacuum may clean these tables during a later phase.
        await self._connection.execute("VACUUM (ANALYZE) notices, messages, events, deliveries")

    def _build_requests(self, build: RequestBuilder, seconds: float, *, phases: int) -> list[bytes]:
        cards = list(islice(self._iter_turns(), self._get_request_count(seconds, phases)))
        self.phases_left = max(1, self.phases_left - 1)
        return build(cards)

    def _count_results(self, result: LoadResult) -> None:
        self._next_turn += result.sent
        self.approved += result.statuses.get("200", 0) - result.replayed

    def _iter_turns(self) -> Iterator[Card]:
        cards, number = self._dataset.cards, self._next_turn
        while number < len(cards) * PAYMENTS_PER_CARD:
            yield cards[number % len(cards)]
            number += 1

    def _get_request_count(self, seconds: float, phases: int) -> int:
        """Return the number of requests of a phase, if the remaining turns must last for `phases`.

        A fast machine may complete these requests before the phase's time is over. The phase then
        ends early.
        """
        remaining = len(self._dataset.cards) * PAYMENTS_PER_CARD - self._next_turn
        return min(int(seconds * _MAX_REQUESTS_PER_SECOND), remaining // phases)

    async def _measure(self, kind: str, round_: int, plan: LoadPlan) -> tuple[Phase, LoadResult]:
        client = await _LoadClient.start(plan)
        began = system_clock()
        workers_before, postgres_before = self._get_cpu_seconds()
        result = await client.run()
        workers_after, postgres_after = self._get_cpu_seconds()
        workers = [
            after - before for after, before in zip(workers_after, workers_before, strict=True)
        ]
        answered = sum(result.statuses.values())
        self.answered += answered
        return Phase(
            kind=kind,
            round=round_,
            connections=plan.connections,
            seconds=round(result.seconds, 3),
            per_second=round(result.in_time / result.seconds, 1),
            **_compute_percentiles(result.latencies),
            answered=answered,
            replayed=result.replayed,
            declined={status: n for status, n in result.statuses.items() if status != "200"},
            cpu=Cpu(
                workers=_to_microseconds_each(sum(workers), answered),
                postgres=_to_microseconds_each(postgres_after - postgres_before, answered),
                load_client=_to_microseconds_each(result.cpu_seconds, answered),
                busiest_worker=round(max(workers) / (sum(workers) or 1.0), 2),
            ),
            batches=await books.get_batches_since(self._connection, began),
        ), result

    def _get_cpu_seconds(self) -> tuple[list[float], float]:
        return self._installation.get_worker_seconds(), self._installation.get_postgres_seconds()


class _LoadClient:
    """Load client process that is connected and waits for the start signal."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, plan: LoadPlan) -> "_LoadClient":
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.payments.load_client"),
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

    async def run(self) -> LoadResult:
        text, _ = await self._process.communicate(GO)
        if self._process.returncode != 0:
            raise RuntimeError("the load client failed")
        result = msgspec.msgpack.decode(text, type=LoadResult)
        for status, body in result.refusals.items():
            print(f"  {status}: {body.decode(errors='replace')}", file=sys.stderr)
        return result


def _to_microseconds_each(seconds: float, answered: int) -> float:
    return round(seconds / answered * 1e6, 1)


def _compute_percentiles(latencies: bytes) -> dict[str, float]:
    ordered = sorted(array("d", latencies)) or [0.0]
    last = len(ordered) - 1
    return {
        f"p{percent}_ms": round(ordered[min(last, len(ordered) * percent // 100)] * 1000, 2)
        for percent in (50, 99)
    }


def create_payment_builder(dataset: Dataset, *, with_pin: bool = True) -> RequestBuilder:
    """Return a payment builder, distributed evenly over the processors' terminals."""

    def build(cards: list[Card]) -> list[bytes]:
        timestamp, keys = requests.get_timestamp(), dataset.terminals
        return [
            requests.build_payment(card, keys[number % len(keys)], timestamp, with_pin=with_pin)
            for number, card in enumerate(cards)
        ]

    return build


def create_transfer_builder(dataset: Dataset) -> RequestBuilder:
    """Return a transfer builder, each to the card that is half a round of turns away."""
    half = len(dataset.cards) // 2
    receivers = dict(
        zip(dataset.cards, [*dataset.cards[half:], *dataset.cards[:half]], strict=True)
    )

    def build(cards: list[Card]) -> list[bytes]:
        return [requests.build_transfer(card, receivers[card], dataset.api_key) for card in cards]

    return build
