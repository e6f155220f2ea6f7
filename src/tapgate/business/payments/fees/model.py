"""Conversion and validation of fee rules and commission rules.

Clients send decimal strings. The ledger has amounts in minor units and rates in thousandths of a
percent.
"""

from typing import Final

import msgspec

from tapgate.ledger import chart
from tapgate.ledger.rules.commission import CommissionRate
from tapgate.ledger.rules.fees import FeeTier
from tapgate_client import money
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.fees import (
    CommissionRule,
    CommissionRules,
    FeeRule,
    FeeRules,
    format_rate,
    parse_rate,
)
from tapgate_client.schemas.transactions import FeePayer

FEE_EXEMPT_REASONS: Final[dict[str, str]] = {
    chart.REFUND: "must not have a fee: refunds return the full amount",
    chart.REVERSAL: "must not have a fee: reversals undo a transaction",
    chart.COMMISSION_PAYOUT: "must not have a fee: payouts empty the account",
    chart.AGENT_FUND: "must not have a fee: the platform makes the deposit",
    chart.PARTNER_DEPOSIT: "must not have a fee: the platform makes the deposit",
    chart.PAYOUT_RETURN: "must not have a fee: returns give the full amount back",
    chart.BANK_POSTING: "must not have a fee: no holder takes part",
}


def to_fee_rules(tiers: list[FeeTier], currency: str) -> FeeRules:
    return FeeRules(
        data=[
            FeeRule(
                type=tier.type,
                up_to=None if tier.up_to is None else money.format_decimal(tier.up_to, currency),
                rate=format_rate(tier.rate),
                payer=tier.payer,
                fixed=_format_part(tier.fixed or None, currency),
                minimum=_format_part(tier.minimum or None, currency),
                maximum=_format_part(tier.maximum, currency),
            )
            for tier in tiers
        ]
    )


def _format_part(amount: int | None, currency: str) -> str | msgspec.UnsetType:
    return msgspec.UNSET if amount is None else money.format_decimal(amount, currency)


def _parse_part(text: str | msgspec.UnsetType, currency: str) -> int | None:
    return money.parse(text, currency, allow_zero=True) if isinstance(text, str) else None


def to_commission_rules(rates: list[CommissionRate], currency: str) -> CommissionRules:
    return CommissionRules(
        data=[
            CommissionRule(
                type=rate.type,
                tier=rate.tier,
                rate=format_rate(rate.rate),
                minimum_amount=money.format_decimal(rate.minimum_amount, currency),
            )
            for rate in rates
        ]
    )


def parse_fee_rules(rules: FeeRules, currency: str) -> list[FeeTier]:
    """Return the tiers to store, or raise an error that names every invalid field."""
    tiers = [
        FeeTier(
            type=rule.type,
            up_to=None if rule.up_to is None else money.parse(rule.up_to, currency),
            rate=parse_rate(rule.rate),
            payer=rule.payer,
            fixed=_parse_part(rule.fixed, currency) or 0,
            minimum=_parse_part(rule.minimum, currency) or 0,
            maximum=_parse_part(rule.maximum, currency),
        )
        for rule in rules.data
    ]
    problems: dict[str, str] = {
        f"data[{index}].maximum": "must not be less than the minimum"
        for index, tier in enumerate(tiers)
        if tier.maximum is not None and tier.maximum < tier.minimum
    }
    for kind in dict.fromkeys(tier.type for tier in tiers):
        indexed_tiers = [(index, tier) for index, tier in enumerate(tiers) if tier.type == kind]
        problems |= _validate_tiers(kind, indexed_tiers)
    _require_no_problems(problems)
    return tiers


def parse_commission_rules(rules: CommissionRules, currency: str) -> list[CommissionRate]:
    """Return the rates to store. Reject more than one rule for the same type and tier."""
    seen: set[tuple[str, int]] = set()
    problems: dict[str, str] = {}
    for index, rule in enumerate(rules.data):
        if (rule.type, rule.tier) in seen:
            problems[f"data[{index}].tier"] = f"is a duplicate for {rule.type}"
        seen.add((rule.type, rule.tier))
    _require_no_problems(problems)
    return [
        CommissionRate(
            type=rule.type,
            tier=rule.tier,
            rate=parse_rate(rule.rate),
            minimum_amount=money.parse(rule.minimum_amount, currency, allow_zero=True),
        )
        for rule in rules.data
    ]


def _require_no_problems(problems: dict[str, str]) -> None:
    if problems:
        message = "; ".join(f"{path} {text}" for path, text in problems.items())
        raise ApiError(Code.VALIDATION_FAILED, message, details={"fields": problems})


def require_single_type(rules: FeeRules, kind: str) -> None:
    """Require that all tiers have the given type, so that a request changes no other type.

    A type that does not exist raises `RULE_NOT_FOUND`.
    """
    if kind not in chart.TRANSACTION_TYPES:
        raise ApiError(Code.RULE_NOT_FOUND)
    for index, rule in enumerate(rules.data):
        if rule.type != kind:
            raise invalid_field(f"data[{index}].type", f"must be {kind}")


def _validate_tiers(kind: str, indexed_tiers: list[tuple[int, FeeTier]]) -> dict[str, str]:
    if kind in FEE_EXEMPT_REASONS:
        return {f"data[{index}].type": FEE_EXEMPT_REASONS[kind] for index, _ in indexed_tiers}
    problems = {}
    (first_index, first), (last_index, last) = indexed_tiers[0], indexed_tiers[-1]
    if kind in chart.PAYMENT_TYPES and first.payer != FeePayer.RECEIVER:
        # A refund returns the fee to the processor, so the processor must have paid it.
        problems[f"data[{first_index}].payer"] = "must be receiver for payments to a processor"
    if kind == chart.PAYOUT and first.payer != FeePayer.SENDER:
        problems[f"data[{first_index}].payer"] = "must be sender: the owner pays for a payout"
    if kind == chart.BATCH_CREDIT and first.payer != FeePayer.SENDER:
        problems[f"data[{first_index}].payer"] = "must be sender: receivers get the full amount"
    previous_bound: int | None = 0
    for index, tier in indexed_tiers:
        if tier.payer != first.payer:
            problems[f"data[{index}].payer"] = "must be the same in all tiers of a type"
        if previous_bound is None:
            problems[f"data[{index}].up_to"] = "must not follow a tier without an upper bound"
        elif tier.up_to is not None and tier.up_to <= previous_bound:
            problems[f"data[{index}].up_to"] = "must be greater than in the previous tier"
        else:
            previous_bound = tier.up_to
    if last.up_to is not None:
        problems.setdefault(f"data[{last_index}].up_to", "must be null in the last tier of a type")
    return problems
