"""Fields that an empty string resets."""

from typing import Any

from tapgate_client.schemas.fields import IntegerRange, InvalidValueError, Rule


class OrEmptyRule(Rule):
    """Wraps a rule to also accept an empty string, which resets the field to its default."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.example = rule.example
        self.max_json_bytes = rule.max_json_bytes
        self.log_form = rule.log_form

    def for_currency(self, currency: str) -> Rule:
        return OrEmptyRule(self.rule.for_currency(currency))

    def check(self, value: Any) -> Any:
        if value == "":
            return value
        if isinstance(self.rule, IntegerRange) and not isinstance(value, int):
            raise InvalidValueError("must be a whole number or empty")
        return self.rule.check(value)

    def to_json_schema(self) -> dict[str, Any]:
        description = {"description": "An empty string resets the field to its default."}
        if isinstance(self.rule, IntegerRange):
            return self.rule.to_json_schema() | {"pattern": "^$"} | description
        return description
