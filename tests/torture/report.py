"""Console report on a run: one line per round, and totals at the end."""

import time
from collections import Counter
from pathlib import Path
from typing import Final

from torture.findings import Findings
from torture.plan import RoundPlan
from torture.round_stats import RoundStats

_REPORTED_KINDS: Final = ("lost", "duplicated", "unexpected", "wrong values", "balance")
_MAX_PRINTED_FINDINGS: Final = 40


class Report:
    def __init__(self, seed: int, rounds: int, *, options: str = "") -> None:
        self._started_at = time.monotonic()
        self._rounds = rounds
        self._fault_counts: Counter[str] = Counter()
        self._decline_counts: Counter[str] = Counter()
        self._totals: Counter[str] = Counter()
        self._longest_silence_seconds = 0.0
        print_line(
            f"Seed {seed}. To repeat the plan: make torture {options}ROUNDS={rounds} SEED={seed}"
        )

    def print_round(self, plan: RoundPlan, stats: RoundStats, finding_count: int) -> None:
        kinds = [fault.kind for fault in plan.faults]
        self._fault_counts.update(kinds)
        self._decline_counts.update(stats.declines)
        self._longest_silence_seconds = max(
            self._longest_silence_seconds, stats.longest_silence_seconds
        )
        for name in ("operations", "succeeded", "unanswered", "succeeded_unacknowledged"):
            self._totals[name] += getattr(stats, name)
        for name in ("duplicates", "replays", "conflicts", "skipped", "overtaken_taps"):
            self._totals[name] += getattr(stats, name)
        self._totals["rounds"] += 1
        print_line(
            f"round {plan.number:>3}  {stats.operations:>3} operations, "
            f"{stats.succeeded:>3} succeeded, {sum(stats.declines.values()):>2} declined, "
            f"{stats.unanswered:>3} retried ({stats.succeeded_unacknowledged} had succeeded), "
            f"no response for {stats.longest_silence_seconds:.1f} s,"
            f" {stats.duration_seconds:.1f} s in total"
            f"  {' + '.join(kinds)}" + (f"  {finding_count} FINDINGS" if finding_count else "")
        )

    def count_approvals(self, executed: int, resumed: int) -> None:
        self._totals["approvals"], self._totals["resumed_approvals"] = executed, resumed

    def print_events(self, event_count: int, deliveries: int) -> None:
        self._totals["events"], self._totals["deliveries"] = event_count, deliveries

    def print_summary(self, findings: Findings, stored: Path) -> None:
        sums, found = self._totals, findings.count_by_kind()
        print_line("")
        _print_value("rounds", sums["rounds"])
        for kind, times in sorted(self._fault_counts.items()):
            _print_value(f"  {kind}", times)
        _print_value("operations", sums["operations"])
        _print_value("  acknowledged, succeeded", sums["succeeded"])
        _print_value("  acknowledged, declined", sum(self._decline_counts.values()))
        for code, times in sorted(self._decline_counts.items()):
            _print_value(f"    {code}", times)
        _print_value("  without a response at first, retried", sums["unanswered"])
        _print_value("    of these, had succeeded", sums["succeeded_unacknowledged"])
        _print_value("  following a declined one, not sent", sums["skipped"])
        _print_value("concurrent duplicates", sums["duplicates"])
        _print_value("taps overtaken by later ones, repeated", sums["overtaken_taps"])
        _print_value("replays with the original response", sums["replays"])
        _print_value("conflicting requests, rejected", sums["conflicts"])
        _print_value("approvals executed", sums["approvals"])
        _print_value("  by a worker, after a kill", sums["resumed_approvals"])
        _print_value("events received", sums["events"])
        _print_value("  deliveries", sums["deliveries"])
        for kind in _REPORTED_KINDS:
            _print_value(kind, found.pop(kind, 0))
        for kind, times in sorted(found.items()):
            _print_value(kind, times)
        _print_value(
            "longest time without a response, seconds", f"{self._longest_silence_seconds:.1f}"
        )
        _print_value("total seconds", f"{time.monotonic() - self._started_at:.0f}")
        for finding in findings.all[:_MAX_PRINTED_FINDINGS]:
            print_line(str(finding))
        if len(findings.all) > _MAX_PRINTED_FINDINGS:
            print_line(f"and {len(findings.all) - _MAX_PRINTED_FINDINGS} more")
        if findings.all:
            print_line(f"Data and logs: {stored}")


def _print_value(name: str, value: object) -> None:
    print_line(f"{name:<42}{value:>8}")


def print_line(line: str) -> None:
    print(line, flush=True)
