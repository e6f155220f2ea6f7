"""List benchmark: an owner's user beside an admin who selects the same owner.

Both requests have the same rows. The user's query is limited by the owner condition, the admin's by
the filter `user_id`. They are called in-process and alternate, so other load affects both.
Run with `python -m bench.owners`. The data is removed at the end.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path

import msgspec

from bench.reporting import BenchmarkDatabase, OverviewRequest, open_database
from tapgate.runtime import logs
from tapgate.runtime.store.embedded import EmbeddedPostgres
from tapgate_client import ids

#: The dataset's accounts belong to these numbers, one each.
_FIRST_OWNER = 1_000_000
_LISTS = {
    "transactions": ("/api/v1/transactions", "limit=50"),
    "transactions, 10": ("/api/v1/transactions", "limit=10"),
    "failed transactions": ("/api/v1/transactions", "limit=50&status=failed"),
    "totals of 30 days": ("/api/v1/transactions/totals", ""),
}


class ListRequest(OverviewRequest):
    def __init__(self, path: str, query: str, token: str) -> None:
        super().__init__("", token)
        self.path = path
        self.query = query.encode()


async def create_manager(database: BenchmarkDatabase, owner: int) -> str:
    services = database.services
    admin_id = services.new_id()
    async with services.transaction() as tx:
        await tx.execute(
            """INSERT INTO admins (id, email, name, role, password_hash, created_at, owner_type,
                                   owner_id)
               VALUES ($1, 'musa@example.com', 'Musa', 'merchant_manager', 'no password', now(),
                       'processor', $2)""",
            admin_id,
            owner,
        )
        return (await services.authenticator.sessions.start(tx, admin_id)).token


async def measure(database: BenchmarkDatabase, request: ListRequest) -> tuple[float, bytes]:
    started = time.perf_counter()
    response = await database.app.respond(request)
    seconds = time.perf_counter() - started
    assert response.status == 200, response.body
    return seconds * 1000, response.body


async def compare(database: BenchmarkDatabase, rounds: int) -> None:
    owner = _FIRST_OWNER + 8  # with failed and completed transactions
    manager = await create_manager(database, owner)
    user_id = ids.encode(ids.SUBSCRIBER, owner)  # the dataset has only wallets
    print(f"{'':22} {'admin, user_id':>16} {'owner':>12}   ratio (medians of {rounds})")
    for label, (path, query) in _LISTS.items():
        requests = (
            ListRequest(path, f"{query}&user_id={user_id}", database.token),
            ListRequest(path, query, manager),
        )
        durations: tuple[list[float], list[float]] = ([], [])
        for number in range(rounds + 5):
            for index in (0, 1) if number % 2 else (1, 0):
                milliseconds, body = await measure(database, requests[index])
                if number >= 5:  # the first rounds are warm-up
                    durations[index].append(milliseconds)
                if path.endswith("transactions"):
                    assert msgspec.json.decode(body)["data"], f"request {index} has no rows"
        admin, own = map(statistics.median, durations)
        print(f"{label:22} {admin:13.2f} ms {own:9.2f} ms   {own / admin:.3f}", flush=True)


async def run(server_url: str, folder: Path, transactions: int, rounds: int) -> None:
    async with open_database(server_url, folder, transactions) as database:
        await compare(database, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.owners", description=__doc__)
    parser.add_argument("--transactions", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=200)
    arguments = parser.parse_args()
    logs.configure(open(os.devnull, "ab", buffering=0))  # noqa: PTH123, SIM115 - stays open
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=Path(__file__).parents[1]) as name:
        folder = Path(name)
        server = EmbeddedPostgres(folder / "data")
        try:
            url = server.start()
            asyncio.run(run(url, folder, arguments.transactions, arguments.rounds))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
