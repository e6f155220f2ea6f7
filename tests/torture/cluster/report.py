"""Report on a run against a cluster: the time without service for each kind of fault."""

from pathlib import Path

from torture.findings import Findings
from torture.plan import RoundPlan
from torture.report import Report, print_line
from torture.round_stats import RoundStats


class ClusterReport(Report):
    def __init__(self, seed: int, rounds: int) -> None:
        super().__init__(seed, rounds, options="CLUSTER=1 ")
        self._outages: dict[str, list[RoundStats]] = {}
        self._counts: dict[str, int] = {}

    def print_round(self, plan: RoundPlan, stats: RoundStats, finding_count: int) -> None:
        super().print_round(plan, stats, finding_count)
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
        print_line(f"{'fault':<32}{'times':>6}{'no service':>12}{'one request':>13}{'retried':>9}")
        for kind, rounds in sorted(self._outages.items()):
            silence = max(stats.longest_silence_seconds for stats in rounds)
            wait = max(stats.longest_wait_seconds for stats in rounds)
            retried = sum(stats.unanswered for stats in rounds)
            print_line(f"{kind:<32}{len(rounds):>6}{silence:>10.1f} s{wait:>11.1f} s{retried:>9}")
        print_line(
            "No service: longest time without any response. One request: longest time from the"
            " first attempt of a request, with retries, to its response."
        )
