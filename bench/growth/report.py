"""What a run found, for people: the table, and its section of the page in the docs.

    python -m bench.growth.report

writes the section again from the results that are kept.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from bench.growth import reads
from bench.growth.results import (
    GOAL,
    Figure,
    Measured,
    Results,
    at,
    best,
    cost,
    per_second,
    typical,
)
from bench.payments.page import encoded, filled_in, put
from bench.payments.report import PAGE, Row, table
from bench.payments.results import Phase

RESULTS: Final = Path("bench/results/growth.json")
BEGIN: Final = "<!-- growth: written by `make bench-growth` -->\n"
END: Final = "<!-- end of growth -->\n"

_HEAD: Final = ("", "Empty", "Grown", "Ratio")
_READS: Final = {
    reads.FIRST_PAGE: "first page of a history",
    reads.MIDDLE_PAGE: "page in its middle",
    reads.TODAY: "statement of today",
    reads.HALF_A_YEAR_AGO: "statement of a month, half a year ago",
    reads.BALANCE: "balance",
}
#: Where the two do not read the same number of lines, a ratio would say nothing.
_NOT_ALIKE: Final = (reads.HALF_A_YEAR_AGO,)


def text(results: Results) -> str:
    rows = [_HEAD, *_sizes(results)]
    for ratio in results.ratios:
        rows += _payments(results, ratio.connections)
    rows += _read(results)
    rows += _verify(results)
    return "\n\n".join([table(rows), *_sentences(results)])


def _sizes(results: Results) -> list[Row]:
    empty, grown = results.empty, results.grown
    return [
        _row("accounts", empty.accounts, grown.accounts, ratio=False),
        _row("entries", empty.entries, grown.entries, ratio=False),
        _row("database, MB", empty.database_mb, grown.database_mb, ratio=False),
    ]


def _payments(results: Results, connections: int) -> list[Row]:
    figures: list[tuple[str, Figure]] = [
        ("payments/s", per_second),
        ("CPU µs per payment", cost),
        ("of Python", lambda one: one.phase.cpu.workers),
        ("of PostgreSQL", lambda one: one.phase.cpu.postgres),
        ("WAL bytes per payment", lambda one: one.wal_bytes),
    ]
    empty, grown = at(results.empty, connections), at(results.grown, connections)
    rows = [
        _row(f"{name} at {connections}", typical(figure, empty), typical(figure, grown))
        for name, figure in figures
    ]
    for place, (name, figure) in ((1, figures[0]), (3, figures[1])):
        of_best = (figure(best(empty)), figure(best(grown)))
        rows.insert(place, _row(f"{name} at {connections}, best round", *of_best))
    return rows


def _read(results: Results) -> list[Row]:
    rows = []
    for kind, name in _READS.items():
        empty, grown = _of(results.empty, kind), _of(results.grown, kind)
        alike = kind not in _NOT_ALIKE
        costs = [
            median(one.cpu.workers + one.cpu.postgres for one in side) for side in (empty, grown)
        ]
        rows.append(_row(f"CPU µs: {name}", *costs, ratio=alike))
        waits = [median(one.p50_ms for one in side) for side in (empty, grown)]
        rows.append(_row(f"p50 ms: {name}", *waits, ratio=alike, decimals=1))
    return rows


def _of(measured: Measured, kind: str) -> list[Phase]:
    return [phase for phase in measured.reads if phase.kind == kind]


def _verify(results: Results) -> list[Row]:
    empty, grown = results.empty, results.grown
    each = [1e6 * side.verify_seconds / side.entries for side in (empty, grown)]
    return [
        _row("verify, s", empty.verify_seconds, grown.verify_seconds, ratio=False, decimals=1),
        _row("verify, µs per entry", *each, decimals=1),
    ]


def _row(name: str, empty: float, grown: float, *, ratio: bool = True, decimals: int = 0) -> Row:
    shown = f"{grown / empty:.2f}" if ratio and empty else ""
    return name, f"{empty:,.{decimals}f}", f"{grown:,.{decimals}f}", shown


def _sentences(results: Results) -> list[str]:
    filled, sizes = results.filled, results.sizes
    machine = results.machine
    costs = " and ".join(f"{one.cost:.2f} at {one.connections}" for one in results.ratios)
    of_best = " and ".join(f"{one.cost_of_best:.2f}" for one in results.ratios)
    throughput = " and ".join(f"{one.throughput:.2f}" for one in results.ratios)
    return [
        f"**Cost ratio: {costs} connections.** Processor time of Python and PostgreSQL per payment,"
        f" grown over empty, the median of {sizes.rounds} rounds; of the best rounds {of_best}."
        f" The goal is at most {GOAL}. Throughput: {throughput} of the empty one's.",
        f"The past: {filled.people:,} more subscribers and {filled.payments:,} payments,"
        f" {filled.entries:,} entries, written in {filled.seconds:,.0f} s"
        f" ({filled.seconds_per_million_entries:.0f} s per million). Of whose history is read has"
        f" {filled.longest_history:,} entries among them; the statement of a month has"
        f" {results.grown.lines[reads.HALF_A_YEAR_AGO]:,} lines, and on the empty one"
        f" {results.empty.lines[reads.HALF_A_YEAR_AGO]:,}.",
        *(
            _books(name, side)
            for name, side in (("empty", results.empty), ("grown", results.grown))
        ),
        f"{machine.processor}, {machine.cores} cores, {machine.memory_gb:.0f} GB;"
        f" {machine.disk}, {machine.flush_us:,.0f} µs to make 8 KiB durable; {machine.system};"
        f" PostgreSQL {machine.postgres}, Python {machine.python}, Tapgate {results.version} with"
        f" {sizes.workers} workers; {sizes.cards:,} cards pay at {sizes.processors} processors;"
        f" phases of {sizes.seconds:g} s. Taken on {results.taken_on}.",
    ]


def _books(name: str, side: Measured) -> str:
    books = side.books
    declined = sum(sum(one.phase.declined.values()) for one in side.payments)
    return (
        f"Books of the {name} one: {books.claims} claims"
        f" {'hold' if books.hold else 'DO NOT HOLD'} over {books.transactions:,} transactions and"
        f" {books.entries:,} entries; {books.approved:,} payments are to be in the books,"
        f" {books.completed:,} are. Declined: {declined:,}."
    )


def page(before: str, results: Results) -> str:
    return filled_in(before, BEGIN, END, f"\n{text(results)}\n\n")


def write(results: Results, root: Path) -> list[Path]:
    """The results as JSON and, where there is one, the page."""
    written = {RESULTS: encoded(results)}
    if (root / PAGE).exists():
        written[PAGE] = page((root / PAGE).read_text(), results).encode()
    return put(root, written)


def kept(root: Path) -> Results:
    return msgspec.json.decode((root / RESULTS).read_bytes(), type=Results)


def main(arguments: Sequence[str]) -> None:
    root = Path(arguments[0]) if arguments else Path(__file__).parents[2]
    for path in write(kept(root), root):
        print(f"Wrote {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
