"""A fuzzing run over both services."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from random import Random
from time import monotonic

from drivers.actors import require_success
from fuzz.callers import Callers
from fuzz.connection_pool import ConnectionPool, open_pool
from fuzz.executor import Executor
from fuzz.fixtures import FuzzFixtures
from fuzz.installation import APP_SECRET, BRIDGE_TOKEN, Installation
from fuzz.openapi import Document, Operation, list_operations
from fuzz.plan import PlannedRequest, plan_complete, plan_rounds
from fuzz.results import Results
from fuzz.unreachable import UNREACHABLE

PrintLine = Callable[[str], None]
_CONCURRENCY = 8
#: Complete requests to an operation that has not succeeded, before this is a finding.
_MAX_COMPLETE_REQUESTS = 12


async def fetch_openapi_documents(installation: Installation) -> dict[str, Document]:
    clients = {"gateway": installation.deployment.client, "messenger": installation.messenger}
    return {
        name: require_success(await client.get("/openapi.json")) for name, client in clients.items()
    }


async def run_fuzzing(
    fixtures: FuzzFixtures,
    count: int,
    seed: int,
    print_line: PrintLine,
    *,
    sample_size: int | None = None,
    by_owners: bool = False,
) -> Results:
    """Send `count` requests; `sample_size` limits the run to randomly sampled operations.

    With `by_owners`, only users and keys of owners send requests, to operations that they have.
    """
    started, installation = monotonic(), fixtures.installation
    documents = await fetch_openapi_documents(installation)
    operations = [
        operation
        for name, document in documents.items()
        for operation in list_operations(name, document)
    ]
    fixtures.list_paths = {
        operation.path for operation in operations if operation.operation_id.startswith("list_")
    }
    callers = fixtures.callers.owners if by_owners else fixtures.callers
    if by_owners:
        operations = [item for item in operations if has_owner(fixtures.callers, item)]
    if sample_size is not None:
        operations = Random(seed).sample(operations, sample_size)
    results = Results(item.label for item in operations)
    async with open_connections(installation) as pools:
        executor = Executor(fixtures, pools, results, _list_secrets(installation), callers)
        for plan in plan_rounds(operations, count, seed):
            print_line(f"{monotonic() - started:4.0f} s  {len(plan)} requests generated")
            await _execute_all(executor, plan)
            print_line(
                f"{monotonic() - started:4.0f} s  {results.request_count} sent,"
                f" {results.finding_count} findings"
            )
        if not by_owners:
            await _complete(executor, operations, results, seed)
    return results


async def _complete(
    executor: Executor, operations: Iterable[Operation], results: Results, seed: int
) -> None:
    """Send complete requests to operations that have not succeeded, and report those that do not.

    Otherwise, all behind the first check of such an operation would not be fuzzed.
    """
    for index in range(_MAX_COMPLETE_REQUESTS):
        missing = set(results.list_never_succeeded()) - UNREACHABLE.keys()
        plan = plan_complete([item for item in operations if item.label in missing], seed + index)
        await _execute_all(executor, plan)
    results.report_unreached(UNREACHABLE)


def has_owner(callers: Callers, operation: Operation) -> bool:
    return any(caller.is_owner for caller in callers.list_allowed(operation.spec, operation.path))


@contextlib.asynccontextmanager
async def open_connections(installation: Installation) -> AsyncIterator[dict[str, ConnectionPool]]:
    running = installation.running
    async with open_pool(running.gateway) as gateway, open_pool(running.messenger) as messenger:
        yield {"gateway": gateway, "messenger": messenger}


async def _execute_all(executor: Executor, plan: Iterable[PlannedRequest]) -> None:
    pending = iter(plan)

    async def work() -> None:
        for planned in pending:
            await executor.execute(planned)

    async with asyncio.TaskGroup() as group:
        for _ in range(_CONCURRENCY):
            group.create_task(work())


def _list_secrets(installation: Installation) -> list[str]:
    settings = installation.settings
    return [
        settings.jwt_secret,
        settings.secret_key,
        *settings.service_secrets.values(),
        APP_SECRET,
        BRIDGE_TOKEN,
    ]
