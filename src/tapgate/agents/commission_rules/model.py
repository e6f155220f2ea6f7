"""Commission rules as accepted and returned by the API, and as stored.

The ledger stores amounts in minor units and rates in thousandths of a percent.
"""

from typing import Final

import msgspec

from tapgate import money
from tapgate.errors import ApiError, Code
from tapgate.schemas.fees import CommissionRule, CommissionRules
from tapgate.schemas.percentages import format_rate, parse_rate

_MAX_RULES: Final = 6  # two types, three tiers


class StoredRule(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    tier: int
    rate: int
    minimum_amount: int


def to_record(rules: list[StoredRule], currency: str) -> CommissionRules:
    return CommissionRules(
        data=[
            CommissionRule(
                type=rule.type,
                tier=rule.tier,
                rate=format_rate(rule.rate),
                minimum_amount=money.format_decimal(rule.minimum_amount, currency),
            )
            for rule in rules
        ]
    )


def from_request(rules: CommissionRules, currency: str) -> list[StoredRule]:
    """Return the rules to store. Reject more than one rule for the same type and tier."""
    seen: set[tuple[str, int]] = set()
    problems: dict[str, str] = {}
    for index, rule in enumerate(rules.data):
        if (rule.type, rule.tier) in seen:
            problems[f"data[{index}].tier"] = f"is a duplicate for {rule.type}"
        seen.add((rule.type, rule.tier))
    if problems:
        message = "; ".join(f"{path} {text}" for path, text in problems.items())
        raise ApiError(Code.VALIDATION_FAILED, message, details={"fields": problems})
    return [
        StoredRule(
            type=rule.type,
            tier=rule.tier,
            rate=parse_rate(rule.rate),
            minimum_amount=money.parse(rule.minimum_amount, currency, allow_zero=True),
        )
        for rule in rules.data
    ]
