"""Findings: violations with their kind, subject and detail."""

from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

KINDS: Final = (
    "lost",  # acknowledged but missing
    "duplicated",  # stored or executed more than once
    "unexpected",  # stored but never requested
    "wrong values",  # stored with values that differ from the acknowledgment
    "balance",  # differs from the client ledger
    "ledger",  # a ledger invariant is broken
    "audit",
    "approvals",  # not executed exactly once, or with another amount
    "events",
    "revocation",  # a revoked credential was accepted
    "readiness",  # a gateway that could not commit stayed ready
    "chat",  # a message was lost, or answered twice
    "rejection",  # rejected with an error code that the operation does not allow
    "failure",  # internal error response
    "unanswered",  # no response within a minute
    "start",  # did not become healthy again without intervention
)


class Finding(msgspec.Struct, frozen=True):
    round: int
    kind: str
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"round {self.round}: {self.kind}: {self.subject}: {self.detail}"


class Findings:
    """All findings in a run; `on_finding` receives each one immediately, in case of a crash."""

    def __init__(self, on_finding: Callable[[str], None] = lambda _: None) -> None:
        self.all: list[Finding] = []
        self.round = 0
        self._on_finding = on_finding

    def add(self, kind: str, subject: str, detail: str) -> None:
        assert kind in KINDS
        finding = Finding(self.round, kind, subject, detail)
        self.all.append(finding)
        self._on_finding(str(finding))

    def count_by_kind(self) -> Counter[str]:
        return Counter(finding.kind for finding in self.all)
