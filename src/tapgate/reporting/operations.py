"""Operations for the overview and for ledger verification."""

from collections.abc import Mapping
from time import perf_counter
from typing import Final

from tapgate import clock
from tapgate.api.request_context import RequestContext
from tapgate.audit.trail import AuditTrail
from tapgate.errors import ApiError, Code
from tapgate.ledger import proofs
from tapgate.ledger.verify import Proof, verify
from tapgate.reporting import periods, queries, totals
from tapgate.reporting.model import build_engine_stats, to_proof_record
from tapgate.reporting.rollup_cache import load_rollups
from tapgate.reporting.snapshot import get_snapshot
from tapgate.schemas.reporting import AuditChainState, LedgerState, OpenAlertCounts, Overview
from tapgate.store.database import Database
from tapgate.store.exclusive_job import AlreadyRunningError, ExclusiveJob
from tapgate.store.transaction import Transaction

_trail: Final = AuditTrail("ledger")
_LOCK_KEY: Final = 0x7467_7072  # "tgpr"
_verify_job: Final = ExclusiveJob(_LOCK_KEY)
_ALERT_ROLES: Final = frozenset({"system_admin", "compliance_user"})


async def get_overview(request: RequestContext, period: str) -> Overview:
    services = request.services
    settings, now = services.settings, services.clock()
    starts = periods.list_bucket_starts(period, now, settings.timezone)
    rollups = await load_rollups(services.database, period, starts)
    alerts = None
    if request.principal.role in _ALERT_ROLES:
        alerts = _build_alert_counts(await queries.count_unresolved_alerts(services.database))
    return Overview(
        currency=settings.currency,
        timezone=settings.timezone.key,
        period=period,
        from_=clock.format_rfc3339(starts[0]),
        to=clock.format_rfc3339(now),
        totals=totals.build_totals(rollups, settings.currency),
        buckets=totals.build_buckets(rollups, starts, settings.currency),
        by_type=totals.build_type_totals(rollups, settings.currency),
        declines=totals.count_declines(rollups),
        standing=await get_snapshot(services),
        alerts=alerts,
        ledger=await _get_ledger_state(services.database),
        engine=build_engine_stats(
            services.latency_samples.list_batches(), services.latency_samples.list_requests()
        ),
    )


async def verify_ledger(request: RequestContext) -> tuple[proofs.StoredProof, Proof]:
    """Verify the ledger and record the proof.

    Only one verification runs at a time across all gateway processes; it reads the whole ledger.
    """
    services = request.services
    try:
        async with _verify_job.acquire_connection(services.database) as connection:
            started_at, started = services.clock(), perf_counter()
            proof = await verify(connection)
            seconds = perf_counter() - started
            async with connection.transaction():
                stored_proof = await proofs.record(
                    connection, proof, started_at=started_at, seconds=seconds
                )
                await _trail.record(
                    Transaction(connection, services.clock, services.new_id),
                    request.actor,
                    None,
                    "verified",
                    result="success" if stored_proof.is_valid else "failure",
                    reason="; ".join(stored_proof.broken) or None,
                )
    except AlreadyRunningError:
        raise ApiError(
            Code.RATE_LIMITED,
            "The ledger is already being verified. Try again shortly.",
            headers={"Retry-After": "1"},
        ) from None
    return stored_proof, proof


def _build_alert_counts(unresolved: Mapping[tuple[str, str], int]) -> OpenAlertCounts:
    open_ = {
        severity: count for (status, severity), count in unresolved.items() if status == "open"
    }
    total = sum(open_.values())
    return OpenAlertCounts(
        total=total,
        low=open_.get("LOW", 0),
        medium=open_.get("MEDIUM", 0),
        high=open_.get("HIGH", 0),
        critical=open_.get("CRITICAL", 0),
        investigating=sum(unresolved.values()) - total,
    )


async def _get_ledger_state(database: Database) -> LedgerState:
    proof, seal = await proofs.get_latest(database), await queries.get_audit_seal(database)
    return LedgerState(
        last_proof=None if proof is None else to_proof_record(proof),
        audit=AuditChainState(
            sealed_sequence=seal.sequence,
            sealed_until=None if seal.until is None else clock.format_rfc3339(seal.until),
            unsealed=seal.unsealed,
        ),
    )
