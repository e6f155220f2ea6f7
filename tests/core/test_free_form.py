"""Limits on free-form objects such as `metadata`."""

from typing import Any

from cases import each
from tapgate_client.schemas.free_form import find_problem


def build_nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@each(
    "value, problem",
    [
        ({"order": "A-17", "lines": [1, 2.5, None, True]}, None),
        ({"note": "x" * 5000}, "must be at most 4 KiB"),
        ({"number": 2**53 + 1}, "must not contain integers beyond 2^53 or numbers beyond 1e15"),
        ({"number": 2**80}, "must not contain integers beyond 2^53 or numbers beyond 1e15"),
        ({"number": [1e16]}, "must not contain integers beyond 2^53 or numbers beyond 1e15"),
        (build_nested(3), None),
        (build_nested(200), "is nested too deeply"),
    ],
)
def test_object_is_limited_in_size_numbers_and_depth(
    value: dict[str, Any], problem: str | None
) -> None:
    assert find_problem(value) == problem
