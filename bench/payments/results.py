"""Payments run results, stored as JSON and rendered as tables and charts."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    processor: str
    cores: int
    memory_gb: float
    disk: str
    flush_us: float  # median time to flush one small write to disk
    system: str
    postgres: str
    python: str
    load_before: float  # load average at the start of the run


class RoundMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Resident memory after a round, and the number of responses since the warm-up."""

    requests: int
    workers_mb: list[float]


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Resident memory. Memory shared by PostgreSQL processes counts once where supported."""

    workers_before_mb: list[float]  # after the warm-up
    rounds: list[RoundMemory] = []
    workers_mb: list[float]
    requests: int  # number of responses between the two measurements
    postgres_mb: float


class Cpu(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time per response in microseconds, except `busiest_worker`."""

    workers: float
    postgres: float
    load_client: float
    busiest_worker: float  # its fraction of all workers' CPU time


class Batches(msgspec.Struct, frozen=True, kw_only=True):
    """Batches in a phase, and their sizes in transactions."""

    count: int
    mean: float
    median: int
    largest: int


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    round: int
    connections: int
    seconds: float
    per_second: float
    p50_ms: float
    p99_ms: float
    answered: int
    replayed: int
    declined: dict[str, int]  # by HTTP status
    cpu: Cpu
    batches: Batches | None = None


class Overload(msgspec.Struct, frozen=True, kw_only=True):
    """Phase with more clients than the gateway serves, each retrying immediately after a 503."""

    phase: Phase  # latencies cover accepted requests only
    ratio: float  # accepted per second, relative to the best phase with `compared_at` connections
    compared_at: int
    refused: int  # all 503 responses, including those to retries
    first_refused: int  # requests whose first attempt got a 503
    first_p50_ms: float
    first_p99_ms: float


class TpcB(msgspec.Struct, frozen=True, kw_only=True):
    round: int
    clients: int
    per_second: float
    mean_ms: float
    postgres_us: float


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """Best payments phase throughput, relative to the best TPC-B phase."""

    payments_per_second: float
    connections: int
    tpcb_per_second: float
    clients: int
    ratio: float
    by_round: list[float]  # ratio within each round, which shows how steady the machine was


class Books(msgspec.Struct, frozen=True, kw_only=True):
    hold: bool
    claims: int
    transactions: int
    entries: int
    approved: int  # responses with status 200 that are not replays
    completed: int  # completed payments and transfers in the ledger


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    seconds: float
    rounds: int
    cards: int
    processors: int
    workers: int
    scale: int
    overload: int  # connections


class Results(msgspec.Struct, frozen=True, kw_only=True):
    taken_on: str
    version: str
    machine: Machine
    sizes: Sizes
    ratio: Ratio
    payments: list[Phase]
    tpcb: list[TpcB]
    others: list[Phase]
    overload: Overload
    memory: Memory
    books: Books


MeasurementT = TypeVar("MeasurementT", Phase, TpcB)


def _get_best(measurements: Iterable[MeasurementT]) -> MeasurementT:
    return max(measurements, key=lambda phase: phase.per_second)


def get_best_phase(phases: Iterable[Phase], connections: int) -> Phase:
    return _get_best(phase for phase in phases if phase.connections == connections)


def get_best_tpcb_run(runs: Iterable[TpcB], clients: int) -> TpcB:
    return _get_best(run for run in runs if run.clients == clients)


def compute_ratio(payments: Sequence[Phase], tpcb: Sequence[TpcB]) -> Ratio:
    best_phase, best_run = _get_best(payments), _get_best(tpcb)
    rounds = sorted({phase.round for phase in payments})
    return Ratio(
        payments_per_second=best_phase.per_second,
        connections=best_phase.connections,
        tpcb_per_second=best_run.per_second,
        clients=best_run.clients,
        ratio=round(best_phase.per_second / best_run.per_second, 2),
        by_round=[
            round(
                _get_best([phase for phase in payments if phase.round == number]).per_second
                / _get_best([run for run in tpcb if run.round == number]).per_second,
                2,
            )
            for number in rounds
        ],
    )


def compute_latency_ratios(payments: Sequence[Phase], tpcb: Sequence[TpcB]) -> list[float]:
    """Return the mean payment latency divided by the mean TPC-B latency in each round.

    With one connection, the mean latency is the inverse of the rate.
    """
    singles = {run.round: run.per_second for run in tpcb if run.clients == 1}
    return [
        round(singles[phase.round] / phase.per_second, 2)
        for phase in payments
        if phase.connections == 1 and phase.round in singles
    ]


def compute_memory_growth(memory: Memory) -> float:
    """Return the memory growth of all workers together, in megabytes per 10,000 requests."""
    growth = sum(memory.workers_mb) - sum(memory.workers_before_mb)
    return growth / memory.requests * 10_000
