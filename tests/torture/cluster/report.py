"""Report on a run against a cluster: the time without service for each kind of fault."""

from collections.abc import Sequence
from pathlib import Path

from torture.findings import Findings
from torture.plan import RoundPlan
from torture.report import Report, print_line
from torture.round_stats import ReadinessStats, RoundStats


class ClusterReport(Report):
    def __init__(self, seed: int, rounds: int) -> None:
        super().__init__(seed, rounds, options="CLUSTER=1 ")
        self._outages: dict[str, list[RoundStats]] = {}
        self._counts: dict[str, int] = {}

    def print_round(self, plan: RoundPlan, stats: RoundStats, finding_count: int) -> None:
        super().print_round(plan, stats, finding_count)
        if stats.readiness is not None:
            print_line(f"           {stats.readiness}")
        self._outages.setdefault(plan.faults[0].kind, []).append(stats)

    def set_counts(self, messages: int, replies: int, revocations: int) -> None:
        self._counts = {
            "chat messages": messages,
            "chat replies at the provider": replies,
            "revocations of a key, a session and a card": revocations,
        }

    def print_summary(self, findings: Findings, stored: Path) -> None:
        super().print_summary(findings, stored)
        for name, count in self._counts.items():
            print_line(f"{name:<42}{count:>8}")
        print_line("")
        print_line(
            f"{'fault':<32}{'times':>6}{'no service':>12}{'one request':>13}{'retried':>9}"
            f"{'/ready 503':>12}{'gateways':>10}{'200 again':>11}"
        )
        for kind, rounds in sorted(self._outages.items()):
            silence = max(stats.longest_silence_seconds for stats in rounds)
            wait = max(stats.longest_wait_seconds for stats in rounds)
            retried = sum(stats.unanswered for stats in rounds)
            print_line(
                f"{kind:<32}{len(rounds):>6}{silence:>10.1f} s{wait:>11.1f} s{retried:>9}"
                f"{_format_readiness([stats.readiness for stats in rounds if stats.readiness])}"
            )
        print_line(
            "No service: longest time without any response. One request: longest time from the"
            " first attempt of a request, with retries, to its response. /ready: longest time from"
            " the start of the fault until a gateway returned 503 (or did not respond), and from"
            " its end until all returned 200 again."
        )


def _format_readiness(measured: Sequence[ReadinessStats]) -> str:
    noticed = [s for stats in measured for s in stats.seconds_until_not_ready.values()]
    again = [s for stats in measured for s in stats.seconds_until_ready.values()]
    if not noticed:
        return f"{'-':>12}{0:>10}{'-':>11}"
    gateways = max(len(stats.seconds_until_not_ready) for stats in measured)
    recovered = f"{max(0.0, *again):.1f} s" if again else "-"
    return f"{max(noticed):>10.1f} s{gateways:>10}{recovered:>11}"
