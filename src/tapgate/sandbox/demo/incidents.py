"""Rare events of the demo, such as a lost card, a blocked subscriber and a house sale."""

from datetime import timedelta
from typing import Final

from tapgate.sandbox.demo import seed
from tapgate.sandbox.demo.clock import SimulatedClock
from tapgate.sandbox.demo.people import Country
from tapgate.sandbox.demo.seed import Seeder
from tapgate.sandbox.demo.transactions import TransactionSimulator

_HOUSE_PRICE: Final = 620_000


class Incidents:
    def __init__(
        self,
        country: Country,
        seeder: Seeder,
        simulator: TransactionSimulator,
        clock: SimulatedClock,
    ) -> None:
        self._country = country
        self._seeder = seeder
        self._transactions = simulator
        self._clock = clock
        self._major_unit = simulator.major_unit

    async def run(self, days_left: int) -> None:
        """Run the incident scheduled for this number of days before the end, if any."""
        match days_left:
            case 40:
                await self._pay_out_loan()
            case 25:
                await self._restrict_subscriber()
            case 20:
                await self._lose_card()
            case 9:
                await self._use_expired_card()
            case 6:
                await self._block_subscriber()
            case 1:
                await self._sell_house()

    async def _restrict_subscriber(self) -> None:
        await self._seeder.restrict(self._country.residents[seed.RESTRICTED])

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
        await self._seeder.block(resident, "Reported for fraud")
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
