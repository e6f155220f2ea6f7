"""Payments run report: a table, and a section and a chart for the documentation page.

    python -m bench.payments.report

rewrites the section and the chart from the stored results.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median

import msgspec

from bench.payments import chart
from bench.payments.output import encode_results, replace_section, write_files
from bench.payments.results import (
    Memory,
    Overload,
    Phase,
    Results,
    compute_latency_ratios,
    compute_memory_growth,
    get_best_phase,
    get_best_tpcb_run,
)

RESULTS_FILE = Path("bench/results/latest.json")
PAGE_FILE = Path("docs/benchmarks.md")
CHART_FILE = Path("docs/benchmarks.svg")
BEGIN_MARK, END_MARK = "<!-- figures: written by `make bench` -->\n", "<!-- end of figures -->\n"

_KIND_LABELS = {
    "few_cards": "payments by as few cards as the next row",
    "proofs": "payments, each with a card's proof",
    "hot": "payments, all to one merchant",
    "webhooks": "payments, each with a webhook",
    "replays": "replays of payments",
    "transfers": "P2P transfers, each with a receipt",
    "balances": "balance reads by API key",
    "lists": "lists of 50 transactions",
    "statements": "statements of a month, 420 lines",
}
#: Workloads that are compared with another, both as they are named in a sentence.
_COMPARISONS = {
    "proofs": ("Payments with a card's proof", "few_cards", "payments by as many cards without"),
    "webhooks": ("Payments with a webhook", "payments", "payments"),
    "transfers": ("P2P transfers with a receipt", "payments", "payments"),
}
_HEADER = (
    "",
    "Connections",
    "Per second",
    "p50 ms",
    "p99 ms",
    "Batch",
    "CPU µs: Python",
    "PostgreSQL",
)

Row = Sequence[str]


def render_text(results: Results) -> str:
    """Render a run's results table, its explanations and the machine table."""
    return "\n\n".join(
        [
            render_table([_HEADER, *_build_rows(results)]),
            *_render_sentences(results),
            render_table(_build_machine_rows(results)),
        ]
    )


