"""Simulate transfers between two books, with crashes: `python -m tools.two_books`."""

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random

import msgspec
import psutil

from tools.two_books.journal import Journal
from tools.two_books.simulation import (
    BOOK_NAMES,
    InstalledBook,
    SimulationError,
    build_transfers,
    check_books,
    run_books,
    settle,
)

_ROOT = Path(__file__).parents[2]


async def simulate(folder: Path, options: argparse.Namespace, rng: Random) -> None:
    async with run_books(folder) as books:
        journal_path, access_path = folder / "journal.sqlite", folder / "access.json"
        access = {name: book.access for name, book in books.items()}
        with os.fdopen(os.open(access_path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(msgspec.json.encode(access))
        journal = Journal(journal_path)
        before = {name: await book.get_balances() for name, book in books.items()}
        journal.add(build_transfers(books, options.transfers, rng))
        print(f"{options.transfers} transfers between two books", flush=True)
        started = time.monotonic()
        kills = await run_with_kills(
            (str(journal_path), str(access_path)), books, options.kills, rng
        )
        elapsed = time.monotonic() - started
        print(f"Killed: {', '.join(f'{name} {count}x' for name, count in kills.items()) or '-'}")
        summary = await check_books(books, journal.list_all(), before)
        journal.close()
        total_before = sum(sum(balances.values()) for balances in before.values())
        if summary.total != total_before:
            raise SimulationError(f"sum of all wallets: {total_before} before, {summary.total} now")
        states = ", ".join(f"{count} {state}" for state, count in summary.states.most_common())
        print(f"Transfers: {states}, in {elapsed:.1f} s")
        print(f"Sum of all wallets: {total_before} before and after")
        for name, balance in summary.clearing.items():
            print(f"Clearing account in the book {name}: {balance}")
        print(f"Settled: {await settle(books)}; both clearing accounts are 0.00")


async def run_with_kills(
    arguments: tuple[str, ...], books: Mapping[str, InstalledBook], kills: int, rng: Random
) -> Counter[str]:
    """Run coordinators until all transfers are final; kill them and gateway workers at random."""
    killed = Counter[str]()
    while True:
        coordinator = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tools.two_books.coordinator", *arguments, cwd=_ROOT
        )
        try:
            while killed.total() < kills and coordinator.returncode is None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(coordinator.wait(), rng.uniform(0.2, 1.5))
                    break
                victim = rng.choice(["coordinator", *books])
                killed[victim] += 1
                if victim == "coordinator":
                    coordinator.kill()
                    break
                with contextlib.suppress(psutil.NoSuchProcess, IndexError):
                    rng.choice(books[victim].installation.workers).kill()
            if await coordinator.wait() == 0:
                return killed
        finally:
            if coordinator.returncode is None:
                coordinator.kill()


def main() -> int:
    parser = argparse.ArgumentParser(prog="make two-books", description=__doc__)
    parser.add_argument("--transfers", type=int, default=300)
    parser.add_argument("--kills", type=int, default=12, help="processes to kill")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else time.time_ns() % 1_000_000
    print(f"Seed: {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="tapgate-books-") as name:
        for book in BOOK_NAMES:
            Path(name, book).mkdir()
        try:
            asyncio.run(simulate(Path(name), options, Random(seed)))  # noqa: S311 - not a secret
        except SimulationError as error:
            print(f"make two-books: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
