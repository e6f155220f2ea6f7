"""Records for ledger verifications and latency statistics."""

from collections.abc import Sequence

import msgspec

from tapgate.core.records import build_record
from tapgate.http.api.latency_samples import Sample
from tapgate.ledger.verification.verifications import StoredVerification
from tapgate.ledger.verification.verify import Verification
from tapgate_client.schemas.reporting import (
    BatchLatencyStats,
    EngineStats,
    LatencyStats,
    LedgerClaim,
    LedgerProof,
    ProofRecord,
)


def to_proof_record(verification: StoredVerification) -> ProofRecord:
    return build_record(ProofRecord, verification, holds=verification.is_valid)


def to_ledger_proof(stored: StoredVerification, verification: Verification) -> LedgerProof:
    return LedgerProof(
        **msgspec.structs.asdict(to_proof_record(stored)),
        message="All ledger checks passed" if verification.is_valid else "Ledger checks failed",
        claims=[
            LedgerClaim(
                claim=finding.invariant,
                holds=finding.broken == 0,
                broken=finding.broken,
                examples=finding.examples,
            )
            for finding in verification.findings
        ],
    )


def build_engine_stats(batches: Sequence[Sample], requests: Sequence[Sample]) -> EngineStats:
    sizes = [sample.size for sample in batches]
    return EngineStats(
        batches=BatchLatencyStats(
            **msgspec.structs.asdict(_build_latency_stats(batches)),
            average_size=round(sum(sizes) / len(sizes), 1) if sizes else None,
            largest_size=max(sizes, default=None),
        ),
        requests=_build_latency_stats(requests),
    )


def _build_latency_stats(samples: Sequence[Sample]) -> LatencyStats:
    ordered = sorted(sample.seconds for sample in samples)
    return LatencyStats(
        count=len(ordered),
        average_ms=_to_milliseconds(sum(ordered) / len(ordered)) if ordered else None,
        p50_ms=_get_percentile_ms(ordered, 50),
        p95_ms=_get_percentile_ms(ordered, 95),
        p99_ms=_get_percentile_ms(ordered, 99),
    )


def _get_percentile_ms(ordered: Sequence[float], percent: int) -> float | None:
    """Return the nearest-rank percentile in milliseconds."""
    if not ordered:
        return None
    return _to_milliseconds(ordered[-(-len(ordered) * percent // 100) - 1])


def _to_milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)
