"""Simulated transactions, each submitted as the ledger command that its route would create.

The results update the balances that the simulation tracks for the parties.
"""

import hashlib
from random import Random
from typing import Any

import msgspec

from tapgate import ids, money
from tapgate.api.services import Services
from tapgate.errors import Code
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import (
    Command,
    PartnerReference,
    ScopedIdempotencyKey,
    TransactionResult,
)
from tapgate.sandbox.demo.people import Agent, ChildCard, Country, Resident, Shop, Terminal


class TransactionSimulator:
    def __init__(self, services: Services, country: Country, rng: Random) -> None:
        self._ledger = services.ledger
        self._touch_terminal = services.authenticator.terminals.touch
        self._country = country
        self._random = rng
        self._sequence = 0
        self.major_unit: int = 10 ** money.get_decimals(services.settings.currency)
        #: Payments to refund: merchant, transaction ID and amount (None for the full amount).
        self.pending_refunds: list[tuple[Shop, int, int | None]] = []
        self.recorded_count = 0

    async def pay(
        self,
        resident: Resident,
        shop: Shop,
        amount: int,
        *,
        serial: str | None = None,
        child: ChildCard | None = None,
    ) -> None:
        """Pay at a terminal, always with the PIN above 100 major units and sometimes below."""
        rng = self._random
        terminal = rng.choice(shop.terminals)
        pin = child.pin if child else resident.pin
        with_pin = amount > 100 * self.major_unit or rng.random() < 0.3
        enters_wrong_pin = with_pin and rng.random() < 0.02
        will_refund = rng.random() < 0.03
        refund_amount = (
            None if rng.random() < 0.7 else max(1, amount // 2 // self.major_unit * self.major_unit)
        )
        command = Command(
            type=chart.POS_PAYMENT,
            channel="pos",
            payer=commands.card_party(child.serial if child else serial or resident.serial),
            payee=commands.processor_party(shop.id),
            amount=amount,
            payer_pin=pin if with_pin else None,
            pin_policy="above_no_pin_limit",
            idempotency_key=self._build_request_key(terminal.key_id),
            context=self._build_sale_context(shop, terminal),
        )
        self._touch_terminal(terminal.id)
        if enters_wrong_pin:
            await self._submit_wrong_pin(command, pin)
        result = await self._submit(command)
        if result is None:
            return
        self._update_balance(resident, result.payer_available)
        if result.status == "completed":
            shop.unpaid_takings += result.amount - result.fee
            if will_refund and shop.unpaid_takings > result.amount:
                self.pending_refunds.append((shop, result.transaction_id, refund_amount))

    async def pay_in_app(self, resident: Resident, shop: Shop, amount: int) -> None:
        command = Command(
            type=chart.ONLINE_PAYMENT,
            channel="in_app",
            payer=commands.card_party(resident.serial),
            payee=commands.processor_party(shop.id),
            amount=amount,
            pin_policy="above_no_pin_limit",
            idempotency_key=self._build_request_key(shop.key_id),
            context=self._build_sale_context(shop, None),
        )
        result = await self._submit(command)
        if result is not None:
            self._update_balance(resident, result.payer_available)
            shop.unpaid_takings += result.amount - result.fee

    async def refund(self, shop: Shop, transaction_id: int, refund_amount: int | None) -> None:
        command = Command(
            type=chart.REFUND,
            channel="pos",
            payer=commands.processor_party(shop.id),
            payee=commands.CASH_PARTY,
            amount=refund_amount,
            original_id=transaction_id,
            idempotency_key=self._build_request_key(shop.key_id),
            context={"memo": "returned goods"},
        )
        result = await self._submit(command)
        if result is not None:
            shop.unpaid_takings -= result.amount

    async def send(
        self, sender: Resident, recipient: Resident, amount: int, memo: str | None
    ) -> None:
        enters_wrong_pin = self._random.random() < 0.02
        command = Command(
            type=chart.TRANSFER_P2P,
            channel=self._random.choice(("api", "messaging")),
            payer=commands.subscriber_party(sender.id),
            payee=commands.card_party(recipient.serial),
            amount=amount,
            payer_pin=sender.pin,
            pin_policy="required",
            context=None if memo is None else {"memo": memo},
        )
        if enters_wrong_pin:
            await self._submit_wrong_pin(command, sender.pin)
        result = await self._submit(command)
        if result is not None:
            self._update_balance(sender, result.payer_available)
            if result.status == "completed":
                self._update_balance(recipient, result.payee_available)

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
        result = await self._submit(command)
        if result is not None:
            self._update_balance(employer, result.payer_available)
            self._update_balance(worker, result.payee_available)

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
        result = await self._submit(command)
        if result is not None:
            agent.balance = result.payer_available or 0
            agent.commission += result.commission
            self._update_balance(resident, result.payee_available)

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
        result = await self._submit(command)
        if result is not None:
            self._update_balance(resident, result.payer_available)
            agent.balance = result.payee_available or 0

    async def fund_agent(self, agent: Agent, amount: int) -> None:
        command = Command(
            type=chart.AGENT_FUND,
            channel="agent",
            payer=commands.CASH_PARTY,
            payee=commands.agent_party(agent.id),
            amount=amount,
            context={"memo": "weekly float"},
        )
        result = await self._submit(command)
        if result is not None:
            agent.balance = result.payee_available or 0

    async def transfer_float(self, agent: Agent, sub_agent: Agent, amount: int) -> None:
        command = Command(
            type=chart.AGENT_TRANSFER,
            channel="agent",
            payer=commands.agent_party(agent.id),
            payee=commands.agent_party(sub_agent.id),
            amount=amount,
            payer_pin=agent.pin,
            pin_policy="required",
        )
        result = await self._submit(command)
        if result is not None:
            agent.balance = result.payer_available or 0
            sub_agent.balance = result.payee_available or 0

    async def pay_out_commission(self, agent: Agent) -> None:
        command = Command(
            type=chart.COMMISSION_PAYOUT,
            channel="agent",
            payer=commands.commission_party(agent.id),
            payee=commands.agent_party(agent.id),
            amount=None,
        )
        result = await self._submit(command)
        if result is not None:
            agent.commission = 0
            agent.balance = result.payee_available or 0

    async def deposit(self, amount: int) -> None:
        """Deposit funds for the partner's later payments to subscribers."""
        await self._submit(
            Command(
                type=chart.PARTNER_DEPOSIT,
                channel="admin",
                payer=commands.CASH_PARTY,
                payee=commands.partner_party(self._country.partner_id),
                amount=amount,
            )
        )

    async def fund_from_partner(self, resident: Resident, amount: int, purpose: str) -> None:
        """Pay a resident from the partner's account, for example a salary or a remittance."""
        self._sequence += 1
        partner_id = self._country.partner_id
        command = Command(
            type=chart.PARTNER_FUND,
            channel="partner",
            payer=commands.partner_party(partner_id),
            payee=commands.subscriber_party(resident.id),
            amount=amount,
            reference=PartnerReference(partner_id, f"{purpose}-{self._sequence:06}"),
        )
        result = await self._submit(command)
        if result is not None:
            self._update_balance(resident, result.payee_available)

    async def pay_out_merchant(self, shop: Shop, owner: Resident, amount: int) -> None:
        """Pay part of a merchant's takings to its owner."""
        command = Command(
            type=chart.PROCESSOR_TRANSFER,
            channel="admin",
            payer=commands.processor_party(shop.id),
            payee=commands.subscriber_party(owner.id),
            amount=amount,
            context={"memo": f"payout from {shop.merchant.name}"},
        )
        result = await self._submit(command)
        if result is not None:
            shop.unpaid_takings -= result.amount
            self._update_balance(owner, result.payee_available)

    async def _submit_wrong_pin(self, command: Command, pin: str) -> None:
        """Submit the command with a wrong PIN once, which is too few attempts to lock the PIN."""
        wrong_pin = str((int(pin) + 1111) % 10_000).zfill(4)
        outcome = await self._ledger.submit(_replace_pin(command, wrong_pin))
        assert outcome.code is Code.INVALID_PIN, outcome

    async def _submit(self, command: Command) -> TransactionResult | None:
        """Submit a command; return None if it was declined or rejected."""
        outcome = await self._ledger.submit(command)
        if outcome.result is not None:
            self.recorded_count += 1
        return outcome.result if outcome.code is None else None

    def _build_request_key(self, credential: str) -> ScopedIdempotencyKey:
        self._sequence += 1
        key = f"demo-{self._sequence:07}"
        return ScopedIdempotencyKey(
            credential, key, hashlib.blake2b(key.encode(), digest_size=16).digest()
        )

    def _build_sale_context(self, shop: Shop, terminal: Terminal | None) -> dict[str, Any]:
        sale = {
            "merchant_id": ids.encode(ids.PROCESSOR, shop.id),
            "merchant_name": shop.merchant.name,
            "transaction_ref": f"R{self._sequence:07}",
        }
        return sale if terminal is None else {"terminal_id": terminal.public_id, **sale}

    @staticmethod
    def _update_balance(resident: Resident, available: int | None) -> None:
        if available is not None:
            resident.balance = available


def _replace_pin(command: Command, pin: str) -> Command:
    return msgspec.structs.replace(command, payer_pin=pin)
