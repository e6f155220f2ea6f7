"""Many cases in one test, where separate tests would cost more time than the cases."""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

Case = tuple[object, Coroutine[Any, Any, None]]


async def run_cases(cases: Iterable[Case]) -> None:
    """Run the named cases one by one, and report all that fail."""
    failures = []
    for name, case in cases:
        try:
            await case
        except AssertionError as error:
            failures.append(f"{name}: {error}")
    assert not failures, "\n".join(failures)


def check_cases(check: Callable[..., None], cases: Iterable[Any]) -> None:
    """Call `check` with each case, and report all that fail."""
    failures = []
    for case in cases:
        try:
            check(case)
        except AssertionError as error:
            failures.append(f"{case!r}: {error}")
    assert not failures, "\n".join(failures)
