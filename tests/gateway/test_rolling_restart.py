"""Rolling restart of two gateways with SIGTERM behind a load balancer."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

from drivers.actors import Customer, Terminal
from drivers.deployments import Deployment
from drivers.load_balancer import LoadBalancer
from drivers.processes import open_client, start_tapgate


@contextlib.asynccontextmanager
async def run_node(
    balancer: LoadBalancer, folder: Path, url: str, *, workers: int
) -> AsyncIterator[None]:
    """Run a gateway behind the balancer. On exit, drain it and require exit status 0."""
    variables = {"TAPGATE_DRAIN_SECONDS": "2"}
    async with start_tapgate(folder, url, workers=workers, demo="off", variables=variables) as node:
        await balancer.add(node.address)
        yield
    balancer.remove(node.address)


async def test_no_payment_fails_while_nodes_are_restarted(
    public_tmp_path: Path, database_url: str
) -> None:
    async with (
        LoadBalancer.run() as (balancer, address),
        open_client(address) as client,
        contextlib.AsyncExitStack() as first,
        contextlib.AsyncExitStack() as second,
    ):
        nodes = [
            (stack, partial(run_node, balancer, public_tmp_path, database_url, workers=workers))
            for stack, workers in ((first, 1), (second, 2))
        ]
        for stack, run in nodes:
            await stack.enter_async_context(run())
        deployment = Deployment(client, public_tmp_path, database_url)
        await deployment.disable_compliance_rules()
        customer, terminal = await create_participants(deployment)
        statuses: Counter[int] = Counter()
        tasks = [asyncio.create_task(pay(terminal, customer, statuses)) for _ in range(4)]
        for stack, run in nodes:
            await stack.aclose()
            await stack.enter_async_context(run())
        for task in tasks:
            assert not task.done(), task.exception()  # no connection failed
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert statuses.keys() == {200} and statuses.total() > 20
        await deployment.require_balanced_books()


async def create_participants(deployment: Deployment) -> tuple[Customer, Terminal]:
    ada = await deployment.log_in_admin()
    customer = await ada.create_funded_customer("400", await ada.create_app())
    terminal, _ = await ada.create_terminal(await ada.create_merchant(), "Till 1")
    return customer, terminal


async def pay(terminal: Terminal, customer: Customer, statuses: Counter[int]) -> None:
    while True:
        response = await terminal.pay("0.01", customer.card, customer.pin)
        statuses[response.status_code] += 1
        await asyncio.sleep(0.02)
