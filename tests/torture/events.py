"""Webhook events from the gateway: one per completed transaction, plus one per refund.

An event can be delivered several times, always with the same id.
"""

import asyncio
import contextlib
import hashlib
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from drivers.webhooks import WebhookReceiver
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from torture.client_ledger import OperationState
from torture.findings import Findings

COMPLETED: Final = "transaction.completed"
REFUNDED: Final = "transaction.refunded"
#: Longer than the lease on a killed process's delivery plus a few retries.
_DELIVERY_TIMEOUT_SECONDS: Final = 90.0

#: Event type and transaction id.
EventKey = tuple[str, str]


def count_expected_events(operations: Iterable[OperationState]) -> Counter[EventKey]:
    expected: Counter[EventKey] = Counter()
    for state in operations:
        acknowledgment = state.acknowledgment
        if acknowledgment is None or not (acknowledgment.succeeded and acknowledgment.is_recorded):
            continue
        expected[COMPLETED, state.transaction_id] += 1
        if state.operation.kind == "refund":
            expected[REFUNDED, state.original_transaction_id] += 1
    return expected


async def reconcile_events(
    database: Database, operations: Sequence[OperationState], since: int, findings: Findings
) -> None:
    """Reconcile the event tables: each expected event exists once, with one delivery."""
    rows = await database.fetch(
        """SELECT type, subject_id, count(*) AS events, sum(deliveries)::int AS deliveries FROM (
               SELECT type, subject_id, (
                   SELECT count(*) FROM deliveries WHERE event_id = events.id) AS deliveries
               FROM events WHERE id > $1) AS counted
           GROUP BY type, subject_id""",
        since,
    )
    stored: Counter[EventKey] = Counter()
    for row in rows:
        subject = row["type"], ids.encode(ids.TRANSACTION, row["subject_id"])
        stored[subject] = row["events"]
        if row["deliveries"] != row["events"]:
            detail = f"{row['events']} events, {row['deliveries']} deliveries"
            findings.add("events", " ".join(subject), detail)
    _report_differences(count_expected_events(operations), stored, findings)


class EventReceiver:
    """Collects the IDs of received webhooks by event key."""

    def __init__(self, receiver: WebhookReceiver) -> None:
        self._receiver = receiver
        self._bodies: dict[str, bytes] = {}  # webhook id -> body digest
        self._ids: dict[EventKey, set[str]] = defaultdict(set)
        self.deliveries = 0

    @property
    def url(self) -> str:
        return self._receiver.url

    @property
    def event_count(self) -> int:
        return len(self._bodies)

    def collect(self, findings: Findings) -> None:
        taken, self._receiver.received = self._receiver.received, []
        for webhook in taken:
            self.deliveries += 1
            content = webhook.content
            digest = hashlib.sha256(webhook.body).digest()
            if self._bodies.setdefault(webhook.id, digest) != digest:
                findings.add("events", webhook.id, "was sent again with different content")
            self._ids[content["type"], content["data"]["id"]].add(webhook.id)

    async def reconcile(
        self,
        operations: Iterable[OperationState],
        findings: Findings,
        *,
        timeout_seconds: float = _DELIVERY_TIMEOUT_SECONDS,
    ) -> None:
        """Wait until the received events are the expected ones, or report the differences."""
        expected = count_expected_events(operations)
        deadline = time.monotonic() + timeout_seconds
        self.collect(findings)
        while self._count_received() != expected and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
            self.collect(findings)
        _report_differences(expected, self._count_received(), findings)

    def _count_received(self) -> Counter[EventKey]:
        return Counter({subject: len(several) for subject, several in self._ids.items()})


@contextlib.asynccontextmanager
async def run_event_receiver() -> AsyncIterator[EventReceiver]:
    receiver = WebhookReceiver()
    async with receiver.listen():
        yield EventReceiver(receiver)


def _report_differences(
    expected: Counter[EventKey], actual: Counter[EventKey], findings: Findings
) -> None:
    for subject, times in (expected - actual).items():
        findings.add("events", " ".join(subject), f"missing {times} times")
    for subject, times in (actual - expected).items():
        findings.add("events", " ".join(subject), f"received {times} times too often")
