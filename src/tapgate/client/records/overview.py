"""Platform overview and ledger verification records."""

import msgspec

from tapgate.client.records.base import Record


class Rollup(Record, frozen=True, kw_only=True):
    """Transaction counts and volumes.

    `amount` and `fees` cover completed transactions, including payments refunded later.
    """

    count: int
    completed: int
    failed: int
    under_review: int
    amount: str
    fees: str


class Totals(Rollup, frozen=True, kw_only=True):
    #: Completed transactions divided by completed and failed transactions; None without any.
    success_rate: float | None


class Bucket(Rollup, frozen=True, kw_only=True):
    start: str


class TypeTotals(Rollup, frozen=True, kw_only=True):
    type: str


class DeclineCount(Record, frozen=True, kw_only=True):
    code: str
    count: int


class CardCounts(Record, frozen=True, kw_only=True):
    total: int
    active: int
    blocked: int
    lost: int
    unassigned: int
    expired: int


class SubscriberCounts(Record, frozen=True, kw_only=True):
    total: int
    active: int
    blocked: int
    closed: int


class AgentCounts(Record, frozen=True, kw_only=True):
    total: int
    active: int
    suspended: int
    terminated: int


class PlatformBalances(Record, frozen=True, kw_only=True):
    """Total balances by kind of account, as of the same time."""

    wallets: str
    agent_floats: str
    agent_commissions: str
    settlements: str
    clearing: str
    under_review: str  # held funds, which are included in the balances of the payers' accounts


class PlatformSnapshot(Record, frozen=True, kw_only=True):
    as_of: str
    cards: CardCounts
    subscribers: SubscriberCounts
    agents: AgentCounts
    money: PlatformBalances


class OpenAlertCounts(Record, frozen=True, kw_only=True):
    total: int
    low: int
    medium: int
    high: int
    critical: int
    investigating: int


class ProofRecord(Record, frozen=True, kw_only=True):
    proven_at: str
    holds: bool
    seconds: float
    transactions: int
    entries: int
    accounts: int


class AuditChainState(Record, frozen=True, kw_only=True):
    """Last sealed entry of the audit log; `sealed_until` is None if no entry is sealed."""

    sealed_sequence: int
    sealed_until: str | None
    unsealed: int


class LatencyStats(Record, frozen=True, kw_only=True):
    """Latency of this node's most recent samples in the last hour; None without samples."""

    count: int
    average_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class BatchLatencyStats(LatencyStats, frozen=True, kw_only=True):
    average_size: float | None
    largest_size: int | None


class EngineStats(Record, frozen=True, kw_only=True):
    batches: BatchLatencyStats
    requests: LatencyStats


class LedgerState(Record, frozen=True, kw_only=True):
    last_proof: ProofRecord | None
    audit: AuditChainState


class Overview(Record, frozen=True, kw_only=True):
    currency: str
    timezone: str
    period: str
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


class LedgerClaim(Record, frozen=True, kw_only=True):
    claim: str
    holds: bool
    broken: int
    examples: list[str]


class LedgerProof(ProofRecord, frozen=True, kw_only=True):
    success: bool
    message: str
    claims: list[LedgerClaim]
