"""Growth run results from two installations, stored as JSON."""

from collections.abc import Callable, Sequence
from statistics import median

import msgspec

from bench.payments.results import Books, Machine, Phase

#: Goal for the payment cost on the grown installation, relative to the empty one.
MAX_COST_RATIO = 1.1


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    accounts: int
    entries: int
    cards: int
    processors: int
    workers: int
    seconds: float
    rounds: int


class FillSummary(msgspec.Struct, frozen=True, kw_only=True):
    """History written to the grown installation before the measurement."""

    people: int  # additional subscribers
    payments: int
    entries: int
    seconds: float
    longest_history: int  # entries in the history that is read
    seconds_per_million_entries: float


class PaymentsPhase(msgspec.Struct, frozen=True, kw_only=True):
    phase: Phase
    wal_bytes: float  # per payment


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements of one installation."""

    accounts: int
    entries: int
    database_mb: float
    payments: list[PaymentsPhase]
    reads: list[Phase]
    lines: dict[str, int]  # lines in the response, by kind of read
    verify_seconds: float
    books: Books


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """Ratio of grown to empty, for the median and for the best round of each installation."""

    connections: int
    cost: float  # CPU time per payment, Python and PostgreSQL combined
    cost_of_best: float
    throughput: float
    throughput_of_best: float


class Results(msgspec.Struct, frozen=True, kw_only=True):
    taken_on: str
    version: str
    machine: Machine
    sizes: Sizes
    filled: FillSummary
    ratios: list[Ratio]
    empty: Measurement
    grown: Measurement


Metric = Callable[[PaymentsPhase], float]


def get_cost(phase: PaymentsPhase) -> float:
    return phase.phase.cpu.workers + phase.phase.cpu.postgres


def get_throughput(phase: PaymentsPhase) -> float:
    return phase.phase.per_second


def select_phases(measurement: Measurement, connections: int) -> list[PaymentsPhase]:
    return [phase for phase in measurement.payments if phase.phase.connections == connections]


def compute_median(metric: Metric, phases: Sequence[PaymentsPhase]) -> float:
    return median(map(metric, phases))


def get_best_phase(phases: Sequence[PaymentsPhase]) -> PaymentsPhase:
    """Return the phase with the highest throughput, presumably the least disturbed one."""
    return max(phases, key=get_throughput)


def compute_ratios(empty: Measurement, grown: Measurement) -> list[Ratio]:
    connection_counts = sorted({phase.phase.connections for phase in empty.payments})
    return [
        _compute_ratio(count, select_phases(empty, count), select_phases(grown, count))
        for count in connection_counts
    ]


def _compute_ratio(
    connections: int, empty: Sequence[PaymentsPhase], grown: Sequence[PaymentsPhase]
) -> Ratio:
    return Ratio(
        connections=connections,
        cost=round(compute_median(get_cost, grown) / compute_median(get_cost, empty), 2),
        cost_of_best=round(get_cost(get_best_phase(grown)) / get_cost(get_best_phase(empty)), 2),
        throughput=round(
            compute_median(get_throughput, grown) / compute_median(get_throughput, empty), 2
        ),
        throughput_of_best=round(
            get_throughput(get_best_phase(grown)) / get_throughput(get_best_phase(empty)), 2
        ),
    )
