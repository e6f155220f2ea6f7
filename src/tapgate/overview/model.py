"""What the overview and a proof of the books look like to clients."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from tapgate import clock
from tapgate.edge.fields import Choice
from tapgate.edge.recent import Sample
from tapgate.ledger import proofs, verify
from tapgate.transactions.model import TransactionType

Period = Annotated[str, Choice("day", "week", "month", name="OverviewPeriod")]


class OverviewQuery(msgspec.Struct, kw_only=True):
    period: Period = "day"


class Sums(msgspec.Struct, kw_only=True):
    """`amount` and `fees` are those of what was completed; a refunded payment was completed."""

    count: int
    completed: int
    failed: int
    under_review: int
    amount: str
    fees: str


class Totals(Sums, kw_only=True):
    #: Of what was decided: without what is under review. Null when there is nothing.
    success_rate: float | None


class Bucket(Sums, kw_only=True):
    start: str


class OfType(Sums, kw_only=True):
    type: TransactionType


class Decline(msgspec.Struct, kw_only=True):
    code: str
    count: int


class Cards(msgspec.Struct, kw_only=True):
    total: int
    active: int
    blocked: int
    lost: int
    unassigned: int
    expired: int


class Subscribers(msgspec.Struct, kw_only=True):
    total: int
    active: int
    blocked: int
    closed: int


class Agents(msgspec.Struct, kw_only=True):
    total: int
    active: int
    suspended: int
    terminated: int


class Held(msgspec.Struct, kw_only=True):
    """Whose money there is, all of it at one moment."""

    wallets: str
    agent_floats: str
    agent_commissions: str
    settlements: str
    clearing: str
    under_review: str  # kept from its payers, and part of what their accounts have


class Standing(msgspec.Struct, kw_only=True):
    as_of: str
    cards: Cards
    subscribers: Subscribers
    agents: Agents
    money: Held


class OpenAlerts(msgspec.Struct, kw_only=True):
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


class AuditChain(msgspec.Struct, kw_only=True):
    """Up to which entry the audit log is sealed; null before the first."""

    sealed_sequence: int
    sealed_until: str | None
    unsealed: int


class Speed(msgspec.Struct, kw_only=True):
    """Of this node in the last hour, the newest ones; null where there is none."""

    count: int
    average_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class BatchSpeed(Speed, kw_only=True):
    average_size: float | None
    largest_size: int | None


class Engine(msgspec.Struct, kw_only=True):
    batches: BatchSpeed
    requests: Speed


class LedgerState(msgspec.Struct, kw_only=True):
    last_proof: ProofRecord | None
    audit: AuditChain


class Overview(msgspec.Struct, kw_only=True):
    currency: str
    timezone: str
    period: Period
    from_: str = msgspec.field(name="from")
    to: str
    totals: Totals
    buckets: list[Bucket]
    by_type: list[OfType]
    declines: list[Decline]
    standing: Standing
    alerts: OpenAlerts | None
    ledger: LedgerState
    engine: Engine


class Claim(msgspec.Struct, kw_only=True):
    claim: str
    holds: bool
    broken: int
    examples: list[str]


class LedgerProof(ProofRecord, kw_only=True):
    success: bool = True
    message: str
    claims: list[Claim]


def shown_proof(recorded: proofs.Recorded) -> ProofRecord:
    return ProofRecord(
        proven_at=clock.rfc3339(recorded.proven_at),
        holds=recorded.holds,
        seconds=recorded.seconds,
        transactions=recorded.transactions,
        entries=recorded.entries,
        accounts=recorded.accounts,
    )


def shown_claims(recorded: proofs.Recorded, proof: verify.Proof) -> LedgerProof:
    return LedgerProof(
        **msgspec.structs.asdict(shown_proof(recorded)),
        message="Every claim about the books holds" if proof.holds else "The books do not hold",
        claims=[
            Claim(
                claim=finding.claim,
                holds=finding.broken == 0,
                broken=finding.broken,
                examples=finding.examples,
            )
            for finding in proof.findings
        ],
    )


def engine(batches: Sequence[Sample], requests: Sequence[Sample]) -> Engine:
    sizes = [sample.size for sample in batches]
    return Engine(
        batches=BatchSpeed(
            **msgspec.structs.asdict(_speed(batches)),
            average_size=round(sum(sizes) / len(sizes), 1) if sizes else None,
            largest_size=max(sizes, default=None),
        ),
        requests=_speed(requests),
    )


def _speed(samples: Sequence[Sample]) -> Speed:
    ordered = sorted(sample.seconds for sample in samples)
    return Speed(
        count=len(ordered),
        average_ms=_milliseconds(sum(ordered) / len(ordered)) if ordered else None,
        p50_ms=_percentile(ordered, 50),
        p95_ms=_percentile(ordered, 95),
        p99_ms=_percentile(ordered, 99),
    )


def _percentile(ordered: Sequence[float], percent: int) -> float | None:
    """The smallest that so many of a hundred do not exceed."""
    if not ordered:
        return None
    return _milliseconds(ordered[-(-len(ordered) * percent // 100) - 1])


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)
