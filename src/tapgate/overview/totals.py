"""Aggregation of a period's rollups: overall, per bucket, per type and per decline code."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec.structs import asdict

from tapgate import clock, money
from tapgate.overview.model import Bucket, DeclineCount, Totals, TransactionTotals, TypeTotals
from tapgate.overview.queries import Rollup


def build_totals(figures: Sequence[Rollup], currency: str) -> Totals:
    sums = _sum_rollups(figures, currency)
    decided = sums.completed + sums.failed
    rate = round(sums.completed / decided, 4) if decided else None
    return Totals(**asdict(sums), success_rate=rate)


def build_buckets(
    figures: Sequence[Rollup], starts: Sequence[datetime], currency: str
) -> list[Bucket]:
    parts: list[list[Rollup]] = [[] for _ in starts]
    for figure in figures:
        parts[figure.bucket - 1].append(figure)
    return [
        Bucket(**asdict(_sum_rollups(part, currency)), start=clock.format_rfc3339(start))
        for part, start in zip(parts, starts, strict=True)
    ]


def build_type_totals(figures: Sequence[Rollup], currency: str) -> list[TypeTotals]:
    parts: dict[str, list[Rollup]] = {}
    for figure in figures:
        parts.setdefault(figure.type, []).append(figure)
    found = [
        TypeTotals(**asdict(_sum_rollups(part, currency)), type=type_)
        for type_, part in parts.items()
    ]
    return sorted(found, key=lambda one: (-one.count, one.type))


def count_declines(figures: Sequence[Rollup]) -> list[DeclineCount]:
    codes: Counter[str] = Counter()
    for figure in figures:
        if figure.outcome == "failed" and figure.failure_code is not None:
            codes[figure.failure_code] += figure.transactions
    ordered = sorted(codes.items(), key=lambda one: (-one[1], one[0]))
    return [DeclineCount(code=code, count=count) for code, count in ordered]


def _sum_rollups(figures: Iterable[Rollup], currency: str) -> TransactionTotals:
    counts: Counter[str] = Counter()
    amount = fees = 0
    for figure in figures:
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
