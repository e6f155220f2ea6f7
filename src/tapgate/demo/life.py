"""The days of the demo country: who comes, who is paid, who buys, sends and gets cash, and when."""

import asyncio
import math
from collections.abc import Callable, Coroutine
from datetime import UTC, date, datetime, time, timedelta
from itertools import accumulate
from random import Random
from typing import Any, Final
from zoneinfo import ZoneInfo

from tapgate.demo import country as places
from tapgate.demo import founding
from tapgate.demo.country import Size
from tapgate.demo.dealings import Dealings
from tapgate.demo.founding import Founder
from tapgate.demo.incidents import Incidents
from tapgate.demo.past import PastClock
from tapgate.demo.residents import Agent, Country, Resident, Shop

#: How busy the hours are, from seven in the morning until eleven at night.
_FIRST_HOUR: Final = 7
_HOURS: Final = (3, 6, 7, 7, 6, 7, 6, 5, 5, 6, 8, 10, 8, 5, 3, 1)
#: Monday first. Wednesday and Saturday are market days; on Sunday most shops are closed.
_WEEKDAYS: Final = (0.9, 0.9, 1.2, 0.9, 1.1, 1.4, 0.6)
_MONDAY, _FRIDAY, _SATURDAY = 0, 4, 5

#: As many payments as a careful person makes in a day; the platform stops at twenty.
_MOST_IN_A_DAY: Final = 6
#: This many come on the first day, the rest until the country is half as old as it will be.
_FIRST_COMERS: Final = 0.6

Dealing = Coroutine[Any, Any, None]


