"""Growth run report: a table, and a section for the documentation page.

    python -m bench.growth.report

rewrites the section from the stored results.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from bench.growth import reads
from bench.growth.results import (
    MAX_COST_RATIO,
    Measurement,
    Metric,
    Results,
    compute_median,
    get_best_phase,
    get_cost,
    get_throughput,
    select_phases,
)
from bench.payments.output import encode_results, replace_section, write_files
from bench.payments.report import Row, render_table
from bench.payments.results import Phase

RESULTS_FILE: Final = Path("bench/results/growth.json")
PAGE_FILE: Final = Path("docs/benchmark-details.md")
BEGIN_MARK: Final = "<!-- growth: written by `make bench-growth` -->\n"
END_MARK: Final = "<!-- end of growth -->\n"

_HEADER: Final = ("", "Empty", "Grown", "Ratio")
_READ_LABELS: Final = {
    reads.FIRST_PAGE: "first page of transactions",
    reads.MIDDLE_PAGE: "middle page of transactions",
    reads.TODAY: "statement for today",
    reads.PAST_MONTH: "statement for a month, half a year ago",
    reads.BALANCE: "balance",
}
#: The installations return different numbers of lines, so a ratio would be meaningless.
_KINDS_WITHOUT_RATIO: Final = (reads.PAST_MONTH,)


def render_text(results: Results) -> str:
    rows = [_HEADER, *_build_size_rows(results)]
    for ratio in results.ratios:
        rows += _build_payment_rows(results, ratio.connections)
    rows += _build_read_rows(results)
    rows += _build_verify_rows(results)
    return "\n\n".join([render_table(rows), *_render_sentences(results)])


def _build_size_rows(results: Results) -> list[Row]:
    empty, grown = results.empty, results.grown
    return [
        _build_row("accounts", empty.accounts, grown.accounts, ratio=False),
        _build_row("entries", empty.entries, grown.entries, ratio=False),
        _build_row("database, MB", empty.database_mb, grown.database_mb, ratio=False),
    ]


def _build_payment_rows(results: Results, connections: int) -> list[Row]:
    metrics: list[tuple[str, Metric]] = [
        ("payments/s", get_throughput),
        ("CPU µs per payment", get_cost),
        ("CPU µs of Python", lambda phase: phase.phase.cpu.workers),
        ("CPU µs of PostgreSQL", lambda phase: phase.phase.cpu.postgres),
        ("WAL bytes per payment", lambda phase: phase.wal_bytes),
    ]
    empty, grown = (
        select_phases(results.empty, connections),
        select_phases(results.grown, connections),
    )
    rows = [
        _build_row(
            f"{name} at {connections}", compute_median(metric, empty), compute_median(metric, grown)
        )
        for name, metric in metrics
    ]
    for index, (name, metric) in ((1, metrics[0]), (3, metrics[1])):
        best_values = (metric(get_best_phase(empty)), metric(get_best_phase(grown)))
        rows.insert(index, _build_row(f"{name} at {connections}, best round", *best_values))
    return rows


def _build_read_rows(results: Results) -> list[Row]:
    rows = []
    for kind, name in _READ_LABELS.items():
        empty, grown = _select_reads(results.empty, kind), _select_reads(results.grown, kind)
        is_comparable = kind not in _KINDS_WITHOUT_RATIO
        costs = [
            median(phase.cpu.workers + phase.cpu.postgres for phase in measurement)
            for measurement in (empty, grown)
        ]
        rows.append(_build_row(f"CPU µs: {name}", *costs, ratio=is_comparable))
        latencies = [
            median(phase.p50_ms for phase in measurement) for measurement in (empty, grown)
        ]
        rows.append(_build_row(f"p50 ms: {name}", *latencies, ratio=is_comparable, decimals=1))
    return rows


def _select_reads(measurement: Measurement, kind: str) -> list[Phase]:
    return [phase for phase in measurement.reads if phase.kind == kind]


def _build_verify_rows(results: Results) -> list[Row]:
    empty, grown = results.empty, results.grown
    microseconds_per_entry = [
        1e6 * measurement.verify_seconds / measurement.entries for measurement in (empty, grown)
    ]
    return [
        _build_row(
            "verify, s", empty.verify_seconds, grown.verify_seconds, ratio=False, decimals=1
        ),
        _build_row("verify, µs per entry", *microseconds_per_entry, decimals=1),
    ]


def _build_row(
    name: str, empty: float, grown: float, *, ratio: bool = True, decimals: int = 0
) -> Row:
    ratio_text = f"{grown / empty:.2f}" if ratio and empty else ""
    return name, f"{empty:,.{decimals}f}", f"{grown:,.{decimals}f}", ratio_text


def _render_sentences(results: Results) -> list[str]:
    filled, sizes = results.filled, results.sizes
    machine = results.machine
    costs = " and ".join(f"{ratio.cost:.2f} at {ratio.connections}" for ratio in results.ratios)
    best_values = " and ".join(f"{ratio.cost_of_best:.2f}" for ratio in results.ratios)
    throughput = " and ".join(f"{ratio.throughput:.2f}" for ratio in results.ratios)
    return [
        f"**Cost ratio: {costs} connections.** CPU time of Python and PostgreSQL per payment, grown"
        f" over empty, median of {sizes.rounds} rounds ({best_values} for the best rounds)."
        f" The goal is at most {MAX_COST_RATIO}. Throughput ratio: {throughput}.",
        f"History: {filled.people:,} more subscribers and {filled.payments:,} payments,"
        f" {filled.entries:,} entries, written in {filled.seconds:,.0f} s"
        f" ({filled.seconds_per_million_entries:.0f} s per million entries). The subscriber whose"
        f" transactions are read has {filled.longest_history:,} of these entries. The statement for"
        f" a month has {results.grown.lines[reads.PAST_MONTH]:,} lines on the grown installation"
        f" and {results.empty.lines[reads.PAST_MONTH]:,} on the empty one.",
        *(
            _render_books(name, measurement)
            for name, measurement in (("empty", results.empty), ("grown", results.grown))
        ),
        f"{machine.processor}, {machine.cores} cores, {machine.memory_gb:.0f} GB;"
        f" {machine.disk}, {machine.flush_us:,.0f} µs to flush 8 KiB; {machine.system};"
        f" PostgreSQL {machine.postgres}, Python {machine.python}, Tapgate {results.version} with"
        f" {sizes.workers} workers; {sizes.cards:,} cards pay at {sizes.processors} processors;"
        f" phases of {sizes.seconds:g} s. Date: {results.taken_on}.",
    ]


def _render_books(name: str, measurement: Measurement) -> str:
    books = measurement.books
    declined = sum(sum(phase.phase.declined.values()) for phase in measurement.payments)
    return (
        f"Ledger of the {name} installation: {books.claims} checks"
        f" {'passed' if books.hold else 'FAILED'} for {books.transactions:,} transactions and"
        f" {books.entries:,} entries. {books.approved:,} payments are expected in the ledger, and"
        f" {books.completed:,} are there. Declined: {declined:,}."
    )


def render_page(page: str, results: Results) -> str:
    return replace_section(page, BEGIN_MARK, END_MARK, f"\n{render_text(results)}\n\n")


def write_report(results: Results, root: Path) -> list[Path]:
    """Write the results as JSON and, if the documentation page exists, its growth section."""
    files = {RESULTS_FILE: encode_results(results)}
    if (root / PAGE_FILE).exists():
        files[PAGE_FILE] = render_page((root / PAGE_FILE).read_text(), results).encode()
    return write_files(root, files)


def load_results(root: Path) -> Results:
    return msgspec.json.decode((root / RESULTS_FILE).read_bytes(), type=Results)


def main(arguments: Sequence[str]) -> None:
    root = Path(arguments[0]) if arguments else Path(__file__).parents[2]
    for path in write_report(load_results(root), root):
        print(f"Wrote {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
