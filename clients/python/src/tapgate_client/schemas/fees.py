"""Fee rules and commission rules, as clients read and replace them.

Rates are percentages: decimal strings in the API, thousandths of a percent in the ledger.
"""

import re
from typing import Annotated, Any, Final

import msgspec

from tapgate_client.schemas.agents import CommissionTier
from tapgate_client.schemas.fields import (
    Amount,
    AmountOrZero,
    Choice,
    InvalidValueError,
    ListLength,
    LogForm,
    Rule,
)
from tapgate_client.schemas.transactions import FeePayer, TransactionType

_RATE_PATTERN: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3})?", re.ASCII)
_MAX_RATE: Final = 100_000


class RateRule(Rule):
    """Percentage from 0 to 100, normalized without trailing zeros."""

    example = "1.5"
    log_form = LogForm.NUMBER

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


class FeeRule(msgspec.Struct, kw_only=True):
    """Fee tier: the fee for amounts above the previous tier, up to `up_to` (null: no limit).

    The fee is `fixed` plus `rate` percent of the amount, at least `minimum` and at most `maximum`.
    A receiver never pays more than the amount. Absent parts do not apply, and the response omits
    them.
    """

    type: TransactionType
    up_to: Amount | None = None
    rate: Rate
    payer: FeePayer
    fixed: AmountOrZero | msgspec.UnsetType = msgspec.UNSET
    minimum: AmountOrZero | msgspec.UnsetType = msgspec.UNSET
    maximum: AmountOrZero | msgspec.UnsetType = msgspec.UNSET


class FeeRules(msgspec.Struct, kw_only=True):
    data: Annotated[list[FeeRule], ListLength(0, 500)]


class CommissionRule(msgspec.Struct, kw_only=True):
    """Commission for one transaction type and tier. Amounts below the minimum earn nothing."""

    type: Annotated[
        TransactionType,
        Choice(TransactionType.AGENT_CASHIN, TransactionType.AGENT_CASHOUT, name="CommissionType"),
    ]
    tier: CommissionTier
    rate: Rate
    minimum_amount: AmountOrZero


class CommissionRules(msgspec.Struct, kw_only=True):
    # Two types with three tiers each.
    data: Annotated[list[CommissionRule], ListLength(0, 6)]
