"""Compiles a type's field rules into one check function for decoded values."""

from collections.abc import Callable
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from tapgate.core.phone_numbers import normalize_phone_number
from tapgate_client.phone_numbers import PhoneNumberError
from tapgate_client.schemas.fields import (
    INTEGER_RULE,
    OBJECT_RULE,
    TEXT_RULE,
    InvalidValueError,
    PhoneRule,
    Rule,
    get_enum_rule,
)

#: Returns the normalized value. Raises InvalidValueError with the problems found.
Check = Callable[[Any], Any]

#: A list check stops at this many problems, so that a list of invalid items cannot cause a response
#: of several megabytes.
_MAX_PROBLEMS = 20

_DEFAULT_RULES: dict[Any, Rule] = {str: TEXT_RULE, int: INTEGER_RULE, dict: OBJECT_RULE}
_UNCHECKED_TYPES = frozenset({bool, float})
#: Types of absent fields. A response omits a field that is unset.
_ABSENT_TYPES = frozenset({NoneType, msgspec.UnsetType})


def get_rule_and_type(kind: Any) -> tuple[Rule | None, Any]:
    """Return the rule and X for a type such as `Annotated[X, rule] | None`.

    Without an annotated rule, return the default rule for X, or None if X has none.
    """
    rule: Rule | None = None
    while True:
        origin = get_origin(kind)
        if origin is Annotated:
            kind, *notes = get_args(kind)
            rule = next((note for note in notes if isinstance(note, Rule)), rule)
        elif origin in (Union, UnionType):
            choices = [choice for choice in get_args(kind) if choice not in _ABSENT_TYPES]
            if len(choices) != 1:
                return rule, kind  # the rule, if any, handles every union member
            (kind,) = choices
        else:
            return rule or get_default_rule(origin or kind), kind


def get_default_rule(kind: Any) -> Rule | None:
    """Return the rule for a type without an annotated rule, or None."""
    return get_enum_rule(kind) if is_enum(kind) else _DEFAULT_RULES.get(kind)


def is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def compile_check(kind: Any, currency: str) -> Check | None:
    """Return the check for a type, or None if every value is valid."""
    rule, bare = get_rule_and_type(kind)
    own_check = None if rule is None else _get_check(rule, currency)
    if is_struct(bare):
        return _compile_struct_check(bare, currency)
    if get_origin(bare) is list:
        return _compile_list_check(compile_check(get_args(bare)[0], currency), own_check)
    if is_enum(bare) and rule is get_enum_rule(bare):
        return None  # the decoder accepts only enum values
    if own_check is None and bare not in _UNCHECKED_TYPES:
        raise TypeError(f"{bare} needs a rule that defines the accepted values")
    return own_check


def _get_check(rule: Rule, currency: str) -> Check:
    check = rule.for_currency(currency).check
    if isinstance(rule, PhoneRule):
        return lambda value: _normalize_phone_number(check(value))
    return check


def _normalize_phone_number(value: str) -> str:
    """Apply numbering plan rules, for which the schemas have no tables."""
    try:
        return normalize_phone_number(value)
    except PhoneNumberError as error:
        raise InvalidValueError(str(error)) from None


@cache
def _compile_struct_check(kind: type[msgspec.Struct], currency: str) -> Check:
    if kind.__struct_config__.frozen:
        raise TypeError(f"{kind.__name__} must not be frozen: checks store normalized values")
    fields = msgspec.structs.fields(kind)
    for field in fields:
        if NoneType in get_args(field.type) and field.default not in (None, msgspec.NODEFAULT):
            raise TypeError(f"{kind.__name__}.{field.name}: a nullable field must default to None")
    plan = [
        (field.name, field.encode_name, check)
        for field in fields
        if (check := compile_check(field.type, currency)) is not None
    ]

    def check_struct(struct: Any) -> Any:
        problems: dict[str, str] = {}
        for name, encoded_name, check in plan:
            value = getattr(struct, name)
            if value is None or value is msgspec.UNSET:
                continue
            try:
                normalized = check(value)
            except InvalidValueError as error:
                problems.update(error.prefix_paths(encoded_name))
            else:
                if normalized is not value:
                    setattr(struct, name, normalized)
        if problems:
            raise InvalidValueError(problems)
        return struct

    return check_struct


def _compile_list_check(item_check: Check | None, length_check: Check | None) -> Check:
    def check_list(items: list[Any]) -> list[Any]:
        if length_check is not None:
            items = length_check(items)  # first, because there may be too many items to check
        problems: dict[str, str] = {}
        if item_check is not None:
            for position, item in enumerate(items):
                try:
                    items[position] = item_check(item)
                except InvalidValueError as error:
                    problems.update(error.prefix_paths(f"[{position}]"))
                    if len(problems) >= _MAX_PROBLEMS:
                        break
        if problems:
            raise InvalidValueError(problems)
        return items

    return check_list
