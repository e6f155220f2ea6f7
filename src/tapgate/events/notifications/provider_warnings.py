"""Messaging provider warnings, as reported by the messenger.

A warning concerns a template, the account or the phone number, and stays until the provider reports
that the problem is solved.
"""

from collections.abc import Iterator
from typing import Final

import asyncpg
import structlog
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from tapgate.http.api.access import Access
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.cached_result import CachedResult
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import clock
from tapgate_client.errors import ApiError
from tapgate_client.schemas.provider_warnings import (
    MAX_WARNINGS,
    ProviderReport,
    ProviderReports,
    ProviderReportsResponse,
    ProviderWarningKind,
    ProviderWarningRecord,
    ProviderWarnings,
)

endpoints = Endpoints(
    "Messages", "/api/v1/messages/provider-warnings", objects=ObjectAccess.ANY, owners=NEVER
)

#: A provider has a few hundred templates, one account and some phone numbers.
_MAX_STORED: Final = 1000
_MAX_AGE_SECONDS: Final = 10.0
_TIMEOUT_SECONDS: Final = 1.0

_log = structlog.get_logger()


@endpoints.post("", access=Access(service=True), effect="sets")
async def report_provider_warnings(
    request: RequestContext, body: ProviderReports
) -> ProviderReportsResponse:
    """Report what the messaging provider says about templates, the account and the number.

    A report replaces an older one with the same `kind` and `subject`. `resolved` ends a warning.
    `updated` is the number of reports that changed something. A time in the future counts as now,
    so that it cannot make later reports look older. At most 1,000 reports are stored: resolved
    ones, and then the oldest, are deleted first.
    """
    async with request.services.transaction() as tx:
        changed = [report for report in body.data if await _store(tx, report)]
        await _delete_surplus(tx)
    for report in changed:
        fields = {"kind": report.kind, "subject": report.subject, "state": report.state}
        if report.resolved:
            _log.info("messages.provider_resolved", **fields)
        else:
            _log.warning("messages.provider_warning", **fields, reason=report.reason)
    return ProviderReportsResponse(updated=len(changed))


@endpoints.get("", access=Access(roles="AS"))
async def list_provider_warnings(request: RequestContext) -> ProviderWarnings:
    """List the messaging provider's unresolved warnings, newest first, at most 100."""
    rows = await request.services.database.fetch(
        """SELECT kind, subject, state, reason, occurred_at FROM provider_warnings
           WHERE NOT resolved ORDER BY occurred_at DESC, kind, subject LIMIT $1""",
        MAX_WARNINGS,
    )
    return ProviderWarnings(
        data=[
            ProviderWarningRecord(
                kind=row["kind"],
                subject=row["subject"],
                state=row["state"],
                reason=row["reason"],
                occurred_at=clock.format_rfc3339(row["occurred_at"]),
            )
            for row in rows
        ]
    )


async def _store(tx: Transaction, report: ProviderReport) -> bool:
    """Store a report unless a newer one is stored; return whether something changed."""
    row = await tx.fetchrow(
        """INSERT INTO provider_warnings AS old
               (kind, subject, state, reason, resolved, occurred_at, updated_at)
           VALUES ($1, $2, $3, $4, $5, least($6::text::timestamptz, $7), $7)
           ON CONFLICT (kind, subject) DO UPDATE
           SET state = excluded.state, reason = excluded.reason, resolved = excluded.resolved,
               occurred_at = excluded.occurred_at, updated_at = excluded.updated_at
           WHERE excluded.occurred_at >= old.occurred_at
             AND (old.state, old.reason, old.resolved)
                 IS DISTINCT FROM (excluded.state, excluded.reason, excluded.resolved)
           RETURNING kind""",
        report.kind,
        report.subject,
        report.state,
        report.reason,
        report.resolved,
        report.occurred_at,
        tx.now(),
    )
    return row is not None


async def _delete_surplus(tx: Transaction) -> None:
    await tx.execute(
        """DELETE FROM provider_warnings WHERE (kind, subject) IN (
               SELECT kind, subject FROM provider_warnings
               ORDER BY resolved, occurred_at DESC, kind, subject OFFSET $1)""",
        _MAX_STORED,
    )


class ProviderWarningMetrics:
    """Number of unresolved warnings by kind, read at most once in `_MAX_AGE_SECONDS`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._result: CachedResult[dict[str, int]] = CachedResult(self._load, _MAX_AGE_SECONDS)

    async def update(self) -> None:
        await self._result.get()

    def collect(self) -> Iterator[Metric]:
        gauge = GaugeMetricFamily(
            "tapgate_provider_warnings",
            "Unresolved messaging provider warnings",
            labels=["kind"],
        )
        for kind, count in (self._result.latest or {}).items():
            gauge.add_metric([kind], count)
        yield gauge

    async def _load(self) -> dict[str, int]:
        try:
            async with self._database.snapshot(timeout_seconds=_TIMEOUT_SECONDS) as tx:
                rows = await tx.fetch(
                    """SELECT kind, count(*) AS count FROM provider_warnings
                       WHERE NOT resolved GROUP BY kind""",
                    timeout=_TIMEOUT_SECONDS,
                )
        except (ApiError, TimeoutError, asyncpg.PostgresError):
            return {}
        counts = {row["kind"]: row["count"] for row in rows}
        return {kind: counts.get(kind, 0) for kind in ProviderWarningKind}
