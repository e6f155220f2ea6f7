"""Aggregates a period's rollups: overall, per bucket, per type and per failure code."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec.structs import asdict

from tapgate.business.reporting.queries import Rollup
from tapgate_client import clock, money
from tapgate_client.schemas.reporting import (
    Bucket,
    DeclineCount,
    FlowTotals,
    Totals,
    TransactionTotals,
    TypeTotals,
)
from tapgate_client.schemas.transactions import (
    FLOW_TYPES,
    MoneyFlow,
    TransactionStatus,
    TransactionType,
)


def build_totals(rollups: Sequence[Rollup], currency: str) -> Totals:
    totals = _sum_rollups(rollups, currency)
    decided = totals.completed + totals.failed
    rate = round(totals.completed / decided, 4) if decided else None
    return Totals(**asdict(totals), success_rate=rate)


def build_buckets(
    rollups: Sequence[Rollup], starts: Sequence[datetime], currency: str
) -> list[Bucket]:
    groups: list[list[Rollup]] = [[] for _ in starts]
    for rollup in rollups:
        groups[rollup.bucket - 1].append(rollup)
    return [
        Bucket(
            **asdict(_sum_rollups(group, currency)),
            start=clock.format_rfc3339(start),
            payments=_sum_rollups(
                (item for item in group if item.type in FLOW_TYPES[MoneyFlow.PAYMENTS]), currency
            ).amount,
        )
        for group, start in zip(groups, starts, strict=True)
    ]


def build_type_totals(rollups: Sequence[Rollup], currency: str) -> list[TypeTotals]:
    groups: dict[TransactionType, list[Rollup]] = {}
    for rollup in rollups:
        groups.setdefault(rollup.type, []).append(rollup)
    totals = [
        TypeTotals(**asdict(_sum_rollups(group, currency)), type=type_)
        for type_, group in groups.items()
    ]
    return sorted(totals, key=lambda item: (-item.count, item.type))


def build_flow_totals(rollups: Sequence[Rollup], currency: str) -> list[FlowTotals]:
    """Return the totals of each flow of money, also of those without transactions."""
    return [
        FlowTotals(
            **asdict(_sum_rollups((item for item in rollups if item.type in types), currency)),
            flow=flow,
        )
        for flow, types in FLOW_TYPES.items()
    ]


def count_declines(rollups: Sequence[Rollup]) -> list[DeclineCount]:
    codes: Counter[str] = Counter()
    for rollup in rollups:
        if rollup.outcome == TransactionStatus.FAILED and rollup.failure_code is not None:
            codes[rollup.failure_code] += rollup.transactions
    ordered = sorted(codes.items(), key=lambda item: (-item[1], item[0]))
    return [DeclineCount(code=code, count=count) for code, count in ordered]


def _sum_rollups(rollups: Iterable[Rollup], currency: str) -> TransactionTotals:
    counts: Counter[str] = Counter()
    amount = fees = 0
    for rollup in rollups:
        counts[rollup.outcome] += rollup.transactions
        if rollup.outcome == TransactionStatus.COMPLETED:
            amount += rollup.amount
            fees += rollup.fees
    return TransactionTotals(
        count=counts.total(),
        completed=counts[TransactionStatus.COMPLETED],
        failed=counts[TransactionStatus.FAILED],
        under_review=counts[TransactionStatus.UNDER_REVIEW],
        amount=money.format_decimal(amount, currency),
        fees=money.format_decimal(fees, currency),
    )
