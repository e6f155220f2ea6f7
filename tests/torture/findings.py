"""What should not be: a kind, what it is about, and what was found."""

from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

KINDS: Final = (
    "lost",  # acknowledged, and not there
    "doubled",  # there, or done, more often than asked for
    "unasked",  # there, and nobody asked for it
    "wrong figures",  # there, and not as acknowledged
    "balance",  # not what the clients know it to be
    "books",  # a claim of `tapgate verify`
    "audit",
    "events",
    "refusal",  # refused for a reason that there is not
    "failure",  # answered as a mistake of the gateway's own
    "unanswered",  # not even after a minute
    "start",  # not healthy again by itself
)


class Finding(msgspec.Struct, frozen=True):
    round: int
    kind: str
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"round {self.round}: {self.kind}: {self.subject}: {self.detail}"


class Findings:
    """`tell` hears of each at once: whatever becomes of the run, it has been said."""

    def __init__(self, tell: Callable[[str], None] = lambda _: None) -> None:
        self.all: list[Finding] = []
        self.round = 0
        self._on_finding = tell

    def add(self, kind: str, about: str, what: str) -> None:
        assert kind in KINDS
        found = Finding(self.round, kind, about, what)
        self.all.append(found)
        self._on_finding(str(found))

    def by_kind(self) -> Counter[str]:
        return Counter(finding.kind for finding in self.all)
