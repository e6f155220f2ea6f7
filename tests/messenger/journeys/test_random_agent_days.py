"""Random days of an agent in the chat: float, wallet and commission agree with a model."""

from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders.agents_day import AgentsDay
from builders.float_requests import end_float_request
from builders.ledger import require_balanced_books
from builders.participants import AGENT_PIN, create_agent, create_sub_agent, get_balances
from drivers.messenger import MessengerDriver, ServicesDriver
from examples import limit_examples
from harness import PIN, WRONG_PIN
from tapgate_client import ids

_START: Final = 300_00
_PARENT_START: Final = 5_000_00
#: What happens in one step: some start and answer a request at once, others leave it open.
_STEPS: Final = {
    "deposit": ["cash in"],
    "withdrawal": ["cash out", "confirm"],
    "withdrawal that waits": ["cash out"],
    "late confirmation": ["confirm"],
    "refused withdrawal": ["cash out", "decline"],
    "commission": ["commission"],
    "float of the super-agent": ["request float", "send float"],
    "float of finance": ["request float", "fund"],
    "refused float": ["request float", "refuse"],
    "float request that waits": ["request float"],
}
_WEIGHTED: Final = [*_STEPS, "deposit", "deposit", "deposit", "withdrawal", "withdrawal"]
steps = st.lists(
    st.tuples(
        st.sampled_from(_WEIGHTED),
        st.integers(1, 9_99) | st.integers(10_00, 120_00) | st.integers(120_00, 400_00),
        st.booleans(),  # whether a wrong PIN comes first
    ),
    min_size=9,
    max_size=14,
)


class Model:
    """Balances in minor units. A cash-in earns 1% on what the customer did not cash out before."""

    def __init__(self) -> None:
        self.float = _START
        self.parent = _PARENT_START - _START
        self.wallet = self.commission = 0
        #: Cash-outs that later cash-ins are matched with, and the rounding error of commissions.
        self.circulating = self.remainder = 0
        #: Amounts of the cash-out that waits for the customer, and of the open float request.
        self.cash_out: int | None = None
        self.request: int | None = None

    def cash_in(self, amount: int) -> bool:
        if amount > self.float:
            return False
        matched = min(amount, self.circulating)
        self.circulating -= matched
        if amount >= 10_00:
            self.remainder += amount - matched
        earned = (self.remainder + 50) // 100
        self.remainder -= earned * 100
        self.commission += earned
        self.float -= amount
        self.wallet += amount
        return True

    def confirm(self) -> bool:
        assert self.cash_out is not None
        if self.cash_out > self.wallet:
            return False
        self.wallet -= self.cash_out
        self.float += self.cash_out
        self.circulating += self.cash_out
        self.cash_out = None
        return True


