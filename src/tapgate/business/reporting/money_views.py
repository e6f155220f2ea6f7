"""Money views: a merchant's account over a period, and agent liquidity."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from tapgate.business.merchants.processors.model import Processor
from tapgate.business.payments.transactions.queries import ID_TIME_TOLERANCE, get_first_id
from tapgate.business.payments.wallets.statements.queries import DailyMovements, sum_movements
from tapgate.ledger import chart
from tapgate.runtime.store.database import Database
from tapgate_client import ids, money
from tapgate_client.clock import format_rfc3339
from tapgate_client.errors import invalid_field
from tapgate_client.schemas.money_views import (
    AgentLiquidity,
    NetworkLiquidity,
    ProcessorDay,
    ProcessorSummary,
    ProcessorSummaryQuery,
    ProcessorTerminalDay,
    ProcessorTotals,
)
from tapgate_client.schemas.periods import parse_period_end, parse_period_start

#: A returned payout counts against the payouts.
_PAYOUT_TYPES: Final = frozenset({chart.PROCESSOR_TRANSFER, chart.PAYOUT, chart.PAYOUT_RETURN})
_DEFAULT_PERIOD: Final = timedelta(days=30)
_MAX_PERIOD: Final = timedelta(days=366)
#: With a row for each terminal and day, the response would otherwise have no limit.
_MAX_TERMINAL_PERIOD: Final = timedelta(days=31)
LIQUIDITY_DAYS: Final = 7
_QUERY_TIMEOUT_SECONDS: Final = 30.0

#: Active agents, those whose float runs out first at the beginning. $1 and $2 are the ID and the
#: time from which cash-ins and cash-outs count, $3 is a super-agent's ID or null. An outflow is the
#: sum of all days.
_LIQUIDITY_SQL: Final = """
    WITH flow AS (
        SELECT account, sum(amount)::bigint AS outflow FROM (
            SELECT from_account AS account, amount FROM transactions
            WHERE type = 'agent_cashin' AND id >= $1 AND status = 'completed' AND created_at >= $2
            UNION ALL
            SELECT to_account, -amount FROM transactions
            WHERE type = 'agent_cashout' AND id >= $1 AND status = 'completed' AND created_at >= $2
        ) AS cash GROUP BY account
    )
    SELECT agent.id, a.holder_name AS name, agent.parent_agent_id, a.balance,
           coalesce(flow.outflow, 0) AS outflow
    FROM agents agent JOIN accounts a ON a.id = agent.account_id
    LEFT JOIN flow ON flow.account = a.id
    WHERE a.status = 'active' AND ($3::bigint IS NULL OR $3 IN (agent.id, agent.parent_agent_id))
    ORDER BY CASE WHEN flow.outflow > 0 THEN a.balance::numeric / flow.outflow END, a.balance,
             agent.id"""


class SummaryPeriod(NamedTuple):
    start: datetime
    end: datetime  # exclusive


def parse_period(query: ProcessorSummaryQuery, now: datetime, zone: ZoneInfo) -> SummaryPeriod:
    end = parse_period_end(query.to, zone) or now
    start = parse_period_start(query.from_, zone) or end - _DEFAULT_PERIOD
    longest = _MAX_TERMINAL_PERIOD if query.terminals else _MAX_PERIOD
    if end - start > longest:
        raise invalid_field("from", f"must be at most {longest.days} days before the end")
    if start >= end:
        raise invalid_field("from", "must be before the end")
    return SummaryPeriod(start, end)


async def summarize_processor(
    database: Database,
    processor: Processor,
    period: SummaryPeriod,
    zone: ZoneInfo,
    *,
    by_terminal: bool,
) -> ProcessorSummary:
    """Add up movements on a processor's settlement account."""
    movements = await sum_movements(
        database, processor.account_id, *period, zone, by_terminal=by_terminal
    )
    days: dict[date, list[DailyMovements]] = {}
    for movement in movements:
        days.setdefault(movement.day, []).append(movement)
    currency = processor.currency
    return ProcessorSummary(
        processor_id=ids.encode(ids.PROCESSOR, processor.id),
        currency=currency,
        balance=money.format_decimal(processor.balance, currency),
        from_=format_rfc3339(period.start),
        to=format_rfc3339(period.end),
        totals=ProcessorTotals(**_sum_movements(movements, currency)),
        days=[
            ProcessorDay(date=day.isoformat(), **_sum_movements(days[day], currency))
            for day in sorted(days, reverse=True)
        ],
        terminals=_list_terminal_days(movements, currency) if by_terminal else msgspec.UNSET,
    )


