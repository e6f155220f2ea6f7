"""Day-by-day demo country simulation: registrations, salaries, purchases and transfers.

A few incidents have fixed dates, such as a lost card, a blocked subscriber and a house sale.
"""

import asyncio
import math
from collections.abc import Callable, Coroutine
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from itertools import accumulate
from random import Random
from typing import Any, Final
from zoneinfo import ZoneInfo

from tapgate_client.schemas.subscribers import KycDocumentType
from tapgate_sandbox.demo import country as country_data
from tapgate_sandbox.demo import seed
from tapgate_sandbox.demo.clock import SimulatedClock
from tapgate_sandbox.demo.country import Size
from tapgate_sandbox.demo.people import Agent, Country, Resident
from tapgate_sandbox.demo.seed import Seeder
from tapgate_sandbox.demo.transactions import TransactionSimulator

#: Relative activity per hour, from 7:00 to 23:00.
_FIRST_HOUR: Final = 7
_HOUR_WEIGHTS: Final = (3, 6, 7, 7, 6, 7, 6, 5, 5, 6, 8, 10, 8, 5, 3, 1)
#: Monday first. Wednesday and Saturday are market days; on Sunday most shops are closed.
_WEEKDAY_FACTORS: Final = (0.9, 0.9, 1.2, 0.9, 1.1, 1.4, 0.6)
_MONDAY, _FRIDAY, _SATURDAY = 0, 4, 5

#: Random transactions per resident. The default compliance rules allow 20 transactions per day.
_MAX_TRANSACTIONS_PER_DAY: Final = 6
#: Fraction of residents that register on the first day. The rest register in the first half of
#: the simulated period.
_FIRST_DAY_FRACTION: Final = 0.6

_HOUSE_PRICE: Final = 620_000
_REVIEWED_DOCUMENTS: Final = (
    (KycDocumentType.ID_FRONT, KycDocumentType.SELFIE),
    (KycDocumentType.ID_FRONT,),
)

PendingTransaction = Coroutine[Any, Any, None]


