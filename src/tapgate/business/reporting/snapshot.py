"""Cached snapshot: card, subscriber and agent counts, and balances."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final
from weakref import WeakKeyDictionary

from tapgate.business.reporting import queries
from tapgate.business.reporting.queries import AccountTotals
from tapgate.ledger import chart
from tapgate.ledger.chart import AccountStatus
from tapgate.runtime.cost_bound_cache import CostBoundCache
from tapgate.runtime.store.database import Database
from tapgate_client import clock, money
from tapgate_client.schemas.cards import CardStatus
from tapgate_client.schemas.reporting import (
    AgentCounts,
    CardCounts,
    PlatformBalances,
    PlatformSnapshot,
    SubscriberCounts,
)

_CACHE_SECONDS: Final = 5.0

_caches: WeakKeyDictionary[Database, CostBoundCache[PlatformSnapshot]] = WeakKeyDictionary()


async def get_snapshot(database: Database, currency: str, now: datetime) -> PlatformSnapshot:
    """Return the cached snapshot, or compute a new one if it has expired.

    The cost grows with the number of accounts and cards, so the result is cached and only one task
    per process computes it at a time.
    """

    async def compute() -> PlatformSnapshot:
        accounts, cards = await queries.load_snapshot(database, now)
        return _build_snapshot(accounts, cards, currency, now)

    return await _caches.setdefault(database, CostBoundCache(_CACHE_SECONDS)).get(now, compute)


def _build_snapshot(
    accounts: Sequence[AccountTotals], cards: Mapping[str, int], currency: str, now: datetime
) -> PlatformSnapshot:
    subscribers, agents = (
        _count_by_status(accounts, chart.WALLET),
        _count_by_status(accounts, chart.FLOAT),
    )

    def format_total_balance(kind: str) -> str:
        return money.format_decimal(
            sum(totals.balance for totals in accounts if totals.kind == kind), currency
        )

    return PlatformSnapshot(
        as_of=clock.format_rfc3339(now),
        cards=CardCounts(
            total=sum(cards.values()),
            **{status.lower(): cards.get(status, 0) for status in CardStatus},
        ),
        subscribers=SubscriberCounts(
            total=subscribers.total(),
            **{status.value: subscribers[status] for status in AccountStatus},
        ),
        agents=AgentCounts(
            total=agents.total(),
            active=agents[AccountStatus.ACTIVE],
            suspended=agents[AccountStatus.BLOCKED],
            terminated=agents[AccountStatus.CLOSED],
        ),
        money=PlatformBalances(
            wallets=format_total_balance(chart.WALLET),
            agent_floats=format_total_balance(chart.FLOAT),
            agent_commissions=format_total_balance(chart.COMMISSION),
            settlements=format_total_balance(chart.SETTLEMENT),
            clearing=format_total_balance(chart.CLEARING),
            under_review=money.format_decimal(sum(totals.held for totals in accounts), currency),
        ),
    )


def _count_by_status(accounts: Iterable[AccountTotals], kind: str) -> Counter[str]:
    """Count accounts of one kind by status.

    A subscriber has the wallet account's status, an agent the float account's status.
    """
    return Counter({totals.status: totals.accounts for totals in accounts if totals.kind == kind})
