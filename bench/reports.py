"""Payment benchmark beside reports, with and without report workers.

    python -m bench.reports

Payments arrive at a fixed rate at a gateway with one worker. Phases without reports alternate with
phases in which clients download four exports and eight statements at a time, so other load on the
machine affects both. Run it on an idle machine with more than two cores for absolute latencies;
the gateway worker's CPU time is meaningful on any machine.
"""

import argparse
import asyncio
import contextlib
import http.client
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil

from bench.payments import dataset
from bench.payments.installation import Installation, run_installation
from bench.payments.steady_load import LoadSummary, SteadyLoad
from tapgate.auth.actors import SYSTEM_ACTOR
from tapgate.business.staff.api_keys import operations as api_keys
from tapgate.business.staff.queries import get_first_system_admin
from tapgate.core.settings import load_settings
from tapgate.http.api.services import Services
from tapgate.server.gateway_services import open_services
from tapgate_client import ids
from tapgate_client.clock import system_clock
from tapgate_client.schemas.admin import NewApiKey, Scope

_EXPORTS, _STATEMENTS = 4, 8
_CARDS = 200
_HISTORY = 50_000

#: Transfer history in the wallets for which statements are created.
_INSERT_HISTORY = """
    INSERT INTO transactions (id, type, status, channel, amount, fee_amount, currency, from_account,
                              to_account, created_at, completed_at)
    SELECT $2::bigint + n, 'transfer_p2p', 'completed', 'api', 100, 0, 'SLE',
           ($3::bigint[])[1 + n % 8], ($3::bigint[])[1 + (n + 1) % 8],
           now() - interval '1 hour', now() - interval '1 hour'
    FROM generate_series(1, $1::int) AS n"""
_INSERT_ENTRIES = """
    INSERT INTO entries (transaction_id, position, debit_account, credit_account, amount)
    SELECT id, 0, from_account, to_account, amount FROM transactions
    WHERE id BETWEEN $1::bigint AND $2::bigint"""


class Phase(NamedTuple):
    payments: LoadSummary
    gateway_seconds: float  # CPU time that the gateway worker used
    reports: str  # number of responses by status

    @property
    def p50(self) -> float:
        return self.payments.p50

    @property
    def p99(self) -> float:
        return self.payments.p99

    @property
    def gateway_load(self) -> float:
        return self.gateway_seconds / self.payments.seconds


class Target(NamedTuple):
    port: int
    api_keys: list[str]  # one per report, because the reports of one caller queue
    subscribers: list[str]


def read_reports(target: Target) -> None:
    """Download reports until standard input ends; print how many. Runs in its own process."""
    stop, statuses = threading.Event(), Counter[int]()

    def repeat(api_key: str, method: str, path: str, body: bytes) -> None:
        headers = {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"}
        while not stop.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=120)
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection.request(method, path, body, headers)
                response = connection.getresponse()
                while response.read(65_536):
                    pass
                statuses[response.status] += 1
                if response.status != 200:
                    stop.wait(0.2)
            connection.close()

    day = system_clock().date().isoformat()
    jobs = [("GET", "/api/v1/transactions/export?limit=50000", b"")] * _EXPORTS
    for number in range(_STATEMENTS):
        request = {
            "subscriber_id": target.subscribers[number],
            "from_date": day,
            "to_date": day,
            "format": ("json", "csv", "pdf")[number % 3],
        }
        path = "/api/v1/wallet/account-statement"
        jobs.append(("POST", path, msgspec.json.encode(request)))
    for api_key, job in zip(target.api_keys, jobs, strict=True):
        threading.Thread(target=repeat, args=(api_key, *job), daemon=True).start()
    sys.stdin.read()
    stop.set()
    print(" ".join(f"{count} x {status}" for status, count in sorted(statuses.items())))


