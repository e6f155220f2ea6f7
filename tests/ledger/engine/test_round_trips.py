"""Round trips between the ledger and PostgreSQL, counted by a proxy.

PostgreSQL ends its response to every round trip with a ReadyForQuery message.
"""

import itertools
from collections.abc import AsyncIterator

import pytest

from builders.ledger import (
    PIN,
    LedgerDriver,
    build_command,
    build_p2p,
    build_payment,
    build_refund,
    build_request_key,
    require_balanced_books,
)
from drivers.network_faults import run_proxy
from runtime.store.conftest import build_tcp_url
from tapgate.ledger import chart
from tapgate.ledger.commands import Command
from tapgate.runtime.store.database import Database

_READY_FOR_QUERY = b"Z\x00\x00\x00\x05"


class CountingLedger:
    def __init__(self) -> None:
        self.ledger: LedgerDriver
        self._responses = b""

    async def add_response(self, response: bytes) -> bool:
        self._responses += response
        return False

    async def count_round_trips(self, *commands: Command) -> int:
        self._responses = b""
        for outcome in await self.ledger.submit_batch(list(commands)):
            outcome.require_accepted()
        return self._responses.count(_READY_FOR_QUERY)


@pytest.fixture
async def counting(database_url: str, database: Database) -> AsyncIterator[CountingLedger]:
    counting = CountingLedger()
    async with run_proxy(database_url, hook=counting.add_response) as port:
        url = build_tcp_url(database_url, "127.0.0.1", port)
        counting.ledger = await LedgerDriver.open(url, database)
        yield counting
        await counting.ledger.close()
    await require_balanced_books(database)


async def test_batch_round_trips(counting: CountingLedger) -> None:
    ledger = counting.ledger
    merchant, friend = await ledger.create_processor(), await ledger.create_subscriber()
    numbers = itertools.count()

    def tap(card: str) -> Command:
        key = build_request_key(str(next(numbers)))
        return build_command(
            chart.POS_PAYMENT, card, merchant, 1_00, payer_pin=PIN, idempotency_key=key
        )

    for _ in range(2):  # statements are prepared the first time
        payer = await ledger.create_subscriber(100_00)
        card = await ledger.create_card(payer)
        counts = {
            "card payment": await counting.count_round_trips(tap(card)),
            "card payments": await counting.count_round_trips(*(tap(card) for _ in range(3))),
            "payment": await counting.count_round_trips(build_payment(payer, merchant, 1_00)),
            "transfer": await counting.count_round_trips(build_p2p(payer, friend, 1_00)),
        }
    assert counts == {"card payment": 2, "card payments": 2, "payment": 3, "transfer": 3}


async def test_batch_with_a_refund_commits_last(counting: CountingLedger) -> None:
    ledger = counting.ledger
    payer, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    paid = (await ledger.submit(build_payment(payer, merchant, 5_00))).require_accepted()
    for _ in range(2):
        refund = build_refund(merchant, paid.transaction_id, 1_00)
        count = await counting.count_round_trips(refund)
    assert count > 4
    assert await ledger.get_balance(payer) == 97_00
