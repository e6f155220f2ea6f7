"""Request and response statistics, and the findings."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

import httpx2

from fuzz.findings import Finding


class Results:
    def __init__(self, operations: Iterable[str]) -> None:
        self.statuses: dict[str, Counter[int]] = {name: Counter() for name in operations}
        self.callers: Counter[str] = Counter()
        self.findings: list[Finding] = []
        self._finding_counts: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._last_responses: dict[str, str] = {}
        self._unsendable: Counter[str] = Counter()
        self._unprepared: dict[str, list[str]] = {}

    def record_response(self, operation: str, caller: str, response: httpx2.Response) -> None:
        self.statuses[operation][response.status_code] += 1
        self._last_responses[operation] = f"{response.status_code} {response.text[:500]}"
        self.callers[caller] += 1

    def record_unsendable(self, operation: str) -> None:
        self._unsendable[operation] += 1

    def record_unprepared(self, operation: str, reason: str) -> None:
        self._unprepared.setdefault(operation, []).append(reason)

    def add_finding(self, finding: Finding) -> None:
        """Count a finding, and keep the first three per operation and problem."""
        kind = (finding.operation, finding.problem[:60])
        self._finding_counts[kind] += 1
        if self._finding_counts[kind] <= 3:
            self.findings.append(finding)

    @property
    def request_count(self) -> int:
        return sum(counts.total() for counts in self.statuses.values())

    @property
    def finding_count(self) -> int:
        return sum(self._finding_counts.values())

    def list_never_succeeded(self) -> list[str]:
        """Return the operations without any 2xx response."""
        return [
            name
            for name, counts in self.statuses.items()
            if not any(200 <= status < 300 for status in counts)
        ]

    def report_unreached(self, unreachable: Mapping[str, str]) -> None:
        """Add a finding per operation that never succeeded, or did although it is unreachable."""
        failed = set(self.list_never_succeeded())
        for name in self.statuses:
            if (name in failed) != (name in unreachable):
                problem = "never succeeded"
                if name in unreachable:
                    problem = "declared as unreachable, but succeeded"
                prepared = "; ".join(self._unprepared.get(name, [])[-1:])
                response = self._last_responses.get(name, "")
                self.add_finding(Finding(name, "all callers", problem, prepared, response))

    def count_by_status_class(self) -> dict[str, int]:
        classes: Counter[str] = Counter()
        for counts in self.statuses.values():
            for status, number in counts.items():
                classes[f"{status // 100}xx"] += number
        return dict(sorted(classes.items()))

    def format_table(self) -> Iterator[str]:
        for name, counts in self.statuses.items():
            text = " ".join(f"{status}:{number}" for status, number in sorted(counts.items()))
            yield f"  {name:75} {text}"

    def format_summary(self) -> Iterator[str]:
        reached = len(self.statuses) - len(self.list_never_succeeded())
        classes = self.count_by_status_class()
        yield f"{self.request_count} requests by {len(self.callers)} types of callers: {classes}"
        yield f"{reached} of {len(self.statuses)} operations succeeded at least once"
        yield from (f"  never succeeded: {name}" for name in self.list_never_succeeded())
        if self._unsendable:
            yield f"{self._unsendable.total()} cases skipped that no client can send"
        for name, reasons in self._unprepared.items():
            yield f"  {len(reasons)} times without test data: {name}: {reasons[0][:200]}"
        yield f"findings: {self.finding_count}"
