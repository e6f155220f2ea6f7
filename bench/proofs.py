"""Benchmark for the CPU time that a card proof adds to a payment.

    python -m bench.proofs

Payments with and without proofs alternate in parts of a fraction of a second, so other load on the
machine affects both. The results are medians of all pairs of parts. As many cards pay with proofs
as without, and the worker has seen all of them before. Payments without a PIN update their card in
any case. Those with a PIN update it only to store the tap counter.
"""

import argparse
import asyncio
import select
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import psutil

from bench.payments import dataset, requests
from bench.payments.dataset import Card, Dataset
from bench.payments.installation import Installation, run_installation
from bench.payments.load_client import Connection
from bench.payments.phase_runner import create_payment_builder
from tapgate.core.settings import load_settings
from tapgate.server.gateway_services import open_services

_ROOT: Final = Path(__file__).parents[1]
_CONNECTIONS: Final = 64
_WARM_UP_PAIRS: Final = 5
_TIMEOUT_SECONDS: Final = 30.0


class Cost(NamedTuple):
    """CPU time per payment, in microseconds."""

    python: float
    postgres: float


class ProofBenchmark:
    def __init__(self, installation: Installation, bench_data: Dataset, payments: int) -> None:
        self._installation = installation
        self._dataset = bench_data
        self._payments = payments
        connections = [Connection(installation.port) for _ in range(_CONNECTIONS)]
        self._connections = {connection.socket.fileno(): connection for connection in connections}

    def warm_up(self) -> None:
        """Look up all cards that sign their taps, so that the worker has seen them."""
        self._send(requests.build_lookups(self._dataset))

    def run(self, pairs: int, *, with_pin: bool) -> list[tuple[Cost, Cost]]:
        """Return the costs without and with a proof of each pair of parts."""
        build = create_payment_builder(self._dataset, with_pin=with_pin)
        decks = [cycle(self._dataset.few_cards), cycle(self._dataset.signing_cards)]
        costs = []
        for number in range(_WARM_UP_PAIRS + pairs):
            pair = [Cost(0.0, 0.0)] * 2
            for kind in (0, 1) if number % 2 else (1, 0):
                cards: list[Card] = list(islice(decks[kind], self._payments))
                pair[kind] = self._measure(build(cards))
            if number >= _WARM_UP_PAIRS:
                costs.append((pair[0], pair[1]))
        return costs

    def _measure(self, payments: Sequence[bytes]) -> Cost:
        before = self._read_cpu_nanoseconds()
        self._send(payments)
        after = self._read_cpu_nanoseconds()
        return Cost(
            *(
                (end - start) / 1000 / len(payments)
                for start, end in zip(before, after, strict=True)
            )
        )

    def _send(self, messages: Sequence[bytes]) -> None:
        """Send requests over all connections, each with one request in flight."""
        unsent, in_flight = iter(messages), 0
        with select.epoll() as poll:
            for descriptor, connection in self._connections.items():
                poll.register(descriptor, select.EPOLLIN)
                in_flight += _send_next(connection, unsent)
            while in_flight:
                ready = poll.poll(_TIMEOUT_SECONDS)
                if not ready:
                    raise TimeoutError("the gateway does not respond")
                for descriptor, _ in ready:
                    response = self._connections[descriptor].receive_response()
                    if response is None:
                        continue
                    if response[0][9:12] != b"200":
                        raise RuntimeError(f"unexpected response: {response[1].decode()}")
                    in_flight += _send_next(self._connections[descriptor], unsent) - 1

    def _read_cpu_nanoseconds(self) -> tuple[int, int]:
        """Return the CPU time that workers and PostgreSQL used."""
        return (
            sum(map(_read_cpu_nanoseconds, self._installation.workers)),
            sum(map(_read_cpu_nanoseconds, self._installation.postgres_processes)),
        )


def _send_next(connection: Connection, unsent: Iterator[bytes]) -> bool:
    message = next(unsent, None)
    if message is not None:
        connection.socket.sendall(message)
    return message is not None


def _read_cpu_nanoseconds(process: psutil.Process) -> int:
    """Return the CPU time of all threads. psutil's times have a resolution of 10 ms."""
    try:
        tasks = [thread.id for thread in process.threads()]
        return sum(
            int(Path(f"/proc/{process.pid}/task/{task}/schedstat").read_text().split()[0])
            for task in tasks
        )
    except (psutil.NoSuchProcess, FileNotFoundError):  # exited since
        return 0


def describe(costs: Sequence[tuple[Cost, Cost]]) -> str:
    parts = []
    for position, name in enumerate(("Python", "PostgreSQL")):
        without, with_proof = ([cost[kind][position] for cost in costs] for kind in (0, 1))
        pairs = list(zip(without, with_proof, strict=True))
        added = median(after - before for before, after in pairs)
        ratio = median(before / after for before, after in pairs)
        parts.append(
            f"{name} {median(without):.0f} -> {median(with_proof):.0f} µs"
            f" ({added:+.1f}, ratio {ratio:.3f})"
        )
    return ", ".join(parts)


async def run_benchmark(folder: Path, *, pairs: int, payments: int, cards: int) -> None:
    async with run_installation(folder, workers=1) as installation:
        settings = load_settings(installation.environ)
        async with open_services(settings, installation.database_url) as services:
            print_line(f"Creating {cards:,} cards ...")
            bench_data = await dataset.build(services, cards=cards, processors=10)
        benchmark = ProofBenchmark(installation, bench_data, payments)
        benchmark.warm_up()
        for with_pin in (False, True):
            costs = benchmark.run(pairs, with_pin=with_pin)
            print_line(f"{'With' if with_pin else 'Without'} PINs: {describe(costs)}")


def print_line(line: str) -> None:
    print(line, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.proofs", description=__doc__)
    parser.add_argument("--pairs", type=int, default=60, help="pairs of parts to compare")
    parser.add_argument("--payments", type=int, default=256, help="payments in a part")
    parser.add_argument("--cards", type=int, default=40_000, help="cards; one in 10 signs its taps")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=_ROOT) as name:
        asyncio.run(
            run_benchmark(
                Path(name),
                pairs=min(200, max(1, options.pairs)),
                payments=min(1000, max(_CONNECTIONS, options.payments)),
                cards=min(100_000, max(100, options.cards)),
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
