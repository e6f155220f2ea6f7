"""Account rules as returned and updated through the API.

The ledger's `AccountRule` holds the amounts in minor units.
"""

from typing import Annotated, Any

import msgspec

from tapgate import money
from tapgate.errors import ApiError, Code
from tapgate.ledger.rules import AccountRule
from tapgate.schemas.fields import Amount, AmountOrZero, ListLength, Text

_AMOUNT_FIELDS = ("max_balance", "max_transaction", "daily_limit", "monthly_limit", "no_pin_limit")
_LEVELS = {"1": 1, "2": 2, "3": 3}


class AccountRuleRecord(msgspec.Struct, frozen=True, kw_only=True):
    kyc_level: int
    currency: str
    max_balance: str
    max_transaction: str
    daily_limit: str
    monthly_limit: str
    no_pin_limit: str
    requirements: list[str]


class AccountRuleUpdate(msgspec.Struct, kw_only=True):
    """Fields to change. Omitted fields keep their value."""

    currency: Text | None = None
    max_balance: Amount | None = None
    max_transaction: Amount | None = None
    daily_limit: Amount | None = None
    monthly_limit: Amount | None = None
    no_pin_limit: AmountOrZero | None = None
    requirements: Annotated[list[Text], ListLength(0, 20)] | None = None


def to_record(rule: AccountRule, currency: str) -> AccountRuleRecord:
    amounts = {name: money.format_decimal(getattr(rule, name), currency) for name in _AMOUNT_FIELDS}
    return AccountRuleRecord(
        kyc_level=rule.kyc_level, currency=currency, requirements=rule.requirements, **amounts
    )


def apply_update(rule: AccountRule, update: AccountRuleUpdate, currency: str) -> AccountRule:
    """Return the updated rule, or raise an ApiError if the update is invalid."""
    if update.currency not in (None, currency):
        raise ApiError(Code.CURRENCY_NOT_SUPPORTED)
    changes: dict[str, Any] = {
        name: money.parse(amount, currency, allow_zero=True)
        for name in _AMOUNT_FIELDS
        if (amount := getattr(update, name)) is not None
    }
    if update.requirements is not None:
        changes["requirements"] = update.requirements
    after = msgspec.structs.replace(rule, **changes)
    if after.daily_limit > after.monthly_limit:
        fields = {
            "daily_limit": "must not be more than monthly_limit",
            "monthly_limit": "must not be less than daily_limit",
        }
        raise ApiError(
            Code.VALIDATION_FAILED,
            "The daily limit must not exceed the monthly limit.",
            details={"fields": fields},
        )
    return after


def parse_level(text: str) -> int:
    level = _LEVELS.get(text)
    if level is None:
        raise ApiError(Code.RULE_NOT_FOUND)
    return level
