"""Spending and balance limits of a subscriber, with current usage."""

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from tapgate import clock, money
from tapgate.ledger.allowance import Allowance
from tapgate.schemas.subscribers import Limits, LimitUsage


def to_record(allowance: Allowance, currency: str, zone: ZoneInfo) -> Limits:
    limits, day = allowance.limits, allowance.day
    tomorrow = day + timedelta(days=1)
    next_month = (day.replace(day=1) + timedelta(days=31)).replace(day=1)

    def build_usage(limit: int, used: int, resets_on: date) -> LimitUsage:
        return LimitUsage(
            limit=money.format_decimal(limit, currency),
            used=money.format_decimal(used, currency),
            remaining=money.format_decimal(max(limit - used, 0), currency),
            resets_at=clock.format_rfc3339(datetime.combine(resets_on, time(), zone)),
        )

    return Limits(
        kyc_level=limits.kyc_level,
        currency=currency,
        per_transaction=money.format_decimal(limits.max_transaction, currency),
        daily=build_usage(limits.daily_limit, allowance.day_used, tomorrow),
        monthly=build_usage(limits.monthly_limit, allowance.month_used, next_month),
        max_balance=money.format_decimal(limits.max_balance, currency),
    )
