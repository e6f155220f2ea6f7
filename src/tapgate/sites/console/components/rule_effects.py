"""What a change of fee or commission rules means for example amounts, as approvers see it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from tapgate.business.payments.fees.model import parse_commission_rules, parse_fee_rules
from tapgate.ledger.rules.commission import calculate_commission
from tapgate.ledger.rules.fees import calculate_fee
from tapgate.sites.console.labels import humanize
from tapgate.sites.console.page_request import PageRequest
from tapgate_client import money
from tapgate_client.errors import ApiError
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.fees import CommissionRules, FeeRules

#: Example amounts, in whole units of the currency. Bounds of the rules are examples too.
_EXAMPLES: Final = (100, 1000, 10, 10_000, 1)
_MAX_PER_TYPE: Final = 3


class Effect(NamedTuple):
    """What an example costs or earns before and after the change, as decimal amounts."""

    label: str
    before: str
    after: str


def list_effects(request: PageRequest, approval: Mapping[str, Any]) -> list[Effect]:
    """Return the effects of a request that changes rules; [] for other requests."""
    changes = approval["changes"].get("data")
    if changes is None or approval.get("masked"):
        return []
    old, new = ({"data": rules or []} for rules in changes)
    try:
        if approval["operation"] == Operation.FEE_RULES:
            return _list_fee_effects(request, old, new)
        if approval["operation"] == Operation.COMMISSION_RULES:
            return _list_commission_effects(request, old, new)
    except (ApiError, ValueError, msgspec.ValidationError):
        return []  # rules of an earlier release, which are no longer valid
    return []


def _list_fee_effects(request: PageRequest, *rule_sets: Mapping[str, Any]) -> list[Effect]:
    currency = request.context.services.settings.currency
    before, after = (
        parse_fee_rules(msgspec.convert(rules, FeeRules), currency) for rules in rule_sets
    )
    effects: list[Effect] = []
    for kind in dict.fromkeys(tier.type for tier in (*after, *before)):
        old = [tier for tier in before if tier.type == kind]
        new = [tier for tier in after if tier.type == kind]
        bounds = [tier.up_to for tier in (*old, *new) if tier.up_to is not None]
        examples = {
            amount: (calculate_fee(old, amount)[0], calculate_fee(new, amount)[0])
            for amount in _list_examples(currency, bounds)
        }
        label = request.translator.translate_label(humanize(kind))
        effects += _build_effects(request, label, examples)
    return effects


def _list_commission_effects(request: PageRequest, *rule_sets: Mapping[str, Any]) -> list[Effect]:
    currency = request.context.services.settings.currency
    before, after = (
        {
            (rate.type, rate.tier): rate
            for rate in parse_commission_rules(msgspec.convert(rules, CommissionRules), currency)
        }
        for rules in rule_sets
    )
    effects: list[Effect] = []
    for kind, tier in dict.fromkeys((*after, *before)):
        old, new = before.get((kind, tier)), after.get((kind, tier))
        bounds = [rate.minimum_amount for rate in (old, new) if rate and rate.minimum_amount]
        examples = {
            amount: (
                calculate_commission(old, amount, 0, 0)[0],
                calculate_commission(new, amount, 0, 0)[0],
            )
            for amount in _list_examples(currency, bounds)
        }
        label = request.translate(
            "{type}, commission tier {tier}",
            type=request.translator.translate_label(humanize(kind)),
            tier=tier,
        )
        effects += _build_effects(request, label, examples)
    return effects


def _list_examples(currency: str, bounds: Iterable[int]) -> list[int]:
    """Return amounts to compare. One beyond each bound has the fee of the next tier."""
    examples = [money.from_whole_units(units, currency) for units in _EXAMPLES]
    return [*examples, *(amount for bound in bounds for amount in (bound, bound + 1))]


def _build_effects(
    request: PageRequest, label: str, examples: Mapping[int, tuple[int, int]]
) -> list[Effect]:
    """Return the first examples that differ, the smallest amount first."""
    currency = request.context.services.settings.currency
    changed = [amount for amount, (old, new) in examples.items() if old != new][:_MAX_PER_TYPE]
    return [
        Effect(
            request.translate(
                "{label} of {amount}",
                label=label,
                amount=money.format_money(amount, currency, request.translator.language),
            ),
            *(money.format_decimal(value, currency) for value in examples[amount]),
        )
        for amount in sorted(changed)
    ]