class PlayedDay:
    """Plays each step in the chat and in the model, which must agree on the outcome."""

    def __init__(self, day: AgentsDay) -> None:
        self.day = day
        self.model = Model()

    async def take(self, name: str, amount: int, *, has_wrong_pin: bool) -> None:
        pins = [WRONG_PIN] if has_wrong_pin else []
        for part in _STEPS[name]:
            await self.day.say(self.day.agent_phone, "cancel")
            step = getattr(self, f"_{part.replace(' ', '_')}")
            await step(f"{amount / 100:.2f}", amount, pins)

    async def _cash_in(self, text: str, amount: int, pins: list[str]) -> None:
        number = self.day.customer["phone_number"]
        reply = await self._say_as_agent(f"cash in {number} {text}", "yes", *pins, AGENT_PIN)
        assert ("txn_" in reply) == self.model.cash_in(amount), reply

    async def _cash_out(self, text: str, amount: int, pins: list[str]) -> None:
        number = self.day.customer["phone_number"]
        reply = await self._say_as_agent(f"cash out {number} {text}", "yes", *pins, AGENT_PIN)
        if self.model.cash_out is None:
            assert "within 5 minutes" in reply, reply
            self.model.cash_out = amount
        else:
            assert "already has a cash-out to answer" in reply, reply

    async def _confirm(self, _text: str, _amount: int, pins: list[str]) -> None:
        reply = await self._say_as_customer("confirm cash-out", "yes", *pins, PIN)
        if self.model.cash_out is not None:
            assert ("gives you" in reply) == self.model.confirm(), reply

    async def _decline(self, _text: str, _amount: int, _pins: list[str]) -> None:
        reply = await self._say_as_customer("confirm cash-out", "no")
        if self.model.cash_out is not None:
            assert "Declined" in reply, reply
            self.model.cash_out = None

    async def _commission(self, _text: str, _amount: int, pins: list[str]) -> None:
        if self.model.commission == 0:
            await self._say_as_agent("commission")
            return
        await self._say_as_agent("commission", "yes", *pins, AGENT_PIN)
        self.model.float += self.model.commission
        self.model.commission = 0

    async def _request_float(self, text: str, amount: int, _pins: list[str]) -> None:
        if self.model.request is None:
            reply = await self._say_as_agent(f"request float {text}", "yes")
            assert "super-agent" in reply, reply
            self.model.request = amount

    async def _send_float(self, _text: str, _amount: int, pins: list[str]) -> None:
        """The super-agent sends the float that the agent asked for."""
        reply = await self._say_as_parent("float requests", "send float", *pins, AGENT_PIN)
        amount, self.model.request = self.model.request, None
        if amount is not None:
            assert "sent" in reply, reply
            self.model.parent -= amount
            self.model.float += amount

    async def _fund(self, _text: str, _amount: int, _pins: list[str]) -> None:
        """The super-agent passes the request on, and finance funds it."""
        amount = await self._end_by_finance("fund")
        self.model.float += amount or 0

    async def _refuse(self, _text: str, _amount: int, _pins: list[str]) -> None:
        await self._end_by_finance("decline")

    async def _end_by_finance(self, verb: str) -> int | None:
        amount, self.model.request = self.model.request, None
        if amount is None:
            return None
        reply = await self._say_as_parent("float requests", "pass on")
        assert "finance" in reply, reply
        sql = "SELECT id FROM float_requests WHERE status = 'open' AND agent_id = $1"
        agent = ids.decode(ids.AGENT, self.day.agent["id"])
        item = {
            "id": ids.encode(
                ids.FLOAT_REQUEST, await self.day.harness.database.fetchval(sql, agent)
            )
        }
        ended = await end_float_request(self.day.harness, item, verb)
        assert ended.status_code == 200, ended.text
        return amount

    async def _say_as_agent(self, *texts: str) -> str:
        return await self.day.say(self.day.agent_phone, *texts)

    async def _say_as_customer(self, *texts: str) -> str:
        return await self.day.say(self.day.customer_phone, "cancel", *texts)

    async def _say_as_parent(self, *texts: str) -> str:
        return await self.day.say(self.day.parent_phone, "cancel", *texts)

    async def require_agreement(self) -> None:
        day, model = self.day, self.model
        balances = [*await day.get_float(), await day.get_wallet()]
        balances.append((await get_balances(day.harness, day.parent))[0])
        expected = [model.float, model.commission, model.wallet, model.parent]
        assert [int(Decimal(balance) * 100) for balance in balances] == expected


@pytest.fixture
async def patient_messenger(services_driver: ServicesDriver) -> AsyncIterator[MessengerDriver]:
    """Yield a messenger without a rate limit that a played day would reach."""
    async with services_driver.run_messenger(messenger_rate=1_000_000) as messenger:
        yield messenger


@settings(
    max_examples=limit_examples(20),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps)
async def test_random_days_agree_with_the_model(
    services_driver: ServicesDriver,
    patient_messenger: MessengerDriver,
    plan: list[tuple[str, int, bool]],
) -> None:
    harness = services_driver.harness
    await harness.disable_compliance_rules()
    parent = await create_agent(harness, balance=f"{_PARENT_START / 100:.2f}")
    agent = await create_sub_agent(harness, parent, business_name="Kissy Kiosk")
    customer = await harness.create_subscriber(balance="0")
    day = AgentsDay(services_driver, patient_messenger, parent, agent, customer)
    played = PlayedDay(day)
    await day.say(day.parent_phone, "menu")
    await day.say(day.agent_phone, "menu", f"request float {_START / 100:.2f}", "yes")
    assert "sent" in await day.say(day.parent_phone, "float requests", "send float", AGENT_PIN)
    wrong_pins = 0
    for name, amount, has_wrong_pin in plan:
        wrong_pins += has_wrong_pin
        # A third wrong PIN could lock the PIN.
        await played.take(name, amount, has_wrong_pin=has_wrong_pin and wrong_pins < 3)
        await played.require_agreement()
    await require_balanced_books(harness.database)
