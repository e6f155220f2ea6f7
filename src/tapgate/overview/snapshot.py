"""How many of everything there are, and whose money: counted now and then, and kept in between."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Final
from weakref import WeakKeyDictionary

from tapgate import clock, money
from tapgate.edge.services import Services
from tapgate.ledger import chart
from tapgate.overview import queries
from tapgate.overview.model import (
    AgentCounts,
    CardCounts,
    PlatformBalances,
    PlatformSnapshot,
    SubscriberCounts,
)
from tapgate.overview.queries import AccountTotals
from tapgate.store.database import Database

_CACHE_SECONDS: Final = 5.0
#: Counting keeps a database busy for this part of the time at most: one in so many.
_IDLE_FACTOR: Final = 20


class _CacheEntry:
    """What was counted last, and until when it is good enough."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.snapshot: PlatformSnapshot | None = None
        self.valid_from = self.valid_until = datetime.min.replace(tzinfo=UTC)

    def get_valid(self, now: datetime) -> PlatformSnapshot | None:
        return (
            self.snapshot if self.snapshot and self.valid_from <= now < self.valid_until else None
        )


_cache: WeakKeyDictionary[Database, _CacheEntry] = WeakKeyDictionary()


async def get_snapshot(services: Services) -> PlatformSnapshot:
    """Counts all that there is, which takes the longer the more there is: so not for everybody
    who looks, and by one at a time."""
    kept = _cache.setdefault(services.database, _CacheEntry())
    now = services.clock()
    if (known := kept.get_valid(now)) is not None:
        return known
    async with kept.lock:
        if (known := kept.get_valid(now)) is not None:
            return known
        started = perf_counter()
        accounts, cards = await queries.load_snapshot(services.database, now)
        seconds = max(_CACHE_SECONDS, _IDLE_FACTOR * (perf_counter() - started))
        kept.snapshot = _build_snapshot(accounts, cards, services.settings.currency, now)
        kept.valid_from, kept.valid_until = now, now + timedelta(seconds=seconds)
        return kept.snapshot


def _build_snapshot(
    accounts: Sequence[AccountTotals], cards: Mapping[str, int], currency: str, now: datetime
) -> PlatformSnapshot:
    people, agents = (
        _count_by_status(accounts, chart.WALLET),
        _count_by_status(accounts, chart.FLOAT),
    )

    def balance(kind: str) -> str:
        return money.format_decimal(
            sum(one.balance for one in accounts if one.kind == kind), currency
        )

    return PlatformSnapshot(
        as_of=clock.format_rfc3339(now),
        cards=CardCounts(
            total=sum(cards.values()),
            active=cards.get("ACTIVE", 0),
            blocked=cards.get("BLOCKED", 0),
            lost=cards.get("LOST", 0),
            unassigned=cards.get("UNASSIGNED", 0),
            expired=cards.get("EXPIRED", 0),
        ),
        subscribers=SubscriberCounts(
            total=people.total(),
            active=people["active"],
            blocked=people["blocked"],
            closed=people["closed"],
        ),
        agents=AgentCounts(
            total=agents.total(),
            active=agents["active"],
            suspended=agents["blocked"],
            terminated=agents["closed"],
        ),
        money=PlatformBalances(
            wallets=balance(chart.WALLET),
            agent_floats=balance(chart.FLOAT),
            agent_commissions=balance(chart.COMMISSION),
            settlements=balance(chart.SETTLEMENT),
            clearing=balance(chart.CLEARING),
            under_review=money.format_decimal(sum(one.held for one in accounts), currency),
        ),
    )


def _count_by_status(accounts: Iterable[AccountTotals], kind: str) -> Counter[str]:
    """A subscriber's state is that of the wallet, an agent's that of the float."""
    return Counter({one.status: one.accounts for one in accounts if one.kind == kind})
