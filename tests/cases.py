"""Many cases in one test, where setting up a test costs more time than a case."""

import functools
import inspect
import traceback
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import pytest

Case = tuple[object, Coroutine[Any, Any, None]]
# A skipped case counts as a failure: a skip would end the test and hide the other cases.
_FAILURES = (Exception, pytest.fail.Exception, pytest.skip.Exception)


async def run_cases(cases: Iterable[Case]) -> None:
    """Run the named cases one by one, and report all that fail."""
    count, failures = 0, []
    for name, case in cases:
        count += 1
        try:
            await case
        except _FAILURES as error:
            failures.append(_describe(name, error))
    assert count, "there are no cases"
    assert not failures, "\n".join(failures)


def each(names: str, cases: Iterable[Any]) -> Callable[[Any], Any]:
    """Like `pytest.mark.parametrize`, but run all cases in one test and report all that fail.

    The cases share the test's fixtures, so they must not depend on each other's effects.
    """
    parameters = [name.strip() for name in names.split(",")]
    cases = list(cases)
    assert cases, "there are no cases"
    assert not any(hasattr(case, "marks") for case in cases), "pytest.param is not supported"
    values = [case if len(parameters) > 1 else (case,) for case in cases]

    def decorate(test: Any) -> Any:
        @functools.wraps(test)
        async def run_async(**fixtures: Any) -> None:
            await run_cases(
                (case, test(**fixtures, **dict(zip(parameters, case, strict=True))))
                for case in values
            )

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures = []
            for case in values:
                try:
                    test(**fixtures, **dict(zip(parameters, case, strict=True)))
                except _FAILURES as error:
                    failures.append(_describe(case, error))
            assert not failures, "\n".join(failures)

        signature = inspect.signature(test)
        kept = [item for item in signature.parameters.values() if item.name not in parameters]
        runner: Any = run_async if inspect.iscoroutinefunction(test) else run
        runner.__signature__ = signature.replace(parameters=kept)
        return runner

    return decorate


def _describe(case: object, error: BaseException) -> str:
    line = traceback.extract_tb(error.__traceback__)[-1].lineno
    return f"{case!r}, line {line}: {type(error).__name__}: {error}"
