"""What people do with money: each dealing is one order for the ledger, as its route would make it,
and what came of it is remembered by those it concerns."""

import hashlib
from random import Random
from typing import Any

import msgspec

from tapgate import ids, money
from tapgate.demo.residents import Agent, ChildCard, Country, Resident, Shop, Terminal
from tapgate.edge.services import Services
from tapgate.errors import Code
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import (
    Command,
    PartnerReference,
    ScopedIdempotencyKey,
    TransactionResult,
)


class Dealings:
    def __init__(self, services: Services, country: Country, chance: Random) -> None:
        self._ledger = services.ledger
        self._saw_terminal = services.authenticator.terminals.touch
        self._country = country
        self._chance = chance
        self._numbers = 0
        self.unit: int = 10 ** money.get_decimals(services.settings.currency)
        #: Payments that will be refunded: the shop, the transaction, how much of it.
        self.to_refund: list[tuple[Shop, int, int | None]] = []
        self.made = 0

    async def pay(
        self,
        resident: Resident,
        shop: Shop,
        amount: int,
        *,
        serial: str | None = None,
        child: ChildCard | None = None,
    ) -> None:
        """At a terminal, with the PIN unless it is a small thing."""
        chance = self._chance
        till = chance.choice(shop.terminals)
        pin = child.pin if child else resident.pin
        with_pin = amount > 100 * self.unit or chance.random() < 0.3
        slips = with_pin and chance.random() < 0.02
        comes_back = chance.random() < 0.03
        part = None if chance.random() < 0.7 else max(1, amount // 2 // self.unit * self.unit)
        command = Command(
            type=chart.POS_PAYMENT,
            channel="pos",
            payer=commands.card_party(child.serial if child else serial or resident.serial),
            payee=commands.processor_party(shop.id),
            amount=amount,
            payer_pin=pin if with_pin else None,
            pin_policy="above_no_pin_limit",
            idempotency_key=self._request(till.key_id),
            context=self._sale(shop, till),
        )
        self._saw_terminal(till.id)
        if slips:
            await self._mistype(command, pin)
        answer = await self._carry_out(command)
        if answer is None:
            return
        self._remember(resident, answer.payer_available)
        if answer.status == "completed":
            shop.taken += answer.amount - answer.fee
            if comes_back and shop.taken > answer.amount:
                self.to_refund.append((shop, answer.transaction_id, part))

    async def pay_in_app(self, resident: Resident, shop: Shop, amount: int) -> None:
        command = Command(
            type=chart.ONLINE_PAYMENT,
            channel="in_app",
            payer=commands.card_party(resident.serial),
            payee=commands.processor_party(shop.id),
            amount=amount,
            pin_policy="above_no_pin_limit",
            idempotency_key=self._request(shop.key_id),
            context=self._sale(shop, None),
        )
        answer = await self._carry_out(command)
        if answer is not None:
            self._remember(resident, answer.payer_available)
            shop.taken += answer.amount - answer.fee

    async def give_back(self, shop: Shop, transaction_id: int, part: int | None) -> None:
        command = Command(
            type=chart.REFUND,
            channel="pos",
            payer=commands.processor_party(shop.id),
            payee=commands.CASH_PARTY,
            amount=part,
            original_id=transaction_id,
            idempotency_key=self._request(shop.key_id),
            context={"memo": "returned goods"},
        )
        answer = await self._carry_out(command)
        if answer is not None:
            shop.taken -= answer.amount

    async def send(
        self, sender: Resident, recipient: Resident, amount: int, memo: str | None
    ) -> None:
        slips = self._chance.random() < 0.02
        command = Command(
            type=chart.TRANSFER_P2P,
            channel=self._chance.choice(("api", "messaging")),
            payer=commands.subscriber_party(sender.id),
            payee=commands.card_party(recipient.serial),
            amount=amount,
            payer_pin=sender.pin,
            pin_policy="required",
            context=None if memo is None else {"memo": memo},
        )
        if slips:
            await self._mistype(command, sender.pin)
        answer = await self._carry_out(command)
        if answer is not None:
            self._remember(sender, answer.payer_available)
            if answer.status == "completed":
                self._remember(recipient, answer.payee_available)

    async def pay_wage(self, employer: Resident, worker: Resident, amount: int) -> None:
        command = Command(
            type=chart.TRANSFER,
            channel="api",
            payer=commands.account_party(employer.account_id),
            payee=commands.account_party(worker.account_id),
            amount=amount,
            payer_pin=employer.pin,
            pin_policy="required",
            wallets_only=True,
            context={"memo": "weekly wage"},
        )
        answer = await self._carry_out(command)
        if answer is not None:
            self._remember(employer, answer.payer_available)
            self._remember(worker, answer.payee_available)

    async def cash_in(self, resident: Resident, agent: Agent, amount: int) -> None:
        command = Command(
            type=chart.AGENT_CASHIN,
            channel="agent",
            payer=commands.agent_party(agent.id),
            payee=commands.card_party(resident.serial),
            amount=amount,
            payer_pin=agent.pin,
            pin_policy="required",
        )
        answer = await self._carry_out(command)
        if answer is not None:
            agent.balance = answer.payer_available or 0
            agent.commission += answer.commission
            self._remember(resident, answer.payee_available)

    async def cash_out(self, resident: Resident, agent: Agent, amount: int) -> None:
        command = Command(
            type=chart.AGENT_CASHOUT,
            channel="agent",
            payer=commands.subscriber_party(resident.id),
            payee=commands.agent_party(agent.id),
            amount=amount,
            payer_pin=resident.pin,
            payee_pin=agent.pin,
            pin_policy="required",
        )
        answer = await self._carry_out(command)
        if answer is not None:
            self._remember(resident, answer.payer_available)
            agent.balance = answer.payee_available or 0

    async def fund_agent(self, agent: Agent, amount: int) -> None:
        command = Command(
            type=chart.AGENT_FUND,
            channel="agent",
            payer=commands.CASH_PARTY,
            payee=commands.agent_party(agent.id),
            amount=amount,
            context={"memo": "float for the week"},
        )
        answer = await self._carry_out(command)
        if answer is not None:
            agent.balance = answer.payee_available or 0

    async def pass_on(self, agent: Agent, sub_agent: Agent, amount: int) -> None:
        command = Command(
            type=chart.AGENT_TRANSFER,
            channel="agent",
            payer=commands.agent_party(agent.id),
            payee=commands.agent_party(sub_agent.id),
            amount=amount,
            payer_pin=agent.pin,
            pin_policy="required",
        )
        answer = await self._carry_out(command)
        if answer is not None:
            agent.balance = answer.payer_available or 0
            sub_agent.balance = answer.payee_available or 0

    async def pay_commission(self, agent: Agent) -> None:
        command = Command(
            type=chart.COMMISSION_PAYOUT,
            channel="agent",
            payer=commands.commission_party(agent.id),
            payee=commands.agent_party(agent.id),
            amount=None,
        )
        answer = await self._carry_out(command)
        if answer is not None:
            agent.commission = 0
            agent.balance = answer.payee_available or 0

    async def deposit(self, amount: int) -> None:
        """The partner brings the money that it will hand on."""
        await self._carry_out(
            Command(
                type=chart.PARTNER_DEPOSIT,
                channel="admin",
                payer=commands.CASH_PARTY,
                payee=commands.partner_party(self._country.partner_id),
                amount=amount,
            )
        )

    async def receive(self, resident: Resident, amount: int, what: str) -> None:
        """From the partner: a salary, or money from abroad."""
        self._numbers += 1
        partner_id = self._country.partner_id
        command = Command(
            type=chart.PARTNER_FUND,
            channel="partner",
            payer=commands.partner_party(partner_id),
            payee=commands.subscriber_party(resident.id),
            amount=amount,
            reference=PartnerReference(partner_id, f"{what}-{self._numbers:06}"),
        )
        answer = await self._carry_out(command)
        if answer is not None:
            self._remember(resident, answer.payee_available)

    async def take_out(self, shop: Shop, owner: Resident, amount: int) -> None:
        """The owner's share of what the shop took."""
        command = Command(
            type=chart.PROCESSOR_TRANSFER,
            channel="admin",
            payer=commands.processor_party(shop.id),
            payee=commands.subscriber_party(owner.id),
            amount=amount,
            context={"memo": f"takings of {shop.merchant.name}"},
        )
        answer = await self._carry_out(command)
        if answer is not None:
            shop.taken -= answer.amount
            self._remember(owner, answer.payee_available)

    async def _mistype(self, command: Command, pin: str) -> None:
        """Nobody does it three times in a row: the next try is right."""
        wrong = str((int(pin) + 1111) % 10_000).zfill(4)
        outcome = await self._ledger.submit(_with_pin(command, wrong))
        assert outcome.code is Code.INVALID_PIN, outcome

    async def _carry_out(self, command: Command) -> TransactionResult | None:
        """None for what was declined or refused."""
        outcome = await self._ledger.submit(command)
        if outcome.result is not None:
            self.made += 1
        return outcome.result if outcome.code is None else None

    def _request(self, credential: str) -> ScopedIdempotencyKey:
        self._numbers += 1
        name = f"demo-{self._numbers:07}"
        return ScopedIdempotencyKey(
            credential, name, hashlib.blake2b(name.encode(), digest_size=16).digest()
        )

    def _sale(self, shop: Shop, till: Terminal | None) -> dict[str, Any]:
        sale = {
            "merchant_id": ids.encode(ids.PROCESSOR, shop.id),
            "merchant_name": shop.merchant.name,
            "transaction_ref": f"R{self._numbers:07}",
        }
        return sale if till is None else {"terminal_id": till.public_id, **sale}

    @staticmethod
    def _remember(resident: Resident, available: int | None) -> None:
        if available is not None:
            resident.balance = available


def _with_pin(command: Command, pin: str) -> Command:
    return msgspec.structs.replace(command, payer_pin=pin)
