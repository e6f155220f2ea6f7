"""What is said about a run: a line for each round, and the sums at the end."""

import time
from collections import Counter
from pathlib import Path
from typing import Final

from torture.findings import Findings
from torture.plan import Round
from torture.tally import Tally

_COUNTED: Final = ("lost", "doubled", "unasked", "wrong figures", "balance")
_SHOWN: Final = 40


class Report:
    def __init__(self, seed: int, rounds: int) -> None:
        self._began = time.monotonic()
        self._rounds = rounds
        self._disasters: Counter[str] = Counter()
        self._declines: Counter[str] = Counter()
        self._sums: Counter[str] = Counter()
        self._silence_seconds = 0.0
        say(f"seed {seed}; the same plan again: make torture ROUNDS={rounds} SEED={seed}")

    def of_round(self, plan: Round, tally: Tally, found: int) -> None:
        kinds = [disaster.kind for disaster in plan.disasters]
        self._disasters.update(kinds)
        self._declines.update(tally.declines)
        self._silence_seconds = max(self._silence_seconds, tally.silence_seconds)
        for name in ("operations", "done", "unanswered", "done_before"):
            self._sums[name] += getattr(tally, name)
        for name in ("twins", "repeated", "altered", "not_asked"):
            self._sums[name] += getattr(tally, name)
        self._sums["rounds"] += 1
        say(
            f"round {plan.number:>3}  {tally.operations:>3} operations, "
            f"{tally.done:>3} done, {sum(tally.declines.values()):>2} declined, "
            f"{tally.unanswered:>3} asked again ({tally.done_before} had been done), "
            f"silent for {tally.silence_seconds:.1f} s, {tally.seconds:.1f} s in all"
            f"  {' + '.join(kinds)}" + (f"  {found} FOUND" if found else "")
        )

    def of_events(self, told: int, deliveries: int) -> None:
        self._sums["events"], self._sums["deliveries"] = told, deliveries

    def of_all(self, findings: Findings, kept: Path) -> None:
        sums, found = self._sums, findings.by_kind()
        say("")
        _say("rounds", sums["rounds"])
        for kind, times in sorted(self._disasters.items()):
            _say(f"  {kind}", times)
        _say("operations", sums["operations"])
        _say("  acknowledged, done", sums["done"])
        _say("  acknowledged, declined", sum(self._declines.values()))
        for code, times in sorted(self._declines.items()):
            _say(f"    {code}", times)
        _say("  not answered at first, asked again", sums["unanswered"])
        _say("    of these, had been done", sums["done_before"])
        _say("  refunds of declined payments, not asked", sums["not_asked"])
        _say("twins sent at once", sums["twins"])
        _say("repeated afterwards, answered as before", sums["repeated"])
        _say("something else under a name, refused", sums["altered"])
        _say("events told, each under one id", sums["events"])
        _say("  deliveries of them", sums["deliveries"])
        for kind in _COUNTED:
            _say(kind, found.pop(kind, 0))
        for kind, times in sorted(found.items()):
            _say(kind, times)
        _say("longest silence, seconds", f"{self._silence_seconds:.1f}")
        _say("seconds", f"{time.monotonic() - self._began:.0f}")
        for finding in findings.all[:_SHOWN]:
            say(str(finding))
        if len(findings.all) > _SHOWN:
            say(f"and {len(findings.all) - _SHOWN} more")
        if findings.all:
            say(f"data and logs are kept in {kept}")


def _say(name: str, value: object) -> None:
    say(f"{name:<42}{value:>8}")


def say(line: str) -> None:
    print(line, flush=True)
