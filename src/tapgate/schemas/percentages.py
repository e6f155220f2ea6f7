"""Percentages in requests and responses.

The API uses decimal strings. The ledger stores thousandths of a percent.
"""

import re
from typing import Annotated, Any, Final

from tapgate.schemas.fields import InvalidValueError, Rule

_RATE_PATTERN: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3})?", re.ASCII)
_MAX_RATE: Final = 100_000


class RateRule(Rule):
    """Percentage from 0 to 100, normalized without trailing zeros."""

    example = "1.5"

    def check(self, value: str) -> str:
        if _RATE_PATTERN.fullmatch(value) is None or parse_rate(value) > _MAX_RATE:
            raise InvalidValueError(
                "must be a percentage from 0 to 100 with at most 3 decimal places"
            )
        return format_rate(parse_rate(value))

    def to_json_schema(self) -> dict[str, Any]:
        return {"pattern": r"^[0-9]{1,3}(\.[0-9]{1,3})?$", "description": "Percent, 0 to 100"}


def parse_rate(text: str) -> int:
    whole, _, decimals = text.partition(".")
    return int(whole) * 1000 + int(decimals.ljust(3, "0") or 0)


def format_rate(rate: int) -> str:
    whole, decimals = divmod(rate, 1000)
    return f"{whole}.{decimals:03d}".rstrip("0").rstrip(".")


Rate = Annotated[str, RateRule()]
