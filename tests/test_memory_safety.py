"""Gateway with memory checks from the C library and Python.

An extension module can write past the end of an object. Python's default allocator rounds sizes up,
which hides short overruns. The C library's allocator has no such gaps and aborts the process, and
Python's development mode surrounds every block with guard bytes.
"""

import asyncio
from pathlib import Path

import pytest

from drivers.actors import require_success
from drivers.console import ConsoleClient
from drivers.deployments import Deployment
from drivers.processes import ADMIN, list_workers, open_client, start_tapgate

_CUSTOMERS = 12
_PAYMENTS_PER_CUSTOMER = 25


@pytest.mark.parametrize(("name", "value"), [("PYTHONMALLOC", "malloc"), ("PYTHONDEVMODE", "1")])
async def test_workers_pass_memory_checks(
    name: str, value: str, public_tmp_path: Path, database_url: str
) -> None:
    async with (
        start_tapgate(
            public_tmp_path, database_url, workers=2, demo="off", variables={name: value}
        ) as running,
        open_client(running.address) as client,
        open_client(running.address) as browser,
    ):
        workers = list_workers(running.address)
        assert [worker.environ()[name] for worker in workers] == [value] * 2
        deployment = Deployment(client, public_tmp_path, database_url)
        await deployment.disable_compliance_rules()
        ada = await deployment.log_in_admin()
        app, terminal = await ada.create_app(), (await ada.create_merchant()).server
        customers = await asyncio.gather(
            *(ada.create_funded_customer("100.00", app) for _ in range(_CUSTOMERS))
        )
        cards = [customer.card for customer in customers] * _PAYMENTS_PER_CUSTOMER
        for response in await asyncio.gather(*(terminal.pay("1.00", card) for card in cards)):
            require_success(response)
        for customer in customers:
            paid = await ada.list_transactions(customer.id, type="pos_payment")
            assert len(paid) == _PAYMENTS_PER_CUSTOMER
        console = ConsoleClient(browser)
        await console.sign_in(**ADMIN)
        for path in ("/console", "/console/transactions", "/console/subscribers"):
            assert (await console.get(path)).status_code == 200
        await deployment.require_balanced_books()
        assert list_workers(running.address) == workers, "a worker was restarted"
    assert '"level":"error"' not in (public_tmp_path / "log").read_text()
