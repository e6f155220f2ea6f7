"""Progress display of the demo build: a bar on a terminal, otherwise periodic lines."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

_PRINT_INTERVAL_SECONDS: Final = 10.0


@contextlib.contextmanager
def show_progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances the progress by an amount of work."""
    console = Console()
    if not console.is_terminal:
        yield _LineProgress(label, total).advance
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.advance(task, done)


class _LineProgress:
    def __init__(self, label: str, total: int) -> None:
        self._label = label
        self._total = total
        self._done = 0
        self._last_printed = time.monotonic()

    def advance(self, done: int) -> None:
        self._done += done
        if time.monotonic() - self._last_printed > _PRINT_INTERVAL_SECONDS:
            self._last_printed = time.monotonic()
            percent = min(99, 100 * self._done // self._total)
            # A closed output must not abort the build.
            with contextlib.suppress(OSError):
                print(f"{self._label}: {percent}%", flush=True)
