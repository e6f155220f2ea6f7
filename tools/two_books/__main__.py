"""Send money between two books while gateways are killed: `python -m tools.two_books`."""

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random

import psutil

from tools.two_books.simulation import (
    BOOK_NAMES,
    Book,
    SimulationError,
    build_transfers,
    check_books,
    run_books,
    send_all,
    settle,
)


async def simulate(folder: Path, options: argparse.Namespace, rng: Random) -> None:
    async with run_books(folder) as books:
        before = {name: await book.get_balances() for name, book in books.items()}
        print(f"{options.transfers} transfers between two books", flush=True)
        started = time.monotonic()
        sending = asyncio.create_task(send_all(books, build_transfers(options.transfers, rng)))
        kills = await kill_workers(books, options.kills, sending, rng)
        transfers = await sending
        elapsed = time.monotonic() - started
        print(f"Killed: {', '.join(f'{name} {count}x' for name, count in kills.items()) or '-'}")
        summary = await check_books(books, transfers, before)
        total_before = sum(sum(balances) for balances in before.values())
        if summary.total + summary.fees != total_before:
            raise SimulationError(f"sum of all wallets: {total_before} before, {summary.total} now")
        outcomes = ", ".join(f"{count} {name}" for name, count in summary.outcomes.most_common())
        print(f"Transfers: {outcomes}, in {elapsed:.1f} s; 0 lost, 0 doubled")
        print(f"Sum of all wallets: {total_before} before, {summary.total} and {summary.fees} fees")
        for name, balance in summary.clearing.items():
            print(f"Clearing account in the book {name}: {balance}")
        print(f"Settled: {await settle(books)}; both clearing accounts are 0.00")


async def kill_workers(
    books: Mapping[str, Book], kills: int, sending: asyncio.Task[object], rng: Random
) -> Counter[str]:
    """Kill gateway workers of both books in turn, at random times, until all money has arrived."""
    killed = Counter[str]()
    victims = [name for name in BOOK_NAMES for _ in range(kills)]
    rng.shuffle(victims)
    for name in victims:
        await asyncio.wait([sending], timeout=rng.uniform(0.2, 1.2))
        if sending.done():
            break
        with contextlib.suppress(psutil.NoSuchProcess, IndexError):
            rng.choice(books[name].installation.workers).kill()
            killed[name] += 1
    return killed


def main() -> int:
    parser = argparse.ArgumentParser(prog="make two-books", description=__doc__)
    parser.add_argument("--transfers", type=int, default=300)
    parser.add_argument("--kills", type=int, default=12, help="workers to kill in each book")
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
