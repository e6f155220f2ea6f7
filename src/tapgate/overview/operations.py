"""Looking at the whole platform, and proving its books."""

from collections.abc import Mapping
from time import perf_counter
from typing import Final

from tapgate import clock
from tapgate.audit.trail import Trail
from tapgate.edge.call import Call
from tapgate.errors import ApiError, Code
from tapgate.ledger import proofs
from tapgate.ledger.verify import Proof, verify
from tapgate.overview import periods, queries, sums
from tapgate.overview.figures import figures_of
from tapgate.overview.model import (
    AuditChain,
    LedgerState,
    OpenAlerts,
    Overview,
    engine,
    shown_proof,
)
from tapgate.overview.standing import standing
from tapgate.store.database import Database
from tapgate.store.exclusive import AlreadyRunningError, ExclusiveJob

_trail: Final = Trail("ledger")
_LOCK_KEY: Final = 0x7467_7072  # "tgpr"
_job: Final = ExclusiveJob(_LOCK_KEY)
_SEES_ALERTS: Final = frozenset({"system_admin", "compliance_user"})


async def look(call: Call, period: str) -> Overview:
    services = call.services
    settings, now = services.settings, services.clock()
    starts = periods.starts_of(period, now, settings.timezone)
    figures = await figures_of(services.database, period, starts)
    alerts = None
    if call.principal.role in _SEES_ALERTS:
        alerts = _alerts(await queries.unresolved_alerts(services.database))
    return Overview(
        currency=settings.currency,
        timezone=settings.timezone.key,
        period=period,
        from_=clock.rfc3339(starts[0]),
        to=clock.rfc3339(now),
        totals=sums.totals(figures, settings.currency),
        buckets=sums.buckets(figures, starts, settings.currency),
        by_type=sums.types(figures, settings.currency),
        declines=sums.declines(figures),
        standing=await standing(services),
        alerts=alerts,
        ledger=await _ledger(services.database),
        engine=engine(services.recent.batches(), services.recent.requests()),
    )


async def prove(call: Call) -> tuple[proofs.Recorded, Proof]:
    """Prove the books, one proof at a time over all processes: it reads everything."""
    services = call.services
    try:
        async with _job.connection(services.database) as connection:
            began, started = services.clock(), perf_counter()
            proof = await verify(connection)
            seconds = perf_counter() - started
            async with connection.transaction():
                recorded = await proofs.record(connection, proof, began=began, seconds=seconds)
                await _trail.record(
                    connection,
                    call,
                    None,
                    "verified",
                    result="success" if recorded.holds else "failure",
                    reason="; ".join(recorded.broken) or None,
                )
    except AlreadyRunningError:
        raise ApiError(
            Code.RATE_LIMITED,
            "The books are being proven already; ask again when that is done",
            headers={"Retry-After": "1"},
        ) from None
    return recorded, proof


def _alerts(unresolved: Mapping[tuple[str, str], int]) -> OpenAlerts:
    open_ = {severity: n for (status, severity), n in unresolved.items() if status == "open"}
    total = sum(open_.values())
    return OpenAlerts(
        total=total,
        low=open_.get("LOW", 0),
        medium=open_.get("MEDIUM", 0),
        high=open_.get("HIGH", 0),
        critical=open_.get("CRITICAL", 0),
        investigating=sum(unresolved.values()) - total,
    )


async def _ledger(database: Database) -> LedgerState:
    proof, sealed = await proofs.last(database), await queries.sealed(database)
    return LedgerState(
        last_proof=None if proof is None else shown_proof(proof),
        audit=AuditChain(
            sealed_sequence=sealed.sequence,
            sealed_until=None if sealed.until is None else clock.rfc3339(sealed.until),
            unsealed=sealed.unsealed,
        ),
    )
