"""Public records and updates of account rules.

The ledger's `AccountRule` holds the amounts in minor units.
"""

from typing import Any

import msgspec

from tapgate.ledger.rules.kyc_limits import AccountRule
from tapgate_client import money
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.compliance import AccountRuleRecord, AccountRuleUpdate

_AMOUNT_FIELDS = ("max_balance", "max_transaction", "daily_limit", "monthly_limit", "no_pin_limit")
_LEVELS = {"1": 1, "2": 2, "3": 3}


def to_record(rule: AccountRule, currency: str) -> AccountRuleRecord:
    amounts = {name: money.format_decimal(getattr(rule, name), currency) for name in _AMOUNT_FIELDS}
    threshold = rule.proof_required_above
    return AccountRuleRecord(
        kyc_level=rule.kyc_level,
        currency=currency,
        requirements=rule.requirements,
        proof_required_above=None
        if threshold is None
        else money.format_decimal(threshold, currency),
        **amounts,
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
    if update.proof_required_above is not None:
        threshold = update.proof_required_above
        changes["proof_required_above"] = (
            money.parse(threshold, currency, allow_zero=True) if threshold else None
        )
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
