"""The list filters `from` and `to`, and days in the platform's time zone.

A bound is inclusive. It is a time, or a date in the platform's time zone.
"""

from datetime import date, datetime, time, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from tapgate_client.schemas.fields import DateRule, InvalidValueError, LogForm, Rule, TimestampRule

_DATE_LENGTH = len("2026-01-31")
#: Narrower than datetime's range, so that no time zone moves a bound out of that range.
_ALLOWED_YEARS = range(1000, 9999)


class PeriodBoundRule(Rule):
    log_form = LogForm.WORD
    example = "2026-01-31"
    _date_rule = DateRule()
    _timestamp_rule = TimestampRule()

    def check(self, value: str) -> str:
        rule: Rule = self._date_rule if len(value) <= _DATE_LENGTH else self._timestamp_rule
        try:
            normalized: str = rule.check(value)
            if int(normalized[:4]) not in _ALLOWED_YEARS:
                raise InvalidValueError("")
        except InvalidValueError:
            raise InvalidValueError(
                "must be a time such as 2026-01-31T12:00:00Z or a date such as 2026-01-31"
            ) from None
        return normalized

    def to_json_schema(self) -> dict[str, Any]:
        return {"description": "RFC 3339 time, or date in the platform's time zone; inclusive"}


class DayRule(DateRule):
    """Date of a day that starts and ends in the `datetime` range in every time zone."""

    example = "2026-01-31"

    def check(self, value: str) -> str:
        normalized = super().check(value)
        if int(normalized[:4]) not in _ALLOWED_YEARS:
            raise InvalidValueError("must be a date such as 2026-01-31")
        return normalized

    def to_json_schema(self) -> dict[str, Any]:
        return {"format": "date", "description": "Date in the platform's time zone"}


PeriodBound = Annotated[str, PeriodBoundRule()]
Day = Annotated[str, DayRule()]


def parse_period_start(bound: str | None, zone: ZoneInfo) -> datetime | None:
    """Return the inclusive start of a period with this bound, or None without a bound."""
    if bound is None:
        return None
    if len(bound) == _DATE_LENGTH:
        return datetime.combine(date.fromisoformat(bound), time(), zone)
    return datetime.fromisoformat(bound)


def parse_period_end(bound: str | None, zone: ZoneInfo) -> datetime | None:
    """Return the exclusive end of a period with this bound, or None without a bound."""
    if bound is None:
        return None
    if len(bound) == _DATE_LENGTH:
        return datetime.combine(date.fromisoformat(bound) + timedelta(days=1), time(), zone)
    # Times have millisecond precision: include the whole last millisecond.
    return datetime.fromisoformat(bound) + timedelta(milliseconds=1)
