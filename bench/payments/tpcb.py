"""TPC-B, the default workload of PostgreSQL's pgbench, run on the same server."""

import asyncio
import os
import re
from urllib.parse import parse_qs, urlsplit

import asyncpg

from bench.payments.installation import Installation
from bench.payments.results import TpcB
from tapgate.runtime.store.embedded import SUPERUSER
from tapgate.runtime.store.postgres_programs import find_programs_dir

_DATABASE = "tpcb"
#: Time for the server processes to exit, so that the postmaster's CPU time includes theirs.
_SERVER_EXIT_SECONDS = 0.3
_RATE_PATTERN = re.compile(r"^tps = ([0-9.]+) \(without initial connection time\)$", re.MULTILINE)
_LATENCY_PATTERN = re.compile(r"^latency average = ([0-9.]+) ms$", re.MULTILINE)
_COUNT_PATTERN = re.compile(r"^number of transactions actually processed: ([0-9]+)", re.MULTILINE)


#: Transactions per client in a run shorter than a second.
_SHORT_RUN_TRANSACTIONS = "5"


class PgBench:
    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        query = parse_qs(urlsplit(installation.database_url).query)
        self._connection_options = ("-h", query["host"][0], "-U", SUPERUSER)

    async def prepare(self, scale: int) -> None:
        connection = await asyncpg.connect(self._installation.database_url)
        try:
            await connection.execute(f"CREATE DATABASE {_DATABASE}")
        finally:
            await connection.close()
        await self._run("-i", "-q", "-s", str(scale))

    async def measure(self, round_: int, clients: int, seconds: float) -> TpcB:
        # pgbench accepts whole seconds only, so a shorter run is limited by its transactions.
        length = ("-T", str(round(seconds))) if seconds >= 1 else ("-t", _SHORT_RUN_TRANSACTIONS)
        threads = min(clients, os.cpu_count() or 1)
        before = self._installation.get_postgres_seconds()
        text = await self._run(*("-M", "prepared", "-c", str(clients), "-j", str(threads), *length))
        await asyncio.sleep(_SERVER_EXIT_SECONDS)
        cpu_seconds = self._installation.get_postgres_seconds() - before
        return TpcB(
            round=round_,
            clients=clients,
            per_second=round(float(_extract(_RATE_PATTERN, text)), 1),
            mean_ms=float(_extract(_LATENCY_PATTERN, text)),
            postgres_us=round(cpu_seconds / int(_extract(_COUNT_PATTERN, text)) * 1e6, 1),
        )

    async def _run(self, *arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            find_programs_dir() / "pgbench",
            *self._connection_options,
            *arguments,
            _DATABASE,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        text, error = await process.communicate()
        if process.returncode != 0:
            raise RuntimeError(error.decode())
        return text.decode()


def _extract(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    if match is None:
        raise RuntimeError(f"unexpected output of pgbench: {text}")
    return match[1]
