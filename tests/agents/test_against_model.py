"""Random agent operations against a reference model.

After every step, the result and all balances match the model, and all accounts sum to zero.
"""

from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from agents.builders import AGENT_PIN, AGENTS_URL, create_agent, create_sub_agent
from harness import PIN, WRONG_PIN, Harness
from tapgate import ids, money
from tapgate.ledger.verify import verify

pytestmark = [pytest.mark.cash_in, pytest.mark.cash_out, pytest.mark.commission]

#: Name -> parent agent, commission tier.
AGENTS = {"boss": (None, 1), "left": ("boss", 2), "right": ("boss", 3), "rival": (None, 1)}
CUSTOMERS = ("ami", "ben")
OPENING_FLOAT, OPENING_WALLET = 100_00, 50_00
MIN_COMMISSIONED_AMOUNT = 10_00


class Step(NamedTuple):
    kind: str
    agent: str
    other: str = ""
    amount: int = 0
    pin: str = AGENT_PIN


agents = st.sampled_from(list(AGENTS))
customers = st.sampled_from(CUSTOMERS)
amounts = st.integers(1, 70_00)
pins = st.sampled_from([AGENT_PIN] * 9 + [WRONG_PIN])
commands = st.sampled_from(["payout-commission", "suspend", "activate", "terminate"])


def build_steps(kind: str, agent: st.SearchStrategy[str], other: st.SearchStrategy[str]) -> Any:
    return st.tuples(st.just(kind), agent, other, amounts, pins).map(lambda fields: Step(*fields))


sequences = st.lists(
    st.one_of(
        build_steps("fund", agents, st.just("")),
        build_steps("cashin", agents, customers),
        build_steps("cashout", agents, customers),
        build_steps("transfer", agents, agents),
        build_steps("transfer", st.just("boss"), st.sampled_from(["left", "right"])),
        st.tuples(commands, agents).map(lambda fields: Step(*fields)),
        st.tuples(commands, st.just("left")).map(lambda fields: Step(*fields)),
    ),
    min_size=15,
    max_size=30,
)


class AgentModel:
    def __init__(self) -> None:
        self.floats = dict.fromkeys(AGENTS, OPENING_FLOAT)
        self.commissions = dict.fromkeys(AGENTS, 0)
        self.earned = dict.fromkeys(AGENTS, 0)  # cumulative, in 1/200 of a minor unit
        self.cashed_out: Counter[tuple[str, str]] = Counter()
        self.wallets = dict.fromkeys(CUSTOMERS, OPENING_WALLET)
        self.statuses = dict.fromkeys(AGENTS, "active")
        self.pin_attempts_left = dict.fromkeys(AGENTS, 3)

    def run(self, step: Step) -> str | None:
        """Return the error code, or None on success."""
        match step.kind:
            case "fund":
                return self._fund(step)
            case "cashin":
                return self._check_pin(step) or self._cash_in(step)
            case "cashout":
                return self._check_pin(step) or self._cash_out(step)
            case "transfer":
                return (
                    self._check_own_sub_agent(step) or self._check_pin(step) or self._transfer(step)
                )
            case "payout-commission":
                return self._pay_out(step)
        return self._change_status(step)

    def _check_pin(self, step: Step) -> str | None:
        if self.pin_attempts_left[step.agent] == 0:
            return "ACCOUNT_LOCKED"
        if step.pin == AGENT_PIN:
            self.pin_attempts_left[step.agent] = 3
            return None
        self.pin_attempts_left[step.agent] -= 1
        return "INVALID_PIN"

    def _check_active(self, agent: str) -> str | None:
        return None if self.statuses[agent] == "active" else "AGENT_NOT_ACTIVE"

    def _fund(self, step: Step) -> str | None:
        if code := self._check_active(step.agent):
            return code
        self.floats[step.agent] += step.amount
        return None

    def _cash_in(self, step: Step) -> str | None:
        if code := self._check_active(step.agent):
            return code
        if step.amount > self.floats[step.agent]:
            return "INSUFFICIENT_FLOAT"
        self.floats[step.agent] -= step.amount
        self.wallets[step.other] += step.amount
        # The part that the customer cashed out at this agent before earns no commission.
        cash_pair = (step.agent, step.other)
        matched = min(step.amount, self.cashed_out[cash_pair])
        self.cashed_out[cash_pair] -= matched
        if step.amount >= MIN_COMMISSIONED_AMOUNT:
            half_percents = AGENTS[step.agent][1] + 1
            before = (self.earned[step.agent] + 100) // 200
            self.earned[step.agent] += (step.amount - matched) * half_percents
            self.commissions[step.agent] += (self.earned[step.agent] + 100) // 200 - before
        return None

    def _cash_out(self, step: Step) -> str | None:
        if code := self._check_active(step.agent):
            return code
        if step.amount > self.wallets[step.other]:
            return "INSUFFICIENT_FUNDS"
        self.wallets[step.other] -= step.amount
        self.floats[step.agent] += step.amount
        self.cashed_out[step.agent, step.other] += step.amount
        return None

    def _check_own_sub_agent(self, step: Step) -> str | None:
        if step.agent == step.other:
            return "SELF_TRANSFER"
        return None if AGENTS[step.other][0] == step.agent else "FORBIDDEN"

    def _transfer(self, step: Step) -> str | None:
        if code := self._check_active(step.agent):
            return code
        if step.amount > self.floats[step.agent]:
            return "INSUFFICIENT_FLOAT"
        if code := self._check_active(step.other):
            return code
        self.floats[step.agent] -= step.amount
        self.floats[step.other] += step.amount
        return None

    def _pay_out(self, step: Step) -> str | None:
        if code := self._check_active(step.agent):
            return code
        if self.commissions[step.agent] == 0:
            return "INSUFFICIENT_FUNDS"
        self.floats[step.agent] += self.commissions[step.agent]
        self.commissions[step.agent] = 0
        return None

    def _change_status(self, step: Step) -> str | None:
        status = self.statuses[step.agent]
        if status == "terminated":
            return "NOT_CLOSABLE"
        if step.kind == "suspend" and status == "suspended":
            return "ALREADY_SUSPENDED"
        if step.kind == "activate" and status == "active":
            return "NOT_SUSPENDED"
        if step.kind == "terminate" and self.floats[step.agent] + self.commissions[step.agent]:
            return "NOT_CLOSABLE"
        self.statuses[step.agent] = {
            "suspend": "suspended",
            "activate": "active",
            "terminate": "terminated",
        }[step.kind]
        return None


