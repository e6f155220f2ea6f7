"""A compliance rule as clients see it and change it. The ledger's `ComplianceRule` is what is left
of it when it is active."""

from typing import Annotated, Any

import msgspec

from tapgate import ids, money
from tapgate.compliance.severity import Severity
from tapgate.edge.fields import Choice, Count, Name, Rule, Text, Whole
from tapgate.errors import ApiError, Code, invalid_field
from tapgate.ledger import chart
from tapgate.ledger.rules import COUNTING, MAX_WINDOW_SECONDS

TransactionType = Annotated[str, Choice(*chart.TYPES)]

_MAX_COUNT = 1_000_000


class ThresholdRule(Rule):
    """An amount or a count: which of the two it must be is known only with the rule."""

    example = "500000.00"

    def check(self, value: str | int) -> str | int:
        return value

    def schema(self) -> dict[str, Any]:
        return {"description": "An amount as a decimal string, or a count, by the rule's type"}


class WatchRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule as it is kept; the threshold in minor units, or a count."""

    id: int
    name: str
    type: str
    transaction_types: list[str]
    threshold: int
    window_seconds: int | None
    action: str
    severity: str
    status: str

    @property
    def counts(self) -> bool:
        return self.type in COUNTING

    @property
    def public_id(self) -> str:
        return ids.show(ids.RULE, self.id)


class RuleRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    type: str
    transaction_types: list[str]
    threshold: str | int
    currency: str | None
    window_seconds: int | None
    action: str
    severity: str
    status: str


class Update(msgspec.Struct, kw_only=True):
    """What is to be changed; what is left out stays as it is."""

    name: Name | None = None
    transaction_types: Annotated[list[TransactionType], Count(1, 50)] | None = None
    threshold: Annotated[str | int, ThresholdRule()] | None = None
    currency: Text | None = None
    window_seconds: Annotated[int, Whole(1, MAX_WINDOW_SECONDS)] | None = None
    action: Annotated[str, Choice("alert", "review", "block")] | None = None
    severity: Severity | None = None
    status: Annotated[str, Choice("active", "inactive")] | None = None


def shown(rule: WatchRule, currency: str) -> RuleRecord:
    return RuleRecord(
        id=rule.public_id,
        name=rule.name,
        type=rule.type,
        transaction_types=rule.transaction_types,
        threshold=rule.threshold if rule.counts else money.plain(rule.threshold, currency),
        currency=None if rule.counts else currency,
        window_seconds=rule.window_seconds,
        action=rule.action,
        severity=rule.severity,
        status=rule.status,
    )


def updated(rule: WatchRule, update: Update, currency: str) -> WatchRule:
    """The rule as it shall be, or a refusal that names the field."""
    if update.currency not in (None, currency):
        raise ApiError(Code.CURRENCY_NOT_SUPPORTED)
    given: dict[str, Any] = {
        name: value
        for name in ("name", "window_seconds", "action", "severity", "status")
        if (value := getattr(update, name)) is not None
    }
    if update.window_seconds is not None and rule.window_seconds is None:
        raise invalid_field("window_seconds", f"does not belong to a rule of type {rule.type}")
    if update.transaction_types is not None:
        given["transaction_types"] = list(dict.fromkeys(update.transaction_types))
    if update.threshold is not None:
        read = _count if rule.counts else _amount
        given["threshold"] = read(update.threshold, currency)
    return msgspec.structs.replace(rule, **given)


def _amount(threshold: str | int, currency: str) -> int:
    if not isinstance(threshold, str):
        sentence = "must be a string"
        raise ApiError(
            Code.INVALID_REQUEST,
            f"threshold {sentence}",
            details={"fields": {"threshold": sentence}},
        )
    try:
        return money.parse(threshold, currency, allow_zero=True)
    except money.AmountError as error:
        raise invalid_field("threshold", str(error)) from None


def _count(threshold: str | int, _currency: str) -> int:
    """A number, or the same in digits."""
    if isinstance(threshold, str):
        digits = threshold.isascii() and threshold.isdigit() and len(threshold) <= 9
        threshold = int(threshold) if digits else -1
    if not 0 <= threshold <= _MAX_COUNT:
        raise invalid_field("threshold", f"must be a whole number from 0 to {_MAX_COUNT}")
    return threshold


def not_found() -> ApiError:
    return ApiError(Code.RULE_NOT_FOUND)


def read_id(text: str) -> int:
    number = ids.read(ids.RULE, text)
    if number is None:
        raise not_found()
    return number
