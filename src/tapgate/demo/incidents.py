"""What does not happen every day: a card is lost, somebody is blocked, a house is sold."""

from datetime import timedelta
from typing import Final

from tapgate.demo import founding
from tapgate.demo.dealings import Dealings
from tapgate.demo.founding import Founder
from tapgate.demo.past import PastClock
from tapgate.demo.residents import Country

_PRICE_OF_THE_HOUSE: Final = 620_000


class Incidents:
    def __init__(
        self, country: Country, founder: Founder, dealings: Dealings, clock: PastClock
    ) -> None:
        self._country = country
        self._founder = founder
        self._dealings = dealings
        self._clock = clock
        self._unit = dealings.unit

    async def happen(self, days_left: int) -> None:
        """What happens late on that day."""
        match days_left:
            case 40:
                await self._a_loan_is_paid_out()
            case 25:
                await self._somebody_is_restricted()
            case 20:
                await self._a_card_is_lost()
            case 9:
                await self._a_card_has_expired()
            case 6:
                await self._somebody_is_blocked()
            case 1:
                await self._a_house_is_sold()

    async def _somebody_is_restricted(self) -> None:
        await self._founder.restrict(self._country.residents[founding.RESTRICTED])

    async def _a_card_is_lost(self) -> None:
        resident = self._country.residents[founding.LOSER]
        lost = await self._founder.lose_card(resident)
        # Whoever found it tries it.
        for shop in self._country.shops[:2]:
            self._pass_minutes(7)
            await self._dealings.pay(resident, shop, 45 * self._unit, serial=lost)

    async def _a_card_has_expired(self) -> None:
        resident = self._country.residents[founding.EXPIRED]
        await self._dealings.pay(resident, self._country.shops[0], 25 * self._unit)
        await self._founder.give_card(resident, self._founder.next_serial())

    async def _somebody_is_blocked(self) -> None:
        resident = self._country.residents[founding.BLOCKED]
        await self._founder.block(resident, "Reported for fraud")
        self._pass_minutes(4)
        await self._dealings.send(resident, resident.friends[0], 100 * self._unit, None)

    async def _a_loan_is_paid_out(self) -> None:
        """Long before the house is bought: in the month that is looked at first, everything else
        would be too small to be seen beside it."""
        loan = _PRICE_OF_THE_HOUSE * 21 // 20 * self._unit
        await self._dealings.deposit(loan)
        await self._dealings.receive(self._country.residents[founding.RICH], loan, "LOAN")

    async def _a_house_is_sold(self) -> None:
        """More than half a million at once is looked at before it moves."""
        buyer = self._country.residents[founding.RICH]
        seller = self._country.residents[founding.EMPLOYER]
        price = _PRICE_OF_THE_HOUSE * self._unit
        await self._dealings.send(buyer, seller, price, "house in Aberdeen")

    def _pass_minutes(self, minutes: int) -> None:
        self._clock.move_to(self._clock() + timedelta(minutes=minutes))
