"""Run a cluster in the foreground: `python -m tools.cluster`."""

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.live import Live

from tools.cluster import ClusterError
from tools.cluster.cluster import Cluster
from tools.cluster.display import list_changes, list_urls, read_states, render_table
from tools.cluster.status import StatusReader

_REFRESH_SECONDS = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make cluster", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path(".tapgate-cluster"))
    parser.add_argument("--demo", default="small", help="size of the demo data")
    options = parser.parse_args(arguments)
    cluster = Cluster(options.data, settings={"TAPGATE_DEMO": options.demo})
    console = Console(highlight=False)
    try:
        asyncio.run(_run(cluster, console))
    except ClusterError as error:
        print(f"make cluster: {error}", file=sys.stderr)
        return 1
    except asyncio.CancelledError:
        pass
    return 0


async def _run(cluster: Cluster, console: Console) -> None:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        cluster.prepare()
        await cluster.start(console.print)
        for line in list_urls(cluster):
            console.print(line, soft_wrap=True)
        async with asyncio.TaskGroup() as group:
            group.create_task(cluster.supervise())
            group.create_task(_show_status(cluster, console))
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, lambda: None)
        console.print("Stopping ...")
        await cluster.stop()


async def _show_status(cluster: Cluster, console: Console) -> None:
    """Show a table that is updated in place, or, without a terminal, a line per change."""
    previous: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        live = None
        if console.is_terminal:
            live = stack.enter_context(Live(console=console, auto_refresh=False))
        async with StatusReader(cluster.layout) as status:
            while True:
                states = await read_states(cluster, status)
                if live is not None:
                    live.update(render_table(cluster, states), refresh=True)
                else:
                    for line in list_changes(previous, states):
                        console.print(line)
                previous = states
                await asyncio.sleep(_REFRESH_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
