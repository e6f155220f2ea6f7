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
from tapgate.overview.model import Agents, Cards, Held, Standing, Subscribers
from tapgate.overview.queries import AccountSum
from tapgate.store.database import Database

_KEPT_SECONDS: Final = 5.0
#: Counting keeps a database busy for this part of the time at most: one in so many.
_REST: Final = 20


class _Kept:
    """What was counted last, and until when it is good enough."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.standing: Standing | None = None
        self.since = self.until = datetime.min.replace(tzinfo=UTC)

    def good(self, now: datetime) -> Standing | None:
        return self.standing if self.standing and self.since <= now < self.until else None


_kept: WeakKeyDictionary[Database, _Kept] = WeakKeyDictionary()


async def standing(services: Services) -> Standing:
    """Counts all that there is, which takes the longer the more there is: so not for everybody
    who looks, and by one at a time."""
    kept = _kept.setdefault(services.database, _Kept())
    now = services.clock()
    if (known := kept.good(now)) is not None:
        return known
    async with kept.lock:
        if (known := kept.good(now)) is not None:
            return known
        started = perf_counter()
        accounts, cards = await queries.standing(services.database, now)
        seconds = max(_KEPT_SECONDS, _REST * (perf_counter() - started))
        kept.standing = _counted(accounts, cards, services.settings.currency, now)
        kept.since, kept.until = now, now + timedelta(seconds=seconds)
        return kept.standing


def _counted(
    accounts: Sequence[AccountSum], cards: Mapping[str, int], currency: str, now: datetime
) -> Standing:
    people, agents = _states(accounts, chart.WALLET), _states(accounts, chart.FLOAT)

    def balance(kind: str) -> str:
        return money.plain(sum(one.balance for one in accounts if one.kind == kind), currency)

    return Standing(
        as_of=clock.rfc3339(now),
        cards=Cards(
            total=sum(cards.values()),
            active=cards.get("ACTIVE", 0),
            blocked=cards.get("BLOCKED", 0),
            lost=cards.get("LOST", 0),
            unassigned=cards.get("UNASSIGNED", 0),
            expired=cards.get("EXPIRED", 0),
        ),
        subscribers=Subscribers(
            total=people.total(),
            active=people["active"],
            blocked=people["blocked"],
            closed=people["closed"],
        ),
        agents=Agents(
            total=agents.total(),
            active=agents["active"],
            suspended=agents["blocked"],
            terminated=agents["closed"],
        ),
        money=Held(
            wallets=balance(chart.WALLET),
            agent_floats=balance(chart.FLOAT),
            agent_commissions=balance(chart.COMMISSION),
            settlements=balance(chart.SETTLEMENT),
            clearing=balance(chart.CLEARING),
            under_review=money.plain(sum(one.held for one in accounts), currency),
        ),
    )


def _states(accounts: Iterable[AccountSum], kind: str) -> Counter[str]:
    """A subscriber's state is that of the wallet, an agent's that of the float."""
    return Counter({one.status: one.accounts for one in accounts if one.kind == kind})
