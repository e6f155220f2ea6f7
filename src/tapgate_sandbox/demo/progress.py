"""Demo build progress display: a bar on a terminal, otherwise periodic lines."""

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from tapgate.runtime.progress import LineProgress


@contextlib.contextmanager
def show_progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances the progress by an amount of work."""
    console = Console()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task, lines = bar.add_task(label, total=total), LineProgress(label, sys.stdout)

        def advance(done: int) -> None:
            bar.advance(task, done)
            if not console.is_terminal:
                lines.report(f"{min(99, int(bar.tasks[0].percentage))}%")

        yield advance
