"""What one run found out about two installations: kept as JSON, shown as a table."""

from collections.abc import Callable, Sequence
from statistics import median

import msgspec

from bench.payments.results import Books, Machine, Phase

#: At most this much more may a payment cost among much data than among almost none.
GOAL = 1.25


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    accounts: int
    entries: int
    cards: int
    processors: int
    workers: int
    seconds: float
    rounds: int


class Filled(msgspec.Struct, frozen=True, kw_only=True):
    """The past that was written into one of the two before it was measured."""

    people: int  # who were not there before
    payments: int
    entries: int
    seconds: float
    longest_history: int  # entries of the one whose history is read
    seconds_per_million_entries: float


class Payments(msgspec.Struct, frozen=True, kw_only=True):
    phase: Phase
    wal_bytes: float  # written ahead per payment


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two installations."""

    accounts: int
    entries: int
    database_mb: float
    payments: list[Payments]
    reads: list[Phase]
    lines: dict[str, int]  # how many each read shows
    verify_seconds: float
    books: Books


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """Grown over empty: of the median of the rounds, and of each side's best round."""

    connections: int
    cost: float  # processor time of a payment, Python and PostgreSQL together
    cost_of_best: float
    throughput: float
    throughput_of_best: float


class Results(msgspec.Struct, frozen=True, kw_only=True):
    taken_on: str
    version: str
    machine: Machine
    sizes: Sizes
    filled: Filled
    ratios: list[Ratio]
    empty: Measured
    grown: Measured


Figure = Callable[[Payments], float]


def cost(one: Payments) -> float:
    return one.phase.cpu.workers + one.phase.cpu.postgres


def per_second(one: Payments) -> float:
    return one.phase.per_second


def at(measured: Measured, connections: int) -> list[Payments]:
    return [one for one in measured.payments if one.phase.connections == connections]


def typical(figure: Figure, some: Sequence[Payments]) -> float:
    return median(map(figure, some))


def best(some: Sequence[Payments]) -> Payments:
    """Of the round that was disturbed least: the one with the most payments."""
    return max(some, key=per_second)


def ratios(empty: Measured, grown: Measured) -> list[Ratio]:
    every = sorted({one.phase.connections for one in empty.payments})
    return [_ratio(count, at(empty, count), at(grown, count)) for count in every]


def _ratio(connections: int, empty: Sequence[Payments], grown: Sequence[Payments]) -> Ratio:
    return Ratio(
        connections=connections,
        cost=round(typical(cost, grown) / typical(cost, empty), 2),
        cost_of_best=round(cost(best(grown)) / cost(best(empty)), 2),
        throughput=round(typical(per_second, grown) / typical(per_second, empty), 2),
        throughput_of_best=round(per_second(best(grown)) / per_second(best(empty)), 2),
    )
