"""Dependencies shared by all request handlers, built by the gateway."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias

import msgspec

from tapgate.http.api.guards import collect_guarded_roles
from tapgate.http.endpoint import Endpoint
from tapgate.http.metrics import EventCounters
from tapgate.runtime.fair_limit import FairLimit
from tapgate.runtime.store.transaction import Transaction, open_transaction
from tapgate_client.schemas.audit import AuditResult

if TYPE_CHECKING:
    from tapgate.auth.actors import Actor
    from tapgate.auth.authenticator import Authenticator
    from tapgate.core.id_generator import IdGenerator
    from tapgate.core.settings import Settings
    from tapgate.core.vault import Vault
    from tapgate.http.api.book_peers import BookPeers
    from tapgate.http.api.latency_samples import LatencySamples
    from tapgate.http.api.report_calls import ReportClient
    from tapgate.http.metrics import MetricSource
    from tapgate.http.rate_limits.throttle import Throttle
    from tapgate.ledger.card_proofs.proof_verifier import ProofVerifier
    from tapgate.ledger.engine.group_commit import Ledger
    from tapgate.ledger.pins.pin_verifier import PinVerifier
    from tapgate.runtime.health import HealthMonitor
    from tapgate.runtime.nodes import NodeRegistry
    from tapgate.runtime.store.database import Database
    from tapgate.runtime.store.replica import Replica
    from tapgate.runtime.store.signals import Signals
    from tapgate_client.clock import Clock


def create_heavy_read_limit(*, is_report_worker: bool = False) -> FairLimit:
    """Return the concurrency limit for expensive reads.

    It has fewer slots than the connection pool has connections, and a single caller can use only
    half of the slots. Reports that wait in a report worker delay no payment, unlike in a gateway
    worker.
    """
    return FairLimit(
        "Too many large requests are in progress. Try again shortly.",
        slots=4,
        slots_per_group=2,
        queue=32,
        queue_per_group=8,
        timeout=30.0 if is_report_worker else 2.0,
    )


class RejectedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Rejected request, as recorded in the audit log."""

    event: str
    resource_type: str
    resource_id: str | None
    result: AuditResult
    reason: str | None


class RejectionLog(Protocol):
    async def record(self, actor: Actor, rejection: RejectedRequest) -> None:
        """Add an entry, or only count the rejection once the limits on entries are reached."""

    async def run(self) -> NoReturn:
        """Store the counts periodically until canceled."""


class RequestLog(Protocol):
    def add(
        self, context: Any, endpoint: Endpoint, status: int, seconds: float, response_body: bytes
    ) -> None:
        """Queue a request, unless its caller has no key."""

    async def flush(self) -> None:
        """Write a batch of queued requests."""

    async def run(self) -> NoReturn:
        """Write queued requests periodically until canceled."""


#: Takes the endpoint, the request, its decoded arguments and the handler call.
RunGuarded: TypeAlias = Callable[
    [Endpoint, Any, Mapping[str, Any], Callable[[], Awaitable[Any]]], Awaitable[Any]
]


@dataclass(slots=True, kw_only=True)
class Services:
    settings: Settings
    database: Database
    #: Queue worker connections; see `work_queue.SESSION_SETTINGS`.
    queue_database: Database
    signals: Signals
    vault: Vault
    pin_verifier: PinVerifier
    proof_verifier: ProofVerifier
    authenticator: Authenticator
    ledger: Ledger
    health: HealthMonitor
    nodes: NodeRegistry
    clock: Clock
    new_id: IdGenerator
    throttle: Throttle
    latency_samples: LatencySamples
    rejection_log: RejectionLog
    request_log: RequestLog
    #: The other books with which this installation exchanges transfers.
    book_peers: BookPeers
    #: Runs a request that may require approval.
    run_guarded: RunGuarded
    #: Endpoints that approval rules can guard, by operation ID.
    guarded_endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    event_counters: EventCounters = field(default_factory=EventCounters)
    #: Event record loaders, by resource type.
    event_record_loaders: Mapping[str, Any] = field(default_factory=dict)
    #: Metrics besides request metrics.
    metric_sources: Sequence[MetricSource] = ()
    heavy_read_limit: FairLimit = field(default_factory=create_heavy_read_limit)
    #: The node's report workers; None if reports run in this process.
    report_client: ReportClient | None = None
    replica: Replica | None = None

    async def get_report_database(self) -> Database:
        """Return the database for a report: the replica if it has caught up, or the primary."""
        if self.replica is not None and await self.replica.catches_up(self.database):
            return self.replica.database
        return self.database

    @property
    def guarded_roles(self) -> dict[str, frozenset[str]]:
        """Roles that may request each guarded operation."""
        return collect_guarded_roles(self.guarded_endpoints.values())

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Open a database transaction for operations; see `Database.transaction`."""
        return open_transaction(self.database, self.clock, self.new_id, self.vault)
