"""Money views: a merchant's account over a period, and agent liquidity."""

from typing import Annotated, ClassVar

import msgspec

from tapgate_client import ids
from tapgate_client.schemas.agents import AgentStatus, AgentType
from tapgate_client.schemas.fields import AddressText, IdRule, IntegerRange, SearchText
from tapgate_client.schemas.partners import PartnerStatus
from tapgate_client.schemas.periods import PeriodBound
from tapgate_client.schemas.processors import ProcessorStatus
from tapgate_client.schemas.subscribers import PhoneQueryRule
from tapgate_client.schemas.values import (
    AccountBalance,
    BalanceAmount,
    CalendarDate,
    CurrencyCode,
    Example,
    Id,
    Money,
    Name,
)


class ProcessorSummaryQuery(msgspec.Struct, kw_only=True):
    """Period of at most 366 days, or 31 with `terminals`. Default: the last 30 days."""

    from_: PeriodBound | None = msgspec.field(default=None, name="from")
    to: PeriodBound | None = None
    terminals: bool = False


class ProcessorTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Movements on a processor's settlement account.

    `fees` are the fees of sales and payouts minus the fees that refunds, returned payouts and
    reversals gave back, `fee_refunded`. `net` is sales minus fees, refunds and payouts, plus all
    other movements.
    """

    sales_count: int
    sales: str
    fees: Annotated[str, Example("5.00")]
    fee_refunded: Annotated[Money, Example("1.00")]
    refunds_count: int
    refunds: str
    payouts_count: int
    payouts: str
    net: str


class ProcessorDay(ProcessorTotals, frozen=True, kw_only=True):
    date: CalendarDate


class ProcessorTerminalDay(msgspec.Struct, frozen=True, kw_only=True):
    """A terminal's movements on one day.

    `net` is sales minus fees and refunds, plus all other movements except payouts. Movements
    without a terminal, such as payments from a server, have the `terminal_id` null.
    """

    date: CalendarDate
    terminal_id: Id | None
    sales_count: int
    sales: str
    fees: Annotated[str, Example("5.00")]
    refunds: str
    net: str


class ProcessorSummary(msgspec.Struct, frozen=True, kw_only=True):
    """`days` has the days with movements, newest first, in the platform's time zone.

    With `terminals=true`, `terminals` has the same movements without payouts, by day and terminal.
    The sum of their `net` is `totals.net` plus `totals.payouts`: what there was to pay out.
    """

    OMITTED_IN_EXAMPLES: ClassVar = ("terminals",)

    processor_id: Id
    currency: CurrencyCode
    balance: AccountBalance
    from_: Annotated[str, Example("2026-01-01")] = msgspec.field(name="from")
    to: Annotated[str, Example("2026-01-31")]
    totals: ProcessorTotals
    days: list[ProcessorDay]
    terminals: list[ProcessorTerminalDay] | msgspec.UnsetType = msgspec.UNSET


class ProcessorTotalsQuery(msgspec.Struct, kw_only=True):
    status: ProcessorStatus | None = None
    search: SearchText | None = None


class PartnerTotalsQuery(msgspec.Struct, kw_only=True):
    status: PartnerStatus | None = None
    search: SearchText | None = None


class AgentTotalsQuery(msgspec.Struct, kw_only=True):
    phone_number: Annotated[str, PhoneQueryRule()] | None = None
    address: AddressText | None = None
    status: AgentStatus | None = None
    agent_type: AgentType | None = None
    parent_agent_id: Annotated[str, IdRule(ids.AGENT)] | None = None
    search: SearchText | None = None
    low_float: bool | None = None


class BalanceTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Number of records in a list, and the sum of their balances. Of agents, the float counts."""

    count: int
    balance: AccountBalance
    currency: CurrencyCode


class LiquidityQuery(msgspec.Struct, kw_only=True):
    parent_agent_id: Annotated[str, IdRule(ids.AGENT)] | None = None
    limit: Annotated[int, IntegerRange(1, 100)] = 50


class AgentLiquidity(msgspec.Struct, frozen=True, kw_only=True):
    """An active agent's float, and for how many days it lasts.

    `daily_outflow` is the average of cash-ins minus cash-outs in the last 7 days; it is negative if
    the float grows. `days_of_cover` is null unless the outflow is positive.
    """

    EXAMPLES: ClassVar = {"parent_agent_id": None}

    agent_id: Id
    name: Name
    parent_agent_id: Id | None
    float_balance: BalanceAmount
    daily_outflow: str
    days_of_cover: float | None


class NetworkLiquidity(msgspec.Struct, frozen=True, kw_only=True):
    """Liquidity of all active agents, or of one super-agent and its sub-agents.

    `data` has the agents whose float runs out first.
    """

    currency: CurrencyCode
    agents: int
    float_balance: BalanceAmount
    daily_outflow: str
    #: Agents whose float lasts for less than a day, for less than 3 days and for less than 7 days.
    within_1_day: int
    within_3_days: int
    within_7_days: int
    data: list[AgentLiquidity]