def _list_terminal_days(
    movements: Iterable[DailyMovements], currency: str
) -> list[ProcessorTerminalDay]:
    """Add up movements by day, newest first, and terminal. Payouts come from all terminals."""
    groups: dict[tuple[date, str], list[DailyMovements]] = {}
    for movement in movements:
        if movement.type not in _PAYOUT_TYPES:
            groups.setdefault((movement.day, movement.terminal_id or ""), []).append(movement)
    rows = []
    for day, terminal_id in sorted(groups, key=lambda group: (-group[0].toordinal(), group[1])):
        sums = _sum_movements(groups[day, terminal_id], currency)
        rows.append(
            ProcessorTerminalDay(
                date=day.isoformat(),
                terminal_id=terminal_id or None,
                **{name: sums[name] for name in ("sales_count", "sales", "fees", "refunds", "net")},
            )
        )
    return rows


def _sum_movements(movements: Iterable[DailyMovements], currency: str) -> dict[str, Any]:
    sales = fees = fee_refunded = refunds = payouts = net = 0
    counts = {"sales": 0, "refunds": 0, "payouts": 0}
    for movement in movements:
        net += movement.amount + movement.fees
        fees -= movement.fees
        fee_refunded += max(movement.fees, 0)
        if movement.type in chart.PAYMENT_TYPES:
            sales += movement.amount
            counts["sales"] += movement.transactions
        elif movement.type == chart.REFUND:
            refunds -= movement.amount
            counts["refunds"] += movement.transactions
        elif movement.type in _PAYOUT_TYPES:
            payouts -= movement.amount
            counts["payouts"] += movement.transactions
    amounts = {
        "sales": sales,
        "fees": fees,
        "fee_refunded": fee_refunded,
        "refunds": refunds,
        "payouts": payouts,
        "net": net,
    }
    return {
        **{name: money.format_decimal(amount, currency) for name, amount in amounts.items()},
        **{f"{name}_count": count for name, count in counts.items()},
    }


class _AgentRow(NamedTuple):
    id: int
    name: str
    parent_agent_id: int | None
    balance: int
    outflow: int

    @property
    def days_of_cover(self) -> float | None:
        if self.outflow <= 0:
            return None
        return round(self.balance * LIQUIDITY_DAYS / self.outflow, 1)


async def load_liquidity(
    database: Database, now: datetime, parent_id: int | None, *, limit: int, currency: str
) -> NetworkLiquidity:
    """Return agent liquidity. The cost grows with the weekly cash-ins and cash-outs."""
    since = now - timedelta(days=LIQUIDITY_DAYS)
    async with database.snapshot(timeout_seconds=_QUERY_TIMEOUT_SECONDS) as reader:
        rows = await reader.fetch(
            _LIQUIDITY_SQL,
            get_first_id(since - ID_TIME_TOLERANCE),
            since,
            parent_id,
            timeout=_QUERY_TIMEOUT_SECONDS,
        )
    agents = [_AgentRow(*row) for row in rows]
    return NetworkLiquidity(
        currency=currency,
        agents=len(agents),
        float_balance=money.format_decimal(sum(agent.balance for agent in agents), currency),
        daily_outflow=_format_daily(sum(agent.outflow for agent in agents), currency),
        within_1_day=_count_within(agents, 1),
        within_3_days=_count_within(agents, 3),
        within_7_days=_count_within(agents, 7),
        data=[_to_liquidity(agent, currency) for agent in agents[:limit]],
    )


def _count_within(agents: Sequence[_AgentRow], days: int) -> int:
    return sum(agent.days_of_cover is not None and agent.days_of_cover < days for agent in agents)


def _to_liquidity(agent: _AgentRow, currency: str) -> AgentLiquidity:
    parent_id = agent.parent_agent_id
    return AgentLiquidity(
        agent_id=ids.encode(ids.AGENT, agent.id),
        name=agent.name,
        parent_agent_id=None if parent_id is None else ids.encode(ids.AGENT, parent_id),
        float_balance=money.format_decimal(agent.balance, currency),
        daily_outflow=_format_daily(agent.outflow, currency),
        days_of_cover=agent.days_of_cover,
    )


def _format_daily(outflow: int, currency: str) -> str:
    return money.format_decimal(round(outflow / LIQUIDITY_DAYS), currency)