class Payments:
    """Payments at a fixed rate, with and without reports."""

    def __init__(self, installation: Installation, data: dataset.Dataset, rate: int) -> None:
        self._load = SteadyLoad(installation.port, data, rate)
        self._worker = _find_gateway_worker(installation)

    async def connect(self) -> None:
        await self._load.connect()

    async def run_phase(self, seconds: float, reports: Target | None) -> Phase:
        with _run_readers(reports) as readers:
            if readers is not None:
                await asyncio.sleep(1.0)  # the first reports are in progress
            before = self._get_cpu_seconds()
            summary = await self._load.run_for(seconds)
            cpu_seconds = self._get_cpu_seconds() - before
            statuses = "" if readers is None else readers.communicate()[0].strip()
        return Phase(summary, cpu_seconds, statuses)

    def _get_cpu_seconds(self) -> float:
        times = self._worker.cpu_times()
        return float(times.user + times.system)


def _find_gateway_worker(installation: Installation) -> psutil.Process:
    return next(
        worker for worker in installation.workers if "TAPGATE_REPORT_WORKER" not in worker.environ()
    )


@contextlib.contextmanager
def _run_readers(target: Target | None) -> Iterator["subprocess.Popen[str] | None"]:
    if target is None:
        yield None
        return
    command = [
        sys.executable,
        "-m",
        "bench.reports",
        "--read",
        msgspec.json.encode(target).decode(),
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.asynccontextmanager
async def run_payments(report_workers: int, rate: int) -> AsyncIterator[tuple[Payments, Target]]:
    with tempfile.TemporaryDirectory(prefix="tapgate-bench-") as name:
        async with run_installation(
            Path(name), workers=1, settings={"TAPGATE_REPORT_WORKERS": str(report_workers)}
        ) as installation:
            settings = load_settings(installation.environ)
            async with open_services(settings, installation.database_url) as services:
                data = await dataset.build(services, cards=_CARDS, processors=10)
                target = await _create_history(services, installation, data)
            payments = Payments(installation, data, rate)
            await payments.connect()
            yield payments, target


async def _create_history(
    services: Services, installation: Installation, data: dataset.Dataset
) -> Target:
    subscribers = [card.subscriber_id for card in data.cards[:_STATEMENTS]]
    accounts = await services.database.fetch(
        "SELECT account_id FROM subscribers WHERE id = ANY($1)",
        [ids.decode(ids.SUBSCRIBER, text) for text in subscribers],
    )
    first = services.new_id()
    async with services.database.transaction() as tx:
        await tx.execute(
            _INSERT_HISTORY, _HISTORY, first, [row["account_id"] for row in accounts], timeout=60
        )
        await tx.execute(_INSERT_ENTRIES, first + 1, first + _HISTORY, timeout=60)
    admin_id = await get_first_system_admin(services.database)
    assert admin_id is not None
    keys = []
    for _ in range(_EXPORTS + _STATEMENTS):
        async with services.transaction() as tx:
            _, key = await api_keys.create(
                tx,
                SYSTEM_ACTOR,
                NewApiKey(name="reports", scopes=[Scope.PAYMENTS_READ]),
                created_by=admin_id,
                api_keys=services.authenticator.api_keys,
            )
        keys.append(key)
    return Target(installation.port, keys, subscribers)


async def compare(report_workers: int, *, seconds: float, rounds: int, rate: int) -> None:
    async with run_payments(report_workers, rate) as (payments, target):
        await payments.run_phase(2.0, None)  # warm-up
        print(f"{report_workers} report workers, {rate} payments a second")
        for _ in range(rounds):
            quiet = await payments.run_phase(seconds, None)
            busy = await payments.run_phase(seconds, target)
            extra = (
                busy.gateway_seconds / busy.payments.seconds
                - quiet.gateway_seconds / quiet.payments.seconds
            )
            print(
                f"  without reports p50 {quiet.p50:.1f} p99 {quiet.p99:.1f} ms;"
                f" with reports ({busy.reports}) p50 {busy.p50:.1f} p99 {busy.p99:.1f} ms;"
                f" ratio {busy.p50 / quiet.p50:.2f} {busy.p99 / quiet.p99:.2f};"
                f" more CPU time of the gateway worker: {extra * 100:.1f} %"
            )


async def _main(arguments: argparse.Namespace) -> None:
    for report_workers in arguments.report_workers:
        await compare(
            report_workers,
            seconds=arguments.seconds,
            rounds=arguments.rounds,
            rate=arguments.rate,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=int, default=100)
    parser.add_argument("--report-workers", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--read", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        read_reports(msgspec.json.decode(options.read, type=Target))
    else:
        asyncio.run(_main(options))