def format_amount(amount: int) -> str:
    return money.format_decimal(amount, "SLE")


class GatewayDriver:
    """The model's agents and customers in the gateway."""

    def __init__(self, harness: Harness, auth: Any) -> None:
        self.harness = harness
        self.auth = auth
        self.ids: dict[str, str] = {}

    @classmethod
    async def create(cls, harness: Harness) -> "GatewayDriver":
        gateway = cls(harness, await harness.create_admin())
        records: dict[str, dict[str, Any]] = {}
        for name, (parent, tier) in AGENTS.items():
            more: dict[str, Any] = {
                "commission_tier": tier,
                "balance": format_amount(OPENING_FLOAT),
            }
            if parent is None:
                records[name] = await create_agent(harness, **more)
            else:
                records[name] = await create_sub_agent(harness, records[parent], **more)
        for name in CUSTOMERS:
            records[name] = await harness.create_subscriber(balance=format_amount(OPENING_WALLET))
        gateway.ids = {name: record["id"] for name, record in records.items()}
        return gateway

    async def run(self, step: Step) -> str | None:
        agent = self.ids[step.agent]
        amount = format_amount(step.amount)
        customer = {
            "agent_id": agent,
            "subscriber_id": self.ids.get(step.other),
            "amount": amount,
            "agent_pin": step.pin,
        }
        path, body = {
            "fund": (f"/{agent}/fund", {"amount": amount}),
            "cashin": ("/cashin", customer),
            "cashout": ("/cashout", customer | {"pin": PIN}),
            "transfer": (
                "/transfer",
                {
                    "from_agent_id": agent,
                    "to_agent_id": self.ids.get(step.other),
                    "amount": amount,
                    "pin": step.pin,
                },
            ),
        }.get(step.kind, (f"/{agent}/{step.kind}", {"reason": "r"}))
        response = await self.harness.client.post(AGENTS_URL + path, json=body, auth=self.auth)
        assert response.status_code < 500, response.text
        code: str | None = response.json().get("code")
        return code

    async def get_balances(self) -> dict[tuple[str, str], int]:
        names = {
            int(ids.decode(public_id[:4], public_id) or 0): name
            for name, public_id in self.ids.items()
        }
        rows = await self.harness.services.database.fetch(
            "SELECT owner_id, kind, balance FROM accounts WHERE owner_id = ANY ($1)", list(names)
        )
        return {(names[row["owner_id"]], row["kind"]): row["balance"] for row in rows}

    async def get_total_balance(self) -> int:
        """Return the sum of all accounts; platform balances are computed from their entries."""
        total = await self.harness.services.database.fetchval(
            """SELECT (SELECT sum(balance) FROM accounts)
                    + (SELECT coalesce(sum(CASE WHEN credit_account = a.id THEN amount
                                                ELSE -amount END), 0)
                       FROM accounts a JOIN entries ON a.id IN (credit_account, debit_account)
                       WHERE a.owner_id IS NULL)"""
        )
        return int(total)


@given(sequences)
@settings(
    max_examples=25,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # shrinking takes minutes
)
async def test_random_agent_operations_agree_with_the_model(
    harness: Harness, sequence: list[Step]
) -> None:
    model, gateway = AgentModel(), await GatewayDriver.create(harness)
    for step in sequence:
        assert await gateway.run(step) == model.run(step), step
        assert await gateway.get_balances() == {
            **{(name, "float"): balance for name, balance in model.floats.items()},
            **{(name, "commission"): balance for name, balance in model.commissions.items()},
            **{(name, "wallet"): balance for name, balance in model.wallets.items()},
        }
        assert await gateway.get_total_balance() == 0
    async with harness.services.database.connection() as connection:
        proof = await verify(connection)
    assert proof.is_valid, [finding for finding in proof.findings if finding.broken]
