"""Work that goes on beside the requests and outlives whatever it depends on."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, NoReturn

import structlog

from tapgate.errors import ApiError
from tapgate.service import logs

_log = structlog.get_logger()


@contextlib.asynccontextmanager
async def run_background_tasks(*works: Coroutine[Any, Any, NoReturn]) -> AsyncIterator[None]:
    """Works that go on for ever, cancelled in the end."""
    tasks = [_start_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _start_task(work: Coroutine[Any, Any, NoReturn]) -> asyncio.Task[NoReturn]:
    """If it does not go on for ever, nobody would notice for long what is missing."""

    def ended(task: asyncio.Task[NoReturn]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("background.task_failed", failure=logs.describe_exception(error))

    task = asyncio.create_task(work)
    task.add_done_callback(ended)
    return task


async def run_periodically(
    work: Callable[[], Awaitable[object]],
    *,
    every: float,
    name: str,
    wake: asyncio.Event | None = None,
) -> NoReturn:
    """Does the work again and again until it is cancelled; `wake` ends a pause early.

    A failure is logged when it begins and when it is over, not at every round, and by its kind
    only: the text of an exception may repeat what the work was about.
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
