"""What the figures of a period add up to: in all, over time, by type, by what stood in the way."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec.structs import asdict

from tapgate import clock, money
from tapgate.overview.model import Bucket, Decline, OfType, Sums, Totals
from tapgate.overview.queries import Figure


def totals(figures: Sequence[Figure], currency: str) -> Totals:
    sums = _sums(figures, currency)
    decided = sums.completed + sums.failed
    rate = round(sums.completed / decided, 4) if decided else None
    return Totals(**asdict(sums), success_rate=rate)


def buckets(figures: Sequence[Figure], starts: Sequence[datetime], currency: str) -> list[Bucket]:
    parts: list[list[Figure]] = [[] for _ in starts]
    for figure in figures:
        parts[figure.bucket - 1].append(figure)
    return [
        Bucket(**asdict(_sums(part, currency)), start=clock.rfc3339(start))
        for part, start in zip(parts, starts, strict=True)
    ]


def types(figures: Sequence[Figure], currency: str) -> list[OfType]:
    parts: dict[str, list[Figure]] = {}
    for figure in figures:
        parts.setdefault(figure.type, []).append(figure)
    found = [OfType(**asdict(_sums(part, currency)), type=type_) for type_, part in parts.items()]
    return sorted(found, key=lambda one: (-one.count, one.type))


def declines(figures: Sequence[Figure]) -> list[Decline]:
    codes: Counter[str] = Counter()
    for figure in figures:
        if figure.outcome == "failed" and figure.failure_code is not None:
            codes[figure.failure_code] += figure.transactions
    ordered = sorted(codes.items(), key=lambda one: (-one[1], one[0]))
    return [Decline(code=code, count=count) for code, count in ordered]


def _sums(figures: Iterable[Figure], currency: str) -> Sums:
    counts: Counter[str] = Counter()
    amount = fees = 0
    for figure in figures:
        counts[figure.outcome] += figure.transactions
        if figure.outcome == "completed":
            amount += figure.amount
            fees += figure.fees
    return Sums(
        count=counts.total(),
        completed=counts["completed"],
        failed=counts["failed"],
        under_review=counts["under_review"],
        amount=money.plain(amount, currency),
        fees=money.plain(fees, currency),
    )
