"""Background tasks that keep running when their dependencies fail."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import Any, NoReturn, TypeVar

import structlog

from tapgate.runtime import logs
from tapgate_client.errors import ApiError

_log = structlog.get_logger()

T = TypeVar("T")


@contextlib.asynccontextmanager
async def run_background_tasks(*coroutines: Coroutine[Any, Any, NoReturn]) -> AsyncIterator[None]:
    """Run coroutines in the background and cancel them on exit."""
    tasks = [start_task(coroutine) for coroutine in coroutines]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def start_task(coroutine: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
    """Start a task whose failure is logged. asyncio would report it only on garbage collection."""

    def log_failure(task: asyncio.Task[object]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("background.task_failed", failure=logs.describe_exception(error))

    task = asyncio.create_task(coroutine)
    task.add_done_callback(log_failure)
    return task


async def run_periodically(
    work: Callable[[], Awaitable[object]],
    *,
    every: float,
    name: str,
    wake: asyncio.Event | None = None,
) -> NoReturn:
    """Run the work repeatedly until canceled, with a pause of `every` seconds between runs.

    Setting `wake` ends a pause early. Of consecutive failures, only the first is logged, and then
    the recovery. A failure is logged with its error code or exception class only, because exception
    text may contain processed data.
    """
    failing = False
    while True:
        try:
            await work()
        except Exception as error:
            if not failing:
                _log.warning("background.failing", work=name, error=_get_error_name(error))
            failing = True
        else:
            if failing:
                _log.info("background.recovered", work=name)
            failing = False
        await _sleep_until_woken(every, wake)


async def do_for_each(items: Iterable[T], work: Callable[[T], Awaitable[object]]) -> None:
    """Do the work for every item, then raise the first error.

    An item whose work always fails must not keep the items behind it waiting.
    """
    failure: Exception | None = None
    for item in items:
        try:
            await work(item)
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure


async def _sleep_until_woken(seconds: float, wake: asyncio.Event | None) -> None:
    if wake is None:
        await asyncio.sleep(seconds)
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await wake.wait()
    wake.clear()


def _get_error_name(error: Exception) -> str:
    return str(error.code) if isinstance(error, ApiError) else type(error).__name__
