"""The platform as a whole."""

import msgspec

from tapgate.client.records.base import Record


class Sums(Record, frozen=True, kw_only=True):
    """`amount` and `fees` are those of what was completed; a refunded payment was completed."""

    count: int
    completed: int
    failed: int
    under_review: int
    amount: str
    fees: str


class Totals(Sums, frozen=True, kw_only=True):
    #: Of what was decided: without what is under review. Null when there is nothing.
    success_rate: float | None


class Bucket(Sums, frozen=True, kw_only=True):
    start: str


class OfType(Sums, frozen=True, kw_only=True):
    type: str


class Decline(Record, frozen=True, kw_only=True):
    code: str
    count: int


class Cards(Record, frozen=True, kw_only=True):
    total: int
    active: int
    blocked: int
    lost: int
    unassigned: int
    expired: int


class Subscribers(Record, frozen=True, kw_only=True):
    total: int
    active: int
    blocked: int
    closed: int


class Agents(Record, frozen=True, kw_only=True):
    total: int
    active: int
    suspended: int
    terminated: int


class Held(Record, frozen=True, kw_only=True):
    """Whose money there is, all of it at one moment."""

    wallets: str
    agent_floats: str
    agent_commissions: str
    settlements: str
    clearing: str
    under_review: str  # kept from its payers, and part of what their accounts have


class Standing(Record, frozen=True, kw_only=True):
    as_of: str
    cards: Cards
    subscribers: Subscribers
    agents: Agents
    money: Held


class OpenAlerts(Record, frozen=True, kw_only=True):
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


class AuditChain(Record, frozen=True, kw_only=True):
    """Up to which entry the audit log is sealed; null before the first."""

    sealed_sequence: int
    sealed_until: str | None
    unsealed: int


class Speed(Record, frozen=True, kw_only=True):
    """Of this node in the last hour, the newest ones; null where there is none."""

    count: int
    average_ms: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class BatchSpeed(Speed, frozen=True, kw_only=True):
    average_size: float | None
    largest_size: int | None


class Engine(Record, frozen=True, kw_only=True):
    batches: BatchSpeed
    requests: Speed


class LedgerState(Record, frozen=True, kw_only=True):
    last_proof: ProofRecord | None
    audit: AuditChain


class Overview(Record, frozen=True, kw_only=True):
    currency: str
    timezone: str
    period: str
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


class Claim(Record, frozen=True, kw_only=True):
    claim: str
    holds: bool
    broken: int
    examples: list[str]


class LedgerProof(ProofRecord, frozen=True, kw_only=True):
    success: bool
    message: str
    claims: list[Claim]
