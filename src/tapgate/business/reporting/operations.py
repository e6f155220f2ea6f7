"""Operations for the overview and for ledger verification."""

from collections.abc import Mapping
from datetime import datetime
from time import perf_counter
from typing import Final

from tapgate.auth.actors import Actor
from tapgate.auth.principals import Principal
from tapgate.business.reporting import periods, queries, totals
from tapgate.business.reporting.model import build_engine_stats, to_proof_record
from tapgate.business.reporting.periods import Period
from tapgate.business.reporting.rollups import load_rollups
from tapgate.business.reporting.snapshot import get_snapshot
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import Settings
from tapgate.core.vault import Vault
from tapgate.events.audit.trail import AuditTrail
from tapgate.http.api.latency_samples import LatencySamples
from tapgate.ledger.verification import verifications
from tapgate.ledger.verification.checkpoints import save_progress, verify_with_checkpoints
from tapgate.ledger.verification.verifications import StoredVerification
from tapgate.ledger.verification.verify import Verification
from tapgate.runtime.exclusive_job import AlreadyRunningError, ExclusiveJob
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.clock import Clock, format_rfc3339
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import AdminRole
from tapgate_client.schemas.audit import AuditResult
from tapgate_client.schemas.compliance import AlertStatus, Severity
from tapgate_client.schemas.reporting import (
    AuditChainState,
    LedgerState,
    OpenAlertCounts,
    Overview,
    OverviewQuery,
    PreviousPeriod,
)

_trail: Final = AuditTrail("ledger")
LOCK_KEY: Final = 0x7467_7072  # "tgpr"
_verify_job: Final = ExclusiveJob(LOCK_KEY)
_ALERT_ROLES: Final = frozenset({AdminRole.SYSTEM_ADMIN, AdminRole.COMPLIANCE_USER})


async def get_overview(
    database: Database,
    caller: Principal,
    query: OverviewQuery,
    now: datetime,
    *,
    settings: Settings,
    latency_samples: LatencySamples,
) -> Overview:
    period = periods.build_period(query, now, settings.timezone)
    starts = period.starts
    rollups = await load_rollups(database, period.name, starts, period.end)
    currency = settings.currency
    alerts = None
    if caller.role in _ALERT_ROLES:
        alerts = _build_alert_counts(await queries.count_unresolved_alerts(database))
    return Overview(
        currency=currency,
        timezone=settings.timezone.key,
        period=period.name,
        from_=format_rfc3339(starts[0]),
        to=format_rfc3339(min(now, period.end)),
        totals=totals.build_totals(rollups, currency),
        previous=await _get_previous_period(database, period, now, settings),
        buckets=totals.build_buckets(rollups, starts, currency),
        flows=totals.build_flow_totals(rollups, currency),
        by_type=totals.build_type_totals(rollups, currency),
        declines=totals.count_declines(rollups),
        unavailable_services=await queries.count_unavailable_services(
            database, starts[0], min(now, period.end)
        ),
        standing=await get_snapshot(database, currency, now),
        alerts=alerts,
        ledger=await _get_ledger_state(database),
        engine=build_engine_stats(latency_samples.list_batches(), latency_samples.list_requests()),
    )


async def _get_previous_period(
    database: Database, period: Period, now: datetime, settings: Settings
) -> PreviousPeriod:
    previous = periods.build_previous_period(period, now, settings.timezone)
    rollups = await load_rollups(database, f"previous {period.name}", previous.starts, previous.end)
    return PreviousPeriod(
        from_=format_rfc3339(previous.starts[0]),
        to=format_rfc3339(previous.end),
        totals=totals.build_totals(rollups, settings.currency),
        flows=totals.build_flow_totals(rollups, settings.currency),
        buckets=totals.build_buckets(rollups, previous.starts, settings.currency),
    )


async def verify_ledger(
    database: Database, actor: Actor, clock: Clock, new_id: IdGenerator, *, vault: Vault
) -> tuple[StoredVerification, Verification]:
    """Verify what was added to the ledger since the last verification, and record the result.

    Only one verification runs at a time across all gateway processes.
    """
    try:
        async with _verify_job.acquire_connection(database) as connection:
            started_at, started = clock(), perf_counter()
            verification, progress = await verify_with_checkpoints(connection, vault)
            seconds = perf_counter() - started
            if verification.is_valid:
                await save_progress(connection, vault, progress, started_at)
            async with connection.transaction():
                stored = await verifications.record(
                    connection, verification, started_at=started_at, seconds=seconds
                )
                await _trail.record(
                    Transaction(connection, clock, new_id),
                    actor,
                    None,
                    "verified",
                    result=AuditResult.SUCCESS if stored.is_valid else AuditResult.FAILURE,
                    reason="; ".join(stored.broken) or None,
                )
    except AlreadyRunningError:
        raise ApiError(
            Code.RATE_LIMITED,
            "The ledger is already being verified. Try again shortly.",
            headers={"Retry-After": "1"},
        ) from None
    return stored, verification


def _build_alert_counts(unresolved: Mapping[tuple[str, str], int]) -> OpenAlertCounts:
    counts = {
        severity.lower(): unresolved.get((AlertStatus.OPEN, severity), 0) for severity in Severity
    }
    total = sum(counts.values())
    return OpenAlertCounts(**counts, total=total, investigating=sum(unresolved.values()) - total)


async def _get_ledger_state(database: Database) -> LedgerState:
    verification = await verifications.get_latest(database)
    seal = await queries.get_audit_seal(database)
    return LedgerState(
        last_proof=None if verification is None else to_proof_record(verification),
        audit=AuditChainState(
            sealed_sequence=seal.sequence,
            sealed_until=None if seal.until is None else format_rfc3339(seal.until),
            unsealed=seal.unsealed,
        ),
    )
