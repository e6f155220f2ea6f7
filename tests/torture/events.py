"""What the gateway tells an endpoint of ours: each transaction that moved money once, each refund
once more for its payment; however often it is sent, under one id."""

import asyncio
import contextlib
import hashlib
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from notifications.receiver import Receiver
from tapgate import ids
from tapgate.store.database import Database
from torture.book import Standing
from torture.findings import Findings

COMPLETED: Final = "transaction.completed"
REFUNDED: Final = "transaction.refunded"
#: Longer than the lease of a delivery whose process was killed, and a few tries after that.
_PATIENCE_SECONDS: Final = 90.0

#: An event's type, and the transaction that it is about.
Subject = tuple[str, str]


def expected_events(standings: Iterable[Standing]) -> Counter[Subject]:
    expected: Counter[Subject] = Counter()
    for standing in standings:
        if standing.told is not None and standing.told.done:
            expected[COMPLETED, standing.told.transaction] += 1
            if standing.original:
                expected[REFUNDED, standing.original] += 1
    return expected


async def judge_events(
    database: Database, standings: Sequence[Standing], since: int, findings: Findings
) -> None:
    """In the tables: written with what they tell, each with one delivery."""
    rows = await database.fetch(
        """SELECT type, subject_id, count(*) AS events, sum(deliveries)::int AS deliveries FROM (
               SELECT type, subject_id, (
                   SELECT count(*) FROM deliveries WHERE event_id = events.id) AS deliveries
               FROM events WHERE id > $1) AS told
           GROUP BY type, subject_id""",
        since,
    )
    there: Counter[Subject] = Counter()
    for row in rows:
        subject = row["type"], ids.encode(ids.TRANSACTION, row["subject_id"])
        there[subject] = row["events"]
        if row["deliveries"] != row["events"]:
            what = f"{row['events']} events, {row['deliveries']} deliveries"
            findings.add("events", " ".join(subject), what)
    _compare(expected_events(standings), there, findings)


class Arrived:
    """What has arrived: which ids, by what they tell."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._bodies: dict[str, bytes] = {}  # their digests
        self._ids: dict[Subject, set[str]] = defaultdict(set)
        self.deliveries = 0

    @property
    def url(self) -> str:
        return self._receiver.url

    @property
    def ids(self) -> int:
        return len(self._bodies)

    def take(self, findings: Findings) -> None:
        taken, self._receiver.received = self._receiver.received, []
        for one in taken:
            self.deliveries += 1
            content = one.content
            digest = hashlib.sha256(one.body).digest()
            if self._bodies.setdefault(one.id, digest) != digest:
                findings.add("events", one.id, "was sent again, and says something else")
            self._ids[content["type"], content["data"]["id"]].add(one.id)

    async def judge(
        self,
        standings: Iterable[Standing],
        findings: Findings,
        *,
        patience: float = _PATIENCE_SECONDS,
    ) -> None:
        """At the end: everything arrives, if need be when a killed process's lease is over."""
        expected = expected_events(standings)
        deadline = time.monotonic() + patience
        self.take(findings)
        while self._there() != expected and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
            self.take(findings)
        _compare(expected, self._there(), findings)

    def _there(self) -> Counter[Subject]:
        return Counter({subject: len(several) for subject, several in self._ids.items()})


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[Arrived]:
    receiver = Receiver()
    async with receiver.listening():
        yield Arrived(receiver)


def _compare(expected: Counter[Subject], there: Counter[Subject], findings: Findings) -> None:
    for subject, times in (expected - there).items():
        findings.add("events", " ".join(subject), f"is not told {times} times")
    for subject, times in (there - expected).items():
        findings.add("events", " ".join(subject), f"is told {times} times too often")
