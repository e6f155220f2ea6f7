"""`tapgate rekey`: move all data to the newest secret key."""

import asyncio
import sys
from typing import Any

import typer
from rich.console import Console

from tapgate.cli import operator
from tapgate.cli.keys import run_with_services
from tapgate.cli.rekey.job import KeyStatus, Rekey, Remaining, open_rekey
from tapgate.runtime.progress import LineProgress


def run_rekey(*, pause_seconds: float, check: bool, discard: bool, confirmed: bool) -> None:
    """Move the data, or only print what remains; exit with status 1 if a key is still needed."""
    console = Console(highlight=False, soft_wrap=True)
    is_done = False

    async def task(services: Any) -> None:
        nonlocal is_done
        async with open_rekey(services) as rekey:
            if not check:
                await _move(console, rekey, pause_seconds)
                if discard:
                    await _discard(rekey, confirmed=confirmed)
            is_done = await _print_status(console, rekey, release=not check)

    run_with_services(task)
    if not is_done:
        raise typer.Exit(1)


async def _move(console: Console, rekey: Rekey, pause_seconds: float) -> None:
    await rekey.retire_old_keys()
    total = sum(
        part.total
        for status in await rekey.list_status()
        for part in status.remaining
        if part.remedy is None
    )
    moved, progress = 0, LineProgress("Moving", sys.stderr)

    with console.status("Moving") as indicator:

        async def report(count: int) -> None:
            nonlocal moved
            moved += count
            text = f"{moved:,} of {total:,}"
            indicator.update(f"Moving: {text}")
            if not console.is_terminal:
                progress.report(text)
            await asyncio.sleep(pause_seconds)

        unreadable = await rekey.move(report)
    console.print(f"Moved {moved:,} sealed values to the newest key.")
    for line in unreadable:
        console.print(f"Cannot be opened: {line}.", markup=False)


async def _discard(rekey: Rekey, *, confirmed: bool) -> None:
    for status in await rekey.list_status():
        lost = [part for part in status.remaining if part.remedy is not None]
        if not lost:
            continue
        summary = ", ".join(f"{part.total:,} {part.label}" for part in lost)
        if not confirmed:
            typer.confirm(f"Invalidate {summary}?", abort=True)
        await rekey.discard(status, operator.build_actor())
        print(f"Invalidated {summary}.")


async def _print_status(console: Console, rekey: Rekey, *, release: bool) -> bool:
    """Print what needs each old key, and return whether nothing does."""
    is_done, statuses = True, await rekey.list_status()
    for status in statuses:
        if release and await rekey.release(status, operator.build_actor()):
            console.print(f"Key {status.key} can be removed from TAPGATE_SECRET_KEY.")
            continue
        is_done = False
        for line in _describe(status):
            console.print(line, markup=False)
    if not statuses:
        console.print("All data uses the newest key.")
    return is_done


def _describe(status: KeyStatus) -> list[str]:
    if not status.remaining:
        return [f"Nothing needs key {status.key}. Run `tapgate rekey` before you remove it."]
    return [f"Key {status.key} is needed for:", *map(_describe_part, status.remaining)]


def _describe_part(part: Remaining) -> str:
    text = f"  {part.total:,} {part.label}"
    if part.remedy is None:
        return f"{text}: run `tapgate rekey`"
    until = "" if part.expires_at is None else f", the last at {part.expires_at:%Y-%m-%d %H:%M} UTC"
    return f"{text}: {part.remedy}{until}"
