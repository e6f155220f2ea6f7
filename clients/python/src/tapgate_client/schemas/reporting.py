"""Overview and ledger verification requests and responses."""

from enum import StrEnum
from typing import Annotated, Final

import msgspec

from tapgate_client.schemas.chat import UnavailableService
from tapgate_client.schemas.periods import Day
from tapgate_client.schemas.transactions import MoneyFlow, TransactionType
from tapgate_client.schemas.values import (
    BalanceAmount,
    CurrencyCode,
    Example,
    Id,
    Money,
    Time,
    Word,
)


class OverviewPeriod(StrEnum):
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    #: The days from `from` to `to`.
    CUSTOM = "custom"


#: The longest custom period, in days.
MAX_OVERVIEW_DAYS: Final = 92


class OverviewQuery(msgspec.Struct, kw_only=True):
    period: OverviewPeriod = OverviewPeriod.DAY
    from_: Day | None = msgspec.field(default=None, name="from")
    to: Day | None = None


class TransactionTotals(msgspec.Struct, kw_only=True):
    """Transaction counts, volume and fees.

    `amount` and `fees` cover completed transactions only. A refunded payment counts as completed.
    """

    count: int
    completed: int
    failed: int
    under_review: int
    amount: Money
    fees: Annotated[str, Example("5.00")]


class Totals(TransactionTotals, kw_only=True):
    #: Completed transactions divided by completed and failed ones; null if there are neither.
    success_rate: float | None


class Bucket(TransactionTotals, kw_only=True):
    start: Time
    payments: str  # payment volume


class TypeTotals(TransactionTotals, kw_only=True):
    type: TransactionType


class FlowTotals(TransactionTotals, kw_only=True):
    flow: MoneyFlow


class PreviousPeriod(msgspec.Struct, kw_only=True):
    """The preceding period with the same length, up to the same time in its last day or hour."""

    from_: Annotated[str, Example("2026-01-01")] = msgspec.field(name="from")
    to: Annotated[str, Example("2026-01-31")]
    totals: Totals
    flows: list[FlowTotals]
    buckets: list[Bucket]


class DeclineCount(msgspec.Struct, kw_only=True):
    code: Word
    count: int


class ServiceDemand(msgspec.Struct, kw_only=True):
    """Requests in the chat for a service that is not offered, and the customers who asked."""

    service: UnavailableService
    requests: int
    customers: int


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

    wallets: BalanceAmount
    agent_floats: BalanceAmount
    agent_commissions: BalanceAmount
    settlements: BalanceAmount
    clearing: Annotated[str, Example("0.00")]
    under_review: BalanceAmount  # held funds, which are included in the payers' account balances


class PlatformSnapshot(msgspec.Struct, kw_only=True):
    as_of: Time
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
    proven_at: Time
    holds: bool
    seconds: float
    transactions: int
    entries: int
    accounts: int


class AuditChainState(msgspec.Struct, kw_only=True):
    """The audit log's last sealed entry, and the number of unsealed entries (at most 100,000).

    `sealed_until` is the last sealed entry's time. It is null before the first seal.
    """

    sealed_sequence: int
    sealed_until: Time | None
    unsealed: int


class LatencyStats(msgspec.Struct, kw_only=True):
    """Latencies from this node's most recent samples within the last hour.

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
    currency: CurrencyCode
    timezone: Annotated[str, Example("Africa/Freetown")]
    period: OverviewPeriod
    from_: Annotated[str, Example("2026-01-31T00:00:00.000Z")] = msgspec.field(name="from")
    to: Annotated[str, Example("2026-01-31T12:00:00.000Z")]
    totals: Totals
    previous: PreviousPeriod
    buckets: list[Bucket]
    flows: list[FlowTotals]
    by_type: list[TypeTotals]
    declines: list[DeclineCount]
    unavailable_services: list[ServiceDemand]
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


class OnboardingStepName(StrEnum):
    CARDS = "cards"
    AGENT = "agent"
    FLOAT = "float"
    CUSTOMER = "customer"
    MERCHANT = "merchant"
    PAYMENT = "payment"
    WEBHOOK = "webhook"
    SECOND_ADMIN = "second_admin"
    APPROVAL_RULES = "approval_rules"


class OnboardingStep(msgspec.Struct, frozen=True, kw_only=True):
    name: OnboardingStepName
    done: bool


class Onboarding(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of setting up a new installation, with the newest agent and processor."""

    open: bool
    steps: list[OnboardingStep]
    agent_id: Id | None
    processor_id: Id | None
