"""Request and response records for the overview and for ledger proofs."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from tapgate import clock
from tapgate.api.latency_samples import Sample
from tapgate.ledger import proofs, verify
from tapgate.schemas.fields import Choice
from tapgate.schemas.transactions import TransactionTypeField

Period = Annotated[str, Choice("day", "week", "month", name="OverviewPeriod")]


class OverviewQuery(msgspec.Struct, kw_only=True):
    period: Period = "day"


class TransactionTotals(msgspec.Struct, kw_only=True):
    """Transaction counts, volume and fees.

    `amount` and `fees` cover completed transactions only. A refunded payment counts as completed.
    """

    count: int
    completed: int
    failed: int
    under_review: int
    amount: str
    fees: str


class Totals(TransactionTotals, kw_only=True):
    #: Completed transactions divided by completed and failed ones; null if there are neither.
    success_rate: float | None


class Bucket(TransactionTotals, kw_only=True):
    start: str


class TypeTotals(TransactionTotals, kw_only=True):
    type: TransactionTypeField


class DeclineCount(msgspec.Struct, kw_only=True):
    code: str
    count: int


class CardCounts(msgspec.Struct, kw_only=True):
    total: int
    active: int
    blocked: int
    lost: int
    unassigned: int
    expired: int


class SubscriberCounts(msgspec.Struct, kw_only=True):
    total: int
    active: int
    blocked: int
    closed: int


class AgentCounts(msgspec.Struct, kw_only=True):
    total: int
    active: int
    suspended: int
    terminated: int


class PlatformBalances(msgspec.Struct, kw_only=True):
    """Balances by kind of account, from one database snapshot."""

    wallets: str
    agent_floats: str
    agent_commissions: str
    settlements: str
    clearing: str
    under_review: str  # held funds, which are included in the balances of the payers' accounts


class PlatformSnapshot(msgspec.Struct, kw_only=True):
    as_of: str
    cards: CardCounts
    subscribers: SubscriberCounts
    agents: AgentCounts
    money: PlatformBalances


class OpenAlertCounts(msgspec.Struct, kw_only=True):
    total: int
    low: int
    medium: int
    high: int
    critical: int
    investigating: int


class ProofRecord(msgspec.Struct, kw_only=True):
    proven_at: str
    holds: bool
    seconds: float
    transactions: int
    entries: int
    accounts: int


class AuditChainState(msgspec.Struct, kw_only=True):
    """Last sealed entry of the audit log, and the number of unsealed entries (at most 100,000).

    `sealed_until` is the time of the last sealed entry. It is null before the first seal.
    """

    sealed_sequence: int
    sealed_until: str | None
    unsealed: int


class LatencyStats(msgspec.Struct, kw_only=True):
    """Latencies of this node's most recent samples within the last hour.

    Without samples, all fields except `count` are null.
    """

    count: int
    average_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class BatchLatencyStats(LatencyStats, kw_only=True):
    average_size: float | None
    largest_size: int | None


class EngineStats(msgspec.Struct, kw_only=True):
    batches: BatchLatencyStats
    requests: LatencyStats


class LedgerState(msgspec.Struct, kw_only=True):
    last_proof: ProofRecord | None
    audit: AuditChainState


class Overview(msgspec.Struct, kw_only=True):
    currency: str
    timezone: str
    period: Period
    from_: str = msgspec.field(name="from")
    to: str
    totals: Totals
    buckets: list[Bucket]
    by_type: list[TypeTotals]
    declines: list[DeclineCount]
    standing: PlatformSnapshot
    alerts: OpenAlertCounts | None
    ledger: LedgerState
    engine: EngineStats


class LedgerClaim(msgspec.Struct, kw_only=True):
    claim: str
    holds: bool
    broken: int
    examples: list[str]


class LedgerProof(ProofRecord, kw_only=True):
    success: bool = True
    message: str
    claims: list[LedgerClaim]


def to_proof_record(proof: proofs.StoredProof) -> ProofRecord:
    return ProofRecord(
        proven_at=clock.format_rfc3339(proof.proven_at),
        holds=proof.is_valid,
        seconds=proof.seconds,
        transactions=proof.transactions,
        entries=proof.entries,
        accounts=proof.accounts,
    )


def to_ledger_proof(stored_proof: proofs.StoredProof, proof: verify.Proof) -> LedgerProof:
    return LedgerProof(
        **msgspec.structs.asdict(to_proof_record(stored_proof)),
        message="All ledger checks passed" if proof.is_valid else "Ledger checks failed",
        claims=[
            LedgerClaim(
                claim=finding.claim,
                holds=finding.broken == 0,
                broken=finding.broken,
                examples=finding.examples,
            )
            for finding in proof.findings
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
