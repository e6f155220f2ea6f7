"""Console report of a run: one line per round, and totals at the end."""

import time
from collections import Counter
from pathlib import Path
from typing import Final

from torture.findings import Findings
from torture.plan import RoundPlan
from torture.round_stats import RoundStats

_REPORTED_KINDS: Final = ("lost", "doubled", "unasked", "wrong figures", "balance")
_MAX_PRINTED_FINDINGS: Final = 40


class Report:
    def __init__(self, seed: int, rounds: int) -> None:
        self._started_at = time.monotonic()
        self._rounds = rounds
        self._fault_counts: Counter[str] = Counter()
        self._decline_counts: Counter[str] = Counter()
        self._totals: Counter[str] = Counter()
        self._longest_silence_seconds = 0.0
        print_line(f"seed {seed}; the same plan again: make torture ROUNDS={rounds} SEED={seed}")

    def print_round(self, plan: RoundPlan, tally: RoundStats, found: int) -> None:
        kinds = [disaster.kind for disaster in plan.faults]
        self._fault_counts.update(kinds)
        self._decline_counts.update(tally.declines)
        self._longest_silence_seconds = max(
            self._longest_silence_seconds, tally.longest_silence_seconds
        )
        for name in ("operations", "done", "unanswered", "done_before"):
            self._totals[name] += getattr(tally, name)
        for name in ("twins", "repeated", "altered", "not_asked"):
            self._totals[name] += getattr(tally, name)
        self._totals["rounds"] += 1
        print_line(
            f"round {plan.number:>3}  {tally.operations:>3} operations, "
            f"{tally.done:>3} done, {sum(tally.declines.values()):>2} declined, "
            f"{tally.unanswered:>3} asked again ({tally.done_before} had been done), "
            f"silent for {tally.longest_silence_seconds:.1f} s,"
            f" {tally.duration_seconds:.1f} s in all"
            f"  {' + '.join(kinds)}" + (f"  {found} FOUND" if found else "")
        )

    def print_events(self, told: int, deliveries: int) -> None:
        self._totals["events"], self._totals["deliveries"] = told, deliveries

    def print_summary(self, findings: Findings, kept: Path) -> None:
        sums, found = self._totals, findings.by_kind()
        print_line("")
        _print_value("rounds", sums["rounds"])
        for kind, times in sorted(self._fault_counts.items()):
            _print_value(f"  {kind}", times)
        _print_value("operations", sums["operations"])
        _print_value("  acknowledged, done", sums["done"])
        _print_value("  acknowledged, declined", sum(self._decline_counts.values()))
        for code, times in sorted(self._decline_counts.items()):
            _print_value(f"    {code}", times)
        _print_value("  not answered at first, asked again", sums["unanswered"])
        _print_value("    of these, had been done", sums["done_before"])
        _print_value("  refunds of declined payments, not asked", sums["not_asked"])
        _print_value("twins sent at once", sums["twins"])
        _print_value("repeated afterwards, answered as before", sums["repeated"])
        _print_value("something else under a name, refused", sums["altered"])
        _print_value("events told, each under one id", sums["events"])
        _print_value("  deliveries of them", sums["deliveries"])
        for kind in _REPORTED_KINDS:
            _print_value(kind, found.pop(kind, 0))
        for kind, times in sorted(found.items()):
            _print_value(kind, times)
        _print_value("longest silence, seconds", f"{self._longest_silence_seconds:.1f}")
        _print_value("seconds", f"{time.monotonic() - self._started_at:.0f}")
        for finding in findings.all[:_MAX_PRINTED_FINDINGS]:
            print_line(str(finding))
        if len(findings.all) > _MAX_PRINTED_FINDINGS:
            print_line(f"and {len(findings.all) - _MAX_PRINTED_FINDINGS} more")
        if findings.all:
            print_line(f"data and logs are kept in {kept}")


def _print_value(name: str, value: object) -> None:
    print_line(f"{name:<42}{value:>8}")


def print_line(line: str) -> None:
    print(line, flush=True)