class Simulation:
    def __init__(
        self,
        country: Country,
        seeder: Seeder,
        simulator: TransactionSimulator,
        rng: Random,
        size: Size,
        clock: SimulatedClock,
        advance: Callable[[int], None],
    ) -> None:
        self._country = country
        self._seeder = seeder
        self._transactions = simulator
        self._random = rng
        self._size = size
        self._clock = clock
        self._advance_progress = advance
        self._major_unit = simulator.major_unit
        self._registered: list[Resident] = []
        self._activity_weights: list[float] = []

    async def run(self, today: date, end: datetime, zone: ZoneInfo) -> None:
        """Simulate all days up to `end`, a time on the day `today`."""
        for day_number in range(self._size.days):
            day = today - timedelta(days=self._size.days - 1 - day_number)

            def at(clock_time: time, day: date = day) -> datetime:
                return datetime.combine(day, clock_time, zone).astimezone(UTC)

            if at(time(0, 16)) >= end:
                return
            self._clock.advance_to(at(time(0, 16)))
            await self._seeder.close_day(day - timedelta(days=1))
            if at(time(6)) >= end:
                return
            self._clock.advance_to(at(time(5, 12)))
            await self._register_new_residents(day_number)
            for minute, transactions in enumerate(self._plan_morning(day_number, day)):
                self._clock.advance_to(at(time(5, 30 + 3 * minute, 7)))
                await asyncio.gather(*transactions)
            for moment, residents in self._plan_day(day):
                if at(moment) >= end:
                    return
                self._clock.advance_to(at(moment))
                await asyncio.gather(*map(self._choose_transaction, residents))
                await asyncio.gather(*self._plan_refunds())
            if at(time(23, 20)) >= end:
                return
            self._clock.advance_to(at(time(23, 20)))
            await self._run_incident(self._size.days - 1 - day_number)

    async def prepare_examples(self) -> None:
        """Ensure sufficient balances for the people in the examples, and fill the staff's queues.

        One customer asks for support, another one recalls a transfer, and one disputes a payment.
        Two customers wait for their KYC review: the documents of the first one suffice for the
        next level.
        """
        hero, agent = self._country.residents[seed.HERO], self._country.agents[0]
        if hero.balance < 1_000 * self._major_unit:
            await self._transactions.fund_from_partner(hero, 2_500 * self._major_unit, "ADVANCE")
        if agent.balance < 2_000 * self._major_unit:
            await self._transactions.fund_agent(agent, 10_000 * self._major_unit)
        friend = self._country.residents[seed.FRIEND]
        await self._seeder.ask_support(friend, "I paid at the market and was charged twice.")
        candidates = [
            resident
            for resident in self._registered[seed.EXPIRED_CARD + 1 :]
            if resident.kyc_level == 1 and resident.is_active
        ]
        for resident, document_types in zip(candidates, _REVIEWED_DOCUMENTS, strict=False):
            await self._seeder.send_documents(resident, *document_types)
        sender, recipient, *_ = [
            resident
            for resident in self._registered[seed.EXPIRED_CARD + 1 :]
            if resident.is_active and resident is not hero
        ]
        await self._transactions.fund_from_partner(sender, 100 * self._major_unit, "ADVANCE-2")
        await self._transactions.send(sender, recipient, 60 * self._major_unit, None)
        await self._seeder.undo_payments(hero)

    # Registrations

    async def _register_new_residents(self, day_number: int) -> None:
        residents = self._country.residents
        initial_count = max(int(len(residents) * _FIRST_DAY_FRACTION), 12)
        fraction = min(1.0, day_number / (self._size.days / 2))
        new_residents = residents[
            len(self._registered) : initial_count + int((len(residents) - initial_count) * fraction)
        ]
        if new_residents:
            await self._seeder.register_residents(new_residents, self._registered)
            self._registered += new_residents
            self._activity_weights = list(
                accumulate(resident.activity for resident in self._registered)
            )
            self._advance_progress(len(new_residents))
        for resident in self._registered:
            resident.transactions_today = 0

    # Scheduled transactions

    def _plan_morning(self, day_number: int, day: date) -> list[list[PendingTransaction]]:
        """Return the morning's transactions in lists, to be run one list after the other."""
        is_first_day = day_number == 0
        salaries = [
            self._transactions.fund_from_partner(resident, resident.salary, f"SALARY-{day:%Y-%m}")
            for resident in self._registered
            if resident.salary
            and resident.is_active
            and (is_first_day or resident.payday == day.day)
        ]
        deposits = []
        if is_first_day or day.weekday() == _MONDAY:
            monthly_salaries = sum(resident.salary for resident in self._country.residents)
            # About a quarter of the monthly salaries is due each week. A third leaves a margin for
            # remittances.
            thousands = (monthly_salaries if is_first_day else monthly_salaries // 3) // (
                1_000 * self._major_unit
            )
            deposits.append(self._transactions.deposit(thousands * 1_000 * self._major_unit))
        if is_first_day or day.day == 1:
            employer = self._country.residents[seed.EMPLOYER]
            salaries.append(
                self._transactions.fund_from_partner(employer, 9_000 * self._major_unit, "DUES")
            )
        return [
            deposits,
            self._plan_float_funding(),
            self._plan_float_transfers(),
            salaries,
            *self._plan_weekly(day),
        ]

    def _plan_float_funding(self) -> list[PendingTransaction]:
        super_agent_float = 30_000 * self._major_unit
        return [
            self._transactions.fund_agent(agent, super_agent_float)
            for agent in self._country.super_agents
            if agent.balance < super_agent_float // 3
        ]

    def _plan_float_transfers(self) -> list[PendingTransaction]:
        sub_agent_float = 5_000 * self._major_unit
        return [
            self._transactions.transfer_float(agent.parent, agent, sub_agent_float)
            for agent in self._country.agents
            if agent.parent is not None
            and agent.balance < sub_agent_float // 2
            and agent.parent.balance > sub_agent_float
        ]

    def _plan_weekly(self, day: date) -> list[list[PendingTransaction]]:
        weekday = day.weekday()
        if weekday == _MONDAY:
            return [self._plan_merchant_payouts()]
        if weekday == _FRIDAY:
            return [
                [
                    self._transactions.pay_out_commission(agent)
                    for agent in self._country.agents
                    if agent.commission > 0
                ]
            ]
        if weekday == _SATURDAY:
            employer = self._country.residents[seed.EMPLOYER]
            workers = self._country.residents[8:12]
            wage = 350 * self._major_unit
            if employer.balance > wage * len(workers):
                return [[self._transactions.pay_wage(employer, worker, wage) for worker in workers]]
        return []

    def _plan_merchant_payouts(self) -> list[PendingTransaction]:
        owners = [resident for resident in self._registered if resident.kyc_level > 1]
        return [
            self._transactions.pay_out_merchant(
                shop,
                owners[index % len(owners)],
                shop.unpaid_takings * 6 // 10 // self._major_unit * self._major_unit,
            )
            for index, shop in enumerate(self._country.shops)
            if shop.unpaid_takings > 400 * self._major_unit
        ]

    # Random transactions

    def _plan_day(self, day: date) -> list[tuple[time, list[Resident]]]:
        """Return the times of the day at which random transactions run, with their residents."""
        expected = (
            len(self._registered)
            * self._size.transactions_per_day
            * _WEEKDAY_FACTORS[day.weekday()]
        )
        expected *= 1.25 if day.day <= 5 else 1.0
        count = max(0, round(self._random.gauss(expected, expected**0.5)))
        residents = self._random.choices(
            self._registered, cum_weights=self._activity_weights, k=count
        )
        slot_seconds = len(_HOUR_WEIGHTS) * 3600 / self._size.slots_per_day
        moments: dict[int, tuple[int, list[Resident]]] = {}
        for resident in residents:
            if not resident.is_active or resident.transactions_today >= _MAX_TRANSACTIONS_PER_DAY:
                continue
            resident.transactions_today += 1
            hour = self._random.choices(range(len(_HOUR_WEIGHTS)), _HOUR_WEIGHTS)[0]
            second = hour * 3600 + self._random.randrange(3600)
            latest, others = moments.get(int(second / slot_seconds), (0, []))
            moments[int(second / slot_seconds)] = max(latest, second), [*others, resident]
        self._advance_progress(count)
        return [
            (_to_time_of_day(second), others) for _, (second, others) in sorted(moments.items())
        ]

    def _choose_transaction(self, resident: Resident) -> PendingTransaction:
        rng = self._random
        has_low_balance = resident.balance < 60 * self._major_unit
        if has_low_balance and rng.random() < 0.95:
            return self._cash_in(resident)
        return rng.choices(
            (self._buy, self._send, self._buy_in_app, self._cash_out, self._cash_in, self._receive),
            (56, 18, 9, 7, 6, 4),
        )[0](resident)

    def _buy(self, resident: Resident) -> PendingTransaction:
        rng = self._random
        shop = rng.choice(self._country.shops)
        child = rng.choice(resident.child_cards) if resident.child_cards else None
        if child is not None and rng.random() < 0.3:
            allowance = self._draw_price(5, 60 if rng.random() < 0.95 else 400)
            if allowance < resident.balance:
                return self._transactions.pay(resident, shop, allowance, child=child)
        price = self._draw_price(shop.merchant.min_price, shop.merchant.max_price)
        return self._spend(resident, price, partial(self._transactions.pay, resident, shop))

    def _buy_in_app(self, resident: Resident) -> PendingTransaction:
        shop = self._random.choice([item for item in self._country.shops if item.merchant.in_app])
        # In-app payments have no PIN, so they must stay within the no-PIN limit.
        price = self._draw_price(shop.merchant.min_price, min(shop.merchant.max_price, 400))
        return self._spend(resident, price, partial(self._transactions.pay_in_app, resident, shop))

    def _send(self, resident: Resident) -> PendingTransaction:
        rng = self._random
        recipient = rng.choice(resident.friends)
        memo = rng.choice(country_data.MEMOS) if rng.random() < 0.7 else None
        send = partial(self._transactions.send, resident, recipient, memo=memo)
        return self._spend(resident, self._draw_price(20, 600), send)

    def _spend(
        self, resident: Resident, amount: int, transact: Callable[[int], PendingTransaction]
    ) -> PendingTransaction:
        """Return a transaction that the resident can afford, or else a cash-in."""
        affordable_amount = self._fit_to_balance(resident, amount)
        if affordable_amount is None:
            return self._cash_in(resident)
        return transact(affordable_amount)

    def _cash_in(self, resident: Resident) -> PendingTransaction:
        amount = (
            self._random.choice((100, 150, 200, 300, 500)) * resident.kyc_level * self._major_unit
        )
        agent: Agent = resident.agent
        if agent.balance < amount and agent.parent is not None:
            agent = agent.parent
        return self._transactions.cash_in(resident, agent, amount)

    def _cash_out(self, resident: Resident) -> PendingTransaction:
        amount = self._random.choice((50, 100, 200)) * self._major_unit
        if amount > resident.balance // 2:
            return self._buy(resident)
        return self._transactions.cash_out(resident, resident.agent, amount)

    def _receive(self, resident: Resident) -> PendingTransaction:
        """Return a remittance from relatives abroad."""
        amount = self._random.randrange(100, 900, 25) * self._major_unit
        return self._transactions.fund_from_partner(resident, amount, "REMIT")

    def _plan_refunds(self) -> list[PendingTransaction]:
        pending, self._transactions.pending_refunds = self._transactions.pending_refunds, []
        return [self._transactions.refund(*payment) for payment in pending]

    def _draw_price(self, min_price: int, max_price: int) -> int:
        """Draw a rounded price from the range, skewed toward the lower end."""
        price = min_price * math.pow(max_price / min_price, math.pow(self._random.random(), 1.4))
        step: int = max(1, self._major_unit // 2)
        if price >= 50:
            step = self._major_unit * (5 if price < 500 else 25)
        return max(1, round(price * self._major_unit / step)) * step

    def _fit_to_balance(self, resident: Resident, desired_amount: int) -> int | None:
        """Return the desired or a lower amount, or None if the balance is too low.

        One time in five, an amount that is too high is kept, so that some payments are declined.
        """
        max_amount = resident.balance * 9 // 10
        if desired_amount <= max_amount or self._random.random() < 0.2:
            return desired_amount
        reduced_amount = max_amount // 2 // self._major_unit * self._major_unit
        return reduced_amount if reduced_amount >= 10 * self._major_unit else None

    # Incidents

    async def _run_incident(self, days_left: int) -> None:
        """Run the incident scheduled for this number of days before the end, if any."""
        match days_left:
            case 40:
                await self._pay_out_loan()
            case 25:
                await self._seeder.restrict(self._country.residents[seed.RESTRICTED])
            case 20:
                await self._lose_card()
            case 9:
                await self._use_expired_card()
            case 8:
                await self._seeder.open_bank_accounts(self._country.shops[0])
            case 6:
                await self._block_subscriber()
            case 3 | 2:  # a thief repeats a payment's tap on the next day
                resident, shop = self._country.residents[seed.CLONED_CARD], self._country.shops[0]
                price, is_clone = 30 * self._major_unit, days_left == 2
                await self._transactions.pay(resident, shop, price, is_clone=is_clone)
            case 4:
                await self._seeder.pay_out(self._country.shops[0])
            case 1:
                await self._sell_house()

    async def _lose_card(self) -> None:
        resident = self._country.residents[seed.LOST_CARD]
        lost = await self._seeder.replace_lost_card(resident)
        # The finder tries to pay with the blocked card.
        for shop in self._country.shops[:2]:
            self._advance_minutes(7)
            await self._transactions.pay(resident, shop, 45 * self._major_unit, serial=lost)

    async def _use_expired_card(self) -> None:
        resident = self._country.residents[seed.EXPIRED_CARD]
        await self._transactions.pay(resident, self._country.shops[0], 25 * self._major_unit)
        await self._seeder.link_card(resident, self._seeder.next_serial())

    async def _block_subscriber(self) -> None:
        resident = self._country.residents[seed.BLOCKED]
        friends = self._country.residents[seed.EXPIRED_CARD + 1 :][:4]
        await self._seeder.pay_batch(
            "Market grants",
            self._country.partner_id,
            [*friends, resident],
            before_run=lambda: self._seeder.block(resident, "Reported for fraud"),
        )
        self._advance_minutes(4)
        await self._transactions.send(resident, resident.friends[0], 100 * self._major_unit, None)

    async def _pay_out_loan(self) -> None:
        """Fund the house buyer with a loan, long before the purchase.

        In the latest month, the loan would dwarf all other amounts in the charts.
        """
        loan = _HOUSE_PRICE * 21 // 20 * self._major_unit
        await self._transactions.deposit(loan)
        await self._transactions.fund_from_partner(
            self._country.residents[seed.HOUSE_BUYER], loan, "LOAN"
        )

    async def _sell_house(self) -> None:
        """Pay for the house. A compliance rule holds the transfer for review."""
        buyer = self._country.residents[seed.HOUSE_BUYER]
        seller = self._country.residents[seed.EMPLOYER]
        price = _HOUSE_PRICE * self._major_unit
        await self._transactions.send(buyer, seller, price, "house purchase")

    def _advance_minutes(self, minutes: int) -> None:
        self._clock.advance_to(self._clock() + timedelta(minutes=minutes))


def _to_time_of_day(second: int) -> time:
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    return time(_FIRST_HOUR + hour, minute, second)