class Life:
    def __init__(
        self,
        country: Country,
        founder: Founder,
        dealings: Dealings,
        chance: Random,
        size: Size,
        clock: PastClock,
        advance: Callable[[int], None],
    ) -> None:
        self._country = country
        self._founder = founder
        self._dealings = dealings
        self._chance = chance
        self._size = size
        self._clock = clock
        self._advance = advance
        self._unit = dealings.unit
        self._incidents = Incidents(country, founder, dealings, clock)
        self._here: list[Resident] = []
        self._weights: list[float] = []

    async def live(self, today: date, end: datetime, zone: ZoneInfo) -> None:
        """All days up to the end, which is today."""
        for number in range(self._size.days):
            day = today - timedelta(days=self._size.days - 1 - number)

            def at(clock_time: time, day: date = day) -> datetime:
                return datetime.combine(day, clock_time, zone).astimezone(UTC)

            if at(time(6)) >= end:
                return
            self._clock.move_to(at(time(5, 12)))
            await self._welcome(number)
            for minute, dealings in enumerate(self._morning(number, day)):
                self._clock.move_to(at(time(5, 30 + 3 * minute, 7)))
                await self._together(dealings)
            for moment, visitors in self._visits(day):
                if at(moment) >= end:
                    return
                self._clock.move_to(at(moment))
                await self._together([self._decide(resident) for resident in visitors])
                await self._together(self._returns())
            self._clock.move_to(at(time(23, 20)))
            await self._incidents.happen(self._size.days - 1 - number)

    async def prepare_examples(self) -> None:
        """Whoever the examples are about can afford them."""
        hero, agent = self._country.residents[founding.HERO], self._country.agents[0]
        if hero.balance < 1_000 * self._unit:
            await self._dealings.receive(hero, 2_500 * self._unit, "ADVANCE")
        if agent.balance < 2_000 * self._unit:
            await self._dealings.fund_agent(agent, 10_000 * self._unit)

    # Who comes

    async def _welcome(self, number: int) -> None:
        everybody = self._country.residents
        first = max(int(len(everybody) * _FIRST_COMERS), 12)
        share = min(1.0, number / (self._size.days / 2))
        newcomers = everybody[len(self._here) : first + int((len(everybody) - first) * share)]
        if newcomers:
            await self._founder.settle(newcomers, self._here)
            self._here += newcomers
            self._weights = list(accumulate(resident.activity for resident in self._here))
            self._advance(len(newcomers))
        for resident in self._here:
            resident.done_today = 0

    # What is arranged

    def _morning(self, number: int, day: date) -> list[list[Dealing]]:
        """One list after the other: what the later ones need is there by then."""
        first = number == 0
        salaries = [
            self._dealings.receive(resident, resident.salary, f"SALARY-{day:%Y-%m}")
            for resident in self._here
            if resident.salary and resident.active and (first or resident.payday == day.day)
        ]
        deposits = []
        if first or day.weekday() == _MONDAY:
            month = sum(resident.salary for resident in self._country.residents)
            # Every week a quarter of it, and what relatives abroad send.
            thousands = (month if first else month // 3) // (1_000 * self._unit)
            deposits.append(self._dealings.deposit(thousands * 1_000 * self._unit))
        if first or day.day == 1:
            employer = self._country.residents[founding.EMPLOYER]
            salaries.append(self._dealings.receive(employer, 9_000 * self._unit, "DUES"))
        return [deposits, self._floats(), self._passed_on(), salaries, *self._weekly(day)]

    def _floats(self) -> list[Dealing]:
        full = 30_000 * self._unit
        return [
            self._dealings.fund_agent(agent, full)
            for agent in self._country.super_agents
            if agent.balance < full // 3
        ]

    def _passed_on(self) -> list[Dealing]:
        enough = 5_000 * self._unit
        return [
            self._dealings.pass_on(agent.parent, agent, enough)
            for agent in self._country.agents
            if agent.parent is not None
            and agent.balance < enough // 2
            and agent.parent.balance > enough
        ]

    def _weekly(self, day: date) -> list[list[Dealing]]:
        weekday = day.weekday()
        if weekday == _MONDAY:
            return [self._takings()]
        if weekday == _FRIDAY:
            return [
                [
                    self._dealings.pay_commission(agent)
                    for agent in self._country.agents
                    if agent.commission > 0
                ]
            ]
        if weekday == _SATURDAY:
            employer = self._country.residents[founding.EMPLOYER]
            workers = self._country.residents[8:12]
            wage = 350 * self._unit
            if employer.balance > wage * len(workers):
                return [[self._dealings.pay_wage(employer, worker, wage) for worker in workers]]
        return []

    def _takings(self) -> list[Dealing]:
        owners = [resident for resident in self._here if resident.kyc_level > 1]
        return [
            self._dealings.take_out(
                shop,
                owners[number % len(owners)],
                shop.taken * 6 // 10 // self._unit * self._unit,
            )
            for number, shop in enumerate(self._country.shops)
            if shop.taken > 400 * self._unit
        ]

    # What people decide

    def _visits(self, day: date) -> list[tuple[time, list[Resident]]]:
        """At each moment of the day those who do something then."""
        expected = len(self._here) * self._size.a_day * _WEEKDAYS[day.weekday()]
        expected *= 1.25 if day.day <= 5 else 1.0
        count = max(0, round(self._chance.gauss(expected, expected**0.5)))
        visitors = self._chance.choices(self._here, cum_weights=self._weights, k=count)
        length = len(_HOURS) * 3600 / self._size.moments
        moments: dict[int, tuple[int, list[Resident]]] = {}
        for resident in visitors:
            if not resident.active or resident.done_today >= _MOST_IN_A_DAY:
                continue
            resident.done_today += 1
            hour = self._chance.choices(range(len(_HOURS)), _HOURS)[0]
            second = hour * 3600 + self._chance.randrange(3600)
            latest, others = moments.get(int(second / length), (0, []))
            moments[int(second / length)] = max(latest, second), [*others, resident]
        self._advance(count)
        return [(_time_of_day(second), others) for _, (second, others) in sorted(moments.items())]

    def _decide(self, resident: Resident) -> Dealing:
        chance = self._chance
        poor = resident.balance < 60 * self._unit
        if poor and chance.random() < 0.95:
            return self._cash_in(resident)
        return chance.choices(
            (self._buy, self._send, self._buy_in_app, self._cash_out, self._cash_in, self._receive),
            (56, 18, 9, 7, 6, 4),
        )[0](resident)

    def _buy(self, resident: Resident) -> Dealing:
        chance = self._chance
        shop = chance.choice(self._country.shops)
        child = chance.choice(resident.children) if resident.children else None
        if child is not None and chance.random() < 0.3:
            allowance = self._price(5, 60 if chance.random() < 0.95 else 400)
            if allowance < resident.balance:
                return self._dealings.pay(resident, shop, allowance, child=child)
        wanted = self._price(shop.merchant.cheapest, shop.merchant.dearest)
        amount = self._affordable(resident, wanted)
        if amount is None:
            return self._cash_in(resident)
        return self._dealings.pay(resident, shop, amount)

    def _buy_in_app(self, resident: Resident) -> Dealing:
        shops: list[Shop] = [shop for shop in self._country.shops if shop.merchant.in_app]
        shop = self._chance.choice(shops)
        # There is no PIN, so there is a limit.
        wanted = self._price(shop.merchant.cheapest, min(shop.merchant.dearest, 400))
        amount = self._affordable(resident, wanted)
        if amount is None:
            return self._cash_in(resident)
        return self._dealings.pay_in_app(resident, shop, amount)

    def _send(self, resident: Resident) -> Dealing:
        chance = self._chance
        recipient = chance.choice(resident.friends)
        memo = chance.choice(places.MEMOS) if chance.random() < 0.7 else None
        amount = self._affordable(resident, self._price(20, 600))
        if amount is None:
            return self._cash_in(resident)
        return self._dealings.send(resident, recipient, amount, memo)

    def _cash_in(self, resident: Resident) -> Dealing:
        amount = self._chance.choice((100, 150, 200, 300, 500)) * resident.kyc_level * self._unit
        agent: Agent = resident.agent
        if agent.balance < amount and agent.parent is not None:
            agent = agent.parent
        return self._dealings.cash_in(resident, agent, amount)

    def _cash_out(self, resident: Resident) -> Dealing:
        amount = self._chance.choice((50, 100, 200)) * self._unit
        if amount > resident.balance // 2:
            return self._buy(resident)
        return self._dealings.cash_out(resident, resident.agent, amount)

    def _receive(self, resident: Resident) -> Dealing:
        """Money from relatives abroad."""
        amount = self._chance.randrange(100, 900, 25) * self._unit
        return self._dealings.receive(resident, amount, "REMIT")

    def _returns(self) -> list[Dealing]:
        waiting, self._dealings.to_refund = self._dealings.to_refund, []
        return [self._dealings.give_back(*payment) for payment in waiting]

    def _price(self, cheapest: int, dearest: int) -> int:
        """Between the two, mostly near the cheaper one, and rounded as prices are."""
        price = cheapest * math.pow(dearest / cheapest, math.pow(self._chance.random(), 1.4))
        step: int = max(1, self._unit // 2)
        if price >= 50:
            step = self._unit * (5 if price < 500 else 25)
        return max(1, round(price * self._unit / step)) * step

    def _affordable(self, resident: Resident, wanted: int) -> int | None:
        """Most people know what they have and take less, or get cash first; some try."""
        most = resident.balance * 9 // 10
        if wanted <= most or self._chance.random() < 0.2:
            return wanted
        less = most // 2 // self._unit * self._unit
        return less if less >= 10 * self._unit else None

    @staticmethod
    async def _together(dealings: list[Dealing]) -> None:
        await asyncio.gather(*dealings)


def _time_of_day(second: int) -> time:
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    return time(_FIRST_HOUR + hour, minute, second)
