"""Fee rules as clients read and replace them.

The ledger's `FeeStep` has amounts in minor units and rates in thousandths of a percent.
"""

from typing import Final

import msgspec

from tapgate import money
from tapgate.errors import ApiError, Code, invalid_field
from tapgate.ledger import chart
from tapgate.schemas.fees import FeeRule, FeeRules
from tapgate.schemas.percentages import format_rate, parse_rate

_FEE_EXEMPT_REASONS: Final[dict[str, str]] = {
    chart.REFUND: "must not have a fee: refunds return the full amount",
    chart.COMMISSION_PAYOUT: "must not have a fee: payouts empty the account",
    chart.AGENT_FUND: "must not have a fee: the platform makes the deposit",
    chart.PARTNER_DEPOSIT: "must not have a fee: the platform makes the deposit",
}


class StoredFeeStep(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    up_to: int | None
    rate: int
    payer: str


def to_record(steps: list[StoredFeeStep], currency: str) -> FeeRules:
    return FeeRules(
        data=[
            FeeRule(
                type=step.type,
                up_to=None if step.up_to is None else money.format_decimal(step.up_to, currency),
                rate=format_rate(step.rate),
                payer=step.payer,
            )
            for step in steps
        ]
    )


def parse_fee_rules(rules: FeeRules, currency: str) -> list[StoredFeeStep]:
    """Return the tiers to store, or raise an error that names every invalid field."""
    steps = [
        StoredFeeStep(
            type=step.type,
            up_to=None if step.up_to is None else money.parse(step.up_to, currency),
            rate=parse_rate(step.rate),
            payer=step.payer,
        )
        for step in rules.data
    ]
    problems: dict[str, str] = {}
    for kind in dict.fromkeys(step.type for step in steps):
        indexed_steps = [(index, step) for index, step in enumerate(steps) if step.type == kind]
        problems |= _validate_steps(kind, indexed_steps)
    if problems:
        message = "; ".join(f"{path} {text}" for path, text in problems.items())
        raise ApiError(Code.VALIDATION_FAILED, message, details={"fields": problems})
    return steps


def require_single_type(rules: FeeRules, kind: str) -> None:
    """Require that all tiers have the given type, so that a request changes no other type.

    A type that does not exist raises `RULE_NOT_FOUND`.
    """
    if kind not in chart.TRANSACTION_TYPES:
        raise ApiError(Code.RULE_NOT_FOUND)
    for index, step in enumerate(rules.data):
        if step.type != kind:
            raise invalid_field(f"data[{index}].type", f"must be {kind}")


def _validate_steps(kind: str, indexed_steps: list[tuple[int, StoredFeeStep]]) -> dict[str, str]:
    if kind in _FEE_EXEMPT_REASONS:
        return {f"data[{index}].type": _FEE_EXEMPT_REASONS[kind] for index, _ in indexed_steps}
    problems = {}
    (first_index, first), (last_index, last) = indexed_steps[0], indexed_steps[-1]
    if kind in chart.PAYMENT_TYPES and first.payer != "receiver":
        # A refund returns the fee to the processor, so the processor must have paid it.
        problems[f"data[{first_index}].payer"] = "must be receiver for payments to a processor"
    previous_bound: int | None = 0
    for index, step in indexed_steps:
        if step.payer != first.payer:
            problems[f"data[{index}].payer"] = "must be the same in all tiers of a type"
        if previous_bound is None:
            problems[f"data[{index}].up_to"] = "must not follow a tier without an upper bound"
        elif step.up_to is not None and step.up_to <= previous_bound:
            problems[f"data[{index}].up_to"] = "must be greater than in the previous tier"
        else:
            previous_bound = step.up_to
    if last.up_to is not None:
        problems.setdefault(f"data[{last_index}].up_to", "must be null in the last tier of a type")
    return problems