def render_table(rows: Sequence[Row]) -> str:
    """Render a Markdown table with aligned columns, readable as plain text."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines = [
        "| "
        + " | ".join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        + " |"
        for row in rows
    ]
    rule = "| " + " | ".join(
        "-" * width if index == 0 else "-" * (width - 1) + ":" for index, width in enumerate(widths)
    )
    return "\n".join([lines[0], rule + " |", *lines[1:]])


def _build_rows(results: Results) -> list[Row]:
    connections = sorted({phase.connections for phase in results.payments})
    clients = sorted({run.clients for run in results.tpcb})
    rows = [
        _build_row("payments", get_best_phase(results.payments, count)) for count in connections
    ]
    for count in clients:
        run = get_best_tpcb_run(results.tpcb, count)
        latency = f"mean {run.mean_ms:.1f}"
        rows.append(
            (
                "pgbench TPC-B",
                f"{count}",
                f"{run.per_second:,.0f}",
                latency,
                "",
                "1",
                "",
                f"{run.postgres_us:,.0f}",
            )
        )
    for kind, name in _KIND_LABELS.items():
        phases = [phase for phase in results.others if phase.kind == kind]
        if phases:
            rows.append(_build_row(name, get_best_phase(phases, phases[0].connections)))
    return [*rows, _build_row("payments at overload", results.overload.phase)]


def _build_row(name: str, phase: Phase) -> Row:
    return (
        name,
        f"{phase.connections}",
        f"{phase.per_second:,.0f}",
        f"{phase.p50_ms:.1f}",
        f"{phase.p99_ms:.1f}",
        "" if phase.batches is None else f"{phase.batches.mean:.0f}",
        f"{phase.cpu.workers:,.0f}",
        f"{phase.cpu.postgres:,.0f}",
    )


def _render_sentences(results: Results) -> list[str]:
    ratio, books, memory = results.ratio, results.books, results.memory
    phases = [*results.payments, *results.others]
    declined = sum(sum(phase.declined.values()) for phase in phases)
    spread = get_best_phase(results.payments, 64)
    hot = get_best_phase([phase for phase in results.others if phase.kind == "hot"], 64)
    batch_stats = [phase.batches for phase in (*phases, results.overload.phase)]
    largest = max(batches.largest for batches in batch_stats if batches is not None)
    client = mean(phase.cpu.load_client for phase in results.payments)
    busiest = ", ".join(
        f"{get_best_phase(results.payments, count).cpu.busiest_worker:.0%} at {count}"
        for count in sorted({phase.connections for phase in results.payments})
        if count > 1
    )
    return [
        f"**Ratio: {ratio.ratio:.2f}.** The best of {len(results.payments)} payment phases"
        f" ({ratio.payments_per_second:,.0f}/s at {ratio.connections} connections) over the best of"
        f" {len(results.tpcb)} TPC-B phases ({ratio.tpcb_per_second:,.0f}/s at {ratio.clients}"
        f" clients). Ratio within each round: {_format_ratios(ratio.by_round)}. Each row of the"
        " table is the best of its rounds.",
        f"Payments to one merchant run at {hot.per_second / spread.per_second:.0%} of the rate of"
        f" payments to {results.sizes.processors}. The largest batch had {largest} payments."
        f" The load client used {client:.0f} µs of CPU time per payment, on the same cores.",
        *_render_latency(results),
        *(_render_comparison(results, kind) for kind in _COMPARISONS),
        f"Share of the busiest of {results.sizes.workers} workers: {busiest} connections.",
        _render_overload(results.overload),
        f"Memory: workers {_format_megabytes(memory.workers_before_mb)} before the first phase,"
        f"{_render_rounds(memory)} {_format_megabytes(memory.workers_mb)} after the last phase and"
        f" {memory.requests:,} requests ({compute_memory_growth(memory):+.2f} MB per 10,000"
        f" requests). PostgreSQL: {memory.postgres_mb:.0f} MB.",
        f"Ledger: {books.claims} checks {'passed' if books.hold else 'FAILED'} for"
        f" {books.transactions:,} transactions and {books.entries:,} entries."
        f" {books.approved:,} payments were acknowledged, and {books.completed:,} are in the"
        f" ledger. Declined: {declined:,}.",
    ]


def _render_latency(results: Results) -> list[str]:
    ratios = compute_latency_ratios(results.payments, results.tpcb)
    if not ratios:
        return []
    return [
        f"**Latency: {median(ratios):.2f}.** With one connection, a payment takes"
        f" {_format_ratios(ratios)} times as long as a TPC-B transaction in the same round."
    ]


def _render_rounds(memory: Memory) -> str:
    """Describe the memory after the first and the last round, which run the same phases."""
    return "".join(
        f" {_format_megabytes(after.workers_mb)} after {after.requests:,} requests,"
        for after in (*memory.rounds[:1], *memory.rounds[1:][-1:])
    )


def _render_comparison(results: Results, kind: str) -> str:
    """Compare another workload with the payments that were measured next to it."""
    name, baseline_kind, baseline_name = _COMPARISONS[kind]
    others = [phase for phase in results.others if phase.kind == kind]
    baselines = [
        phase
        for phase in (*results.payments, *results.others)
        if phase.kind == baseline_kind and phase.connections == others[0].connections
    ]
    pairs = list(zip(baselines, others, strict=True))
    rates = [other.per_second / plain.per_second for plain, other in pairs]
    costs = [_get_cpu_time(plain) / _get_cpu_time(other) for plain, other in pairs]
    workers = median(other.cpu.workers - plain.cpu.workers for plain, other in pairs)
    postgres = median(other.cpu.postgres - plain.cpu.postgres for plain, other in pairs)
    return (
        f"{name} run at {_summarize_ratios(rates)} times the rate of {baseline_name}, and at"
        f" {_summarize_ratios(costs)} times by CPU time. Each takes {workers:+.0f} µs of Python's"
        f" and {postgres:+.0f} µs of PostgreSQL's CPU time. These are medians of {len(pairs)} pairs"
        " of phases."
    )


def _get_cpu_time(phase: Phase) -> float:
    return phase.cpu.workers + phase.cpu.postgres + phase.cpu.load_client


def _render_overload(overload: Overload) -> str:
    phase = overload.phase
    return (
        f"At overload, with {phase.connections:,} connections that retry rejected requests"
        f" immediately, {phase.per_second:,.0f}/s are accepted: {overload.ratio:.0%} of the rate at"
        f" {overload.compared_at} connections. The gateway returned 503 to {overload.refused:,}"
        f" attempts. {overload.first_refused:,} of these were first attempts, rejected after"
        f" {overload.first_p50_ms:.0f} ms (p50) and {overload.first_p99_ms:.0f} ms (p99)."
    )


def _format_megabytes(values: Sequence[float]) -> str:
    return " and ".join(f"{megabytes:.0f} MB" for megabytes in values)


def _format_ratios(ratios: Sequence[float]) -> str:
    return ", ".join(f"{ratio:.2f}" for ratio in ratios)


def _summarize_ratios(ratios: Sequence[float]) -> str:
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def _build_machine_rows(results: Results) -> list[Row]:
    machine, sizes = results.machine, results.sizes
    return [
        ("Machine", ""),
        ("Processor", f"{machine.processor}, {machine.cores} cores"),
        ("Memory", f"{machine.memory_gb:.0f} GB"),
        ("Disk", f"{machine.disk}, {machine.flush_us:,.0f} µs to flush 8 KiB"),
        ("System", machine.system),
        ("PostgreSQL", f"{machine.postgres}, embedded"),
        ("Python", machine.python),
        ("Tapgate", f"{results.version}, {sizes.workers} workers"),
        ("Dataset", f"{sizes.cards:,} cards, {sizes.processors} processors"),
        ("Phases", _describe_phases(results)),
        ("Date", results.taken_on),
    ]


def _describe_phases(results: Results) -> str:
    shortest = min(phase.seconds for phase in results.payments)
    planned = results.sizes.seconds
    shorter = f", shortest {shortest:.1f} s" if shortest < 0.9 * planned else ""
    return f"{planned:g} s each, {results.sizes.rounds} rounds{shorter}"


def render_section(results: Results) -> str:
    """Render the generated documentation section."""
    return f"\n![Payments and TPC-B per second]({CHART_FILE.name})\n\n{render_text(results)}\n\n"


def render_page(page: str, results: Results) -> str:
    return replace_section(page, BEGIN_MARK, END_MARK, render_section(results))


def write_report(results: Results, root: Path) -> list[Path]:
    """Write the results as JSON, the chart and, if the documentation page exists, its section."""
    files = {
        RESULTS_FILE: encode_results(results),
        CHART_FILE: chart.render_svg(results).encode(),
    }
    if (root / PAGE_FILE).exists():
        files[PAGE_FILE] = render_page((root / PAGE_FILE).read_text(), results).encode()
    return write_files(root, files)


def load_results(root: Path) -> Results:
    return msgspec.json.decode((root / RESULTS_FILE).read_bytes(), type=Results)


if __name__ == "__main__":
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2]
    for path in write_report(load_results(root), root):
        print(f"Wrote {path}")
