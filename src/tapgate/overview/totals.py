"""Aggregation of a period's rollups: overall, per bucket, per type and per decline code."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec.structs import asdict

from tapgate import clock, money
from tapgate.overview.model import Bucket, DeclineCount, Totals, TransactionTotals, TypeTotals
from tapgate.overview.queries import Rollup


def build_totals(rollups: Sequence[Rollup], currency: str) -> Totals:
    sums = _sum_rollups(rollups, currency)
    decided = sums.completed + sums.failed
    rate = round(sums.completed / decided, 4) if decided else None
    return Totals(**asdict(sums), success_rate=rate)


def build_buckets(
    rollups: Sequence[Rollup], starts: Sequence[datetime], currency: str
) -> list[Bucket]:
    parts: list[list[Rollup]] = [[] for _ in starts]
    for figure in rollups:
        parts[figure.bucket - 1].append(figure)
    return [
        Bucket(**asdict(_sum_rollups(part, currency)), start=clock.format_rfc3339(start))
        for part, start in zip(parts, starts, strict=True)
    ]


def build_type_totals(rollups: Sequence[Rollup], currency: str) -> list[TypeTotals]:
    parts: dict[str, list[Rollup]] = {}
    for figure in rollups:
        parts.setdefault(figure.type, []).append(figure)
    found = [
        TypeTotals(**asdict(_sum_rollups(part, currency)), type=type_)
        for type_, part in parts.items()
    ]
    return sorted(found, key=lambda item: (-item.count, item.type))


def count_declines(rollups: Sequence[Rollup]) -> list[DeclineCount]:
    codes: Counter[str] = Counter()
    for figure in rollups:
        if figure.outcome == "failed" and figure.failure_code is not None:
            codes[figure.failure_code] += figure.transactions
    ordered = sorted(codes.items(), key=lambda item: (-item[1], item[0]))
    return [DeclineCount(code=code, count=count) for code, count in ordered]


def _sum_rollups(rollups: Iterable[Rollup], currency: str) -> TransactionTotals:
    counts: Counter[str] = Counter()
    amount = fees = 0
    for figure in rollups:
        counts[figure.outcome] += figure.transactions
        if figure.outcome == "completed":
            amount += figure.amount
            fees += figure.fees
    return TransactionTotals(
        count=counts.total(),
        completed=counts["completed"],
        failed=counts["failed"],
        under_review=counts["under_review"],
        amount=money.format_decimal(amount, currency),
        fees=money.format_decimal(fees, currency),
    )
