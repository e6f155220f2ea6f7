"""Grow an installation: write a year of other people's lives into it, set by set."""

from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final

import asyncpg

from bench.growth import indexes, people
from bench.growth.past import Past
from bench.growth.results import Filled, Sizes
from bench.payments.world import Card
from tapgate import ids
from tapgate.clock import system_clock
from tapgate.settings import Settings

#: Entries of the longest history, if there are enough for one.
_LONGEST: Final = 10_000
_AT_ONCE: Final = 100_000
#: Tables that grow. The rows of those with a key here are laid out in no order.
_TABLES: Final = {
    "transactions": None,
    "entries": None,
    "subscribers": None,
    "accounts": "id",
    "cards": "id",
    "pins": "holder_id",
}
#: Of this session alone. Nothing that makes a commit durable is among them.
_SETTINGS: Final = {
    "work_mem": "128MB",
    "maintenance_work_mem": "512MB",
    "temp_buffers": "128MB",
    "timezone": "UTC",
}

Say = Callable[[str], None]


class Fill:
    def __init__(
        self, connection: asyncpg.Connection, settings: Settings, sizes: Sizes, say: Say
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._sizes = sizes
        self._say = say
        self._started = monotonic()

    async def run(self, veteran: Card) -> Filled:
        """`veteran` gets the longest history. There must be a payment at every till already."""
        for name, value in _SETTINGS.items():
            await self._connection.execute("SELECT set_config($1, $2, false)", name, value)
        before = await self._connection.fetchval("SELECT count(*) FROM entries")
        payments = (self._sizes.entries - before - self._sizes.accounts) // 2
        past = Past(
            self._connection,
            now=system_clock(),
            zone=self._settings.timezone,
            payments=payments,
        )
        set_aside = await indexes.set_aside(self._connection, list(_TABLES))
        await self._write(past, veteran)
        await self._settle_down(set_aside)
        return await self._filled(past, veteran, before)

    async def _write(self, past: Past, veteran: Card) -> None:
        number = ids.decode(ids.SUBSCRIBER, veteran.subscriber_id)
        assert number is not None
        accounts, currency = self._sizes.accounts, self._settings.currency
        await people.plan(self._connection, accounts=accounts, currency=currency)
        longest = min(_LONGEST // 2, past.payments // 10)
        await past.plan(veteran=number, of_veteran=longest)
        self._tell("planned who pays when")
        await self._in_steps("wallets funded", accounts, past.fund)
        await self._in_steps("payments", past.payments, past.pay)
        await past.pay_out()
        await past.count_usage()
        await past.count_figures()

        async def join(first: int, last: int) -> None:
            await people.join(self._connection, first, last, since=past.begin, currency=currency)

        await self._in_steps("subscribers", accounts, join)

    async def _in_steps(
        self, what: str, total: int, step: Callable[[int, int], Awaitable[None]]
    ) -> None:
        for first in range(0, total, _AT_ONCE):
            last = min(first + _AT_ONCE, total) - 1
            async with self._connection.transaction():
                await step(first, last)
            self._tell(f"{last + 1:,} of {total:,} {what}")

    async def _settle_down(self, set_aside: list[indexes.Index]) -> None:
        for table, key in _TABLES.items():
            if key is not None:
                await indexes.scatter(self._connection, table, key)
        self._tell("rows laid out")
        for index in set_aside:
            await self._connection.execute(index.definition)
        self._tell(f"{len(set_aside)} indexes made again")
        await self._connection.execute("DISCARD TEMP")
        await self._connection.execute("VACUUM (ANALYZE)")
        await self._connection.execute("CHECKPOINT")
        self._tell("vacuumed, analyzed and on disk")

    async def _filled(self, past: Past, veteran: Card, before: int) -> Filled:
        seconds = monotonic() - self._started
        entries = await self._connection.fetchval("SELECT count(*) FROM entries") - before
        longest = await self._connection.fetchval(
            """SELECT count(*) FROM transactions t JOIN entries e ON e.transaction_id = t.id
               WHERE t.from_account = (SELECT account_id FROM cards WHERE serial = $1)""",
            veteran.serial,
        )
        return Filled(
            people=self._sizes.accounts - self._sizes.cards,
            payments=past.payments,
            entries=entries,
            seconds=round(seconds, 1),
            longest_history=longest,
            seconds_per_million_entries=round(seconds / entries * 1e6, 1),
        )

    def _tell(self, line: str) -> None:
        self._say(f"  {monotonic() - self._started:6.0f} s  {line}")
