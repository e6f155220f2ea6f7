"""Limits on stored free-form JSON objects: size, depth, numbers and characters."""

from decimal import Decimal
from typing import Any, Final

import msgspec

MAX_BYTES: Final = 4096
_MAX_DEPTH: Final = 32
_MAX_INTEGER: Final = 2**53
_MAX_NUMBER: Final = 1e15

_TOO_LARGE: Final = "must be at most 4 KiB"
_NUMBER_TOO_LARGE: Final = "must not contain integers beyond 2^53 or numbers beyond 1e15"


def find_problem(value: dict[str, Any]) -> str | None:
    """Return why an object cannot be stored, or None.

    The encoded size is checked before the object is traversed, and the size in jsonb afterwards.
    """
    try:
        size = len(msgspec.json.encode(value))
    except OverflowError:  # an integer of more than 64 bits
        return _NUMBER_TOO_LARGE
    if size > MAX_BYTES:
        return _TOO_LARGE
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH):
        if not level:
            return _TOO_LARGE if size > MAX_BYTES else None
        for item in level:
            problem = _find_item_problem(item)
            if problem is not None:
                return problem
            if type(item) is float:
                size += _count_extra_characters(item)
        level = [member for item in level for member in _list_children(item)]
    return "is nested too deeply"


def _list_children(item: Any) -> list[Any]:
    if type(item) is dict:
        return [*item.keys(), *item.values()]
    return item if type(item) is list else []


def _find_item_problem(item: Any) -> str | None:
    kind = type(item)
    if kind is str:
        return "must not contain NUL or unpaired surrogates" if "\0" in item else None
    if (kind is int and abs(item) > _MAX_INTEGER) or (kind is float and abs(item) > _MAX_NUMBER):
        return _NUMBER_TOO_LARGE
    return None


def _count_extra_characters(number: float) -> int:
    """Return how many more characters a number takes in jsonb than in encoded JSON.

    jsonb has no exponents: PostgreSQL expands `1e-300` to 302 characters.
    """
    text = repr(number)
    return len(f"{Decimal(text):f}") - len(text) if "e" in text else 0
