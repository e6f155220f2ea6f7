"""What was asked and answered, in figures."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from fuzz.findings import Finding


class Tally:
    def __init__(self, operations: Iterable[str]) -> None:
        self.statuses: dict[str, Counter[int]] = {name: Counter() for name in operations}
        self.callers: Counter[str] = Counter()
        self.findings: list[Finding] = []
        self._alike: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._unsendable: Counter[str] = Counter()
        self._unprepared: dict[str, list[str]] = {}

    def count(self, operation: str, caller: str, status: int) -> None:
        self.statuses[operation][status] += 1
        self.callers[caller] += 1

    def unsendable(self, operation: str) -> None:
        self._unsendable[operation] += 1

    def unprepared(self, operation: str, why: str) -> None:
        self._unprepared.setdefault(operation, []).append(why)

    def find(self, finding: Finding) -> None:
        """Three of a kind are enough to see what it is."""
        kind = (finding.operation, finding.problem[:60])
        self._alike[kind] += 1
        if self._alike[kind] <= 3:
            self.findings.append(finding)

    @property
    def requests(self) -> int:
        return sum(counted.total() for counted in self.statuses.values())

    @property
    def found(self) -> int:
        return sum(self._alike.values())

    def never_done(self) -> list[str]:
        """The operations that never succeeded."""
        return [
            name
            for name, counted in self.statuses.items()
            if not any(200 <= status < 300 for status in counted)
        ]

    def by_class(self) -> dict[str, int]:
        classes: Counter[str] = Counter()
        for counted in self.statuses.values():
            for status, number in counted.items():
                classes[f"{status // 100}xx"] += number
        return dict(sorted(classes.items()))

    def table(self) -> Iterator[str]:
        for name, counted in self.statuses.items():
            shown = " ".join(f"{status}:{number}" for status, number in sorted(counted.items()))
            yield f"  {name:75} {shown}"

    def summary(self) -> Iterator[str]:
        reached = len(self.statuses) - len(self.never_done())
        yield f"{self.requests} requests by {len(self.callers)} kinds of caller: {self.by_class()}"
        yield f"{reached} of {len(self.statuses)} operations succeeded at least once"
        yield from (f"  never: {name}" for name in self.never_done())
        if self._unsendable:
            yield f"{self._unsendable.total()} cases that no client could send were left out"
        for name, reasons in self._unprepared.items():
            yield f"  {len(reasons)} times not prepared: {name}: {reasons[0][:200]}"
        yield f"findings: {self.found}"
