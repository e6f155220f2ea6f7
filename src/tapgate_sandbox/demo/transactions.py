"""Simulated transactions, each submitted as the ledger command that its route would create.

The results update the balances that the simulation tracks for the parties.
"""

import hashlib
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from tapgate.http.api.services import Services
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import (
    Command,
    PartnerReference,
    Party,
    ScopedIdempotencyKey,
    TransactionResult,
)
from tapgate_client import ids, money
from tapgate_sandbox.demo.people import Agent, ChildCard, Country, Resident, Shop, Terminal


class Side(NamedTuple):
    """Payer or payee in a command, and the owner whose balance the simulation tracks."""

    party: Party
    owner: Resident | Agent | None = None


_CASH: Final = Side(commands.CASH_PARTY)


def _card(resident: Resident, serial: str | None = None) -> Side:
    return Side(commands.card_party(serial or resident.serial), resident)


def _wallet(resident: Resident) -> Side:
    return Side(commands.subscriber_party(resident.id), resident)


def _account(resident: Resident) -> Side:
    return Side(commands.account_party(resident.account_id), resident)


def _float(agent: Agent) -> Side:
    return Side(commands.agent_party(agent.id), agent)


def _settlement(shop: Shop) -> Side:
    return Side(commands.processor_party(shop.id))


class TransactionSimulator:
    def __init__(self, services: Services, country: Country, rng: Random) -> None:
        self._ledger = services.ledger
        self._touch_terminal = services.authenticator.terminals.touch
        self._touch_key = services.authenticator.hmac_keys.last_used.touch
        self._partner_id = country.partner_id
        self._partner = Side(commands.partner_party(country.partner_id))
        self._signing_cards = country.signing_cards
        self._random = rng
        self._sequence = 0
        self.major_unit: int = 10 ** money.get_decimals(services.settings.currency)
        #: Payments to refund: merchant, transaction ID and amount (None for the full amount).
        self.pending_refunds: list[tuple[Shop, int, int | None]] = []

    async def pay(
        self,
        resident: Resident,
        shop: Shop,
        amount: int,
        *,
        serial: str | None = None,
        child: ChildCard | None = None,
        is_clone: bool = False,
    ) -> None:
        """Pay at a terminal, always with the PIN above 100 major units and sometimes below.

        A signing card's clone repeats the last tap, which is rejected.
        """
        rng, unit = self._random, self.major_unit
        terminal = rng.choice(shop.terminals)
        payer, pin = _card(resident, serial), resident.pin
        if child is not None:
            payer, pin = _card(resident, child.serial), child.pin
        with_pin = amount > 100 * unit or rng.random() < 0.3
        enters_wrong_pin = with_pin and not is_clone and rng.random() < 0.02
        will_refund = rng.random() < 0.03
        refund_amount = None if rng.random() < 0.7 else max(1, amount // 2 // unit * unit)
        self._touch_terminal(terminal.id)
        self._touch_key(terminal.key.id)
        command = self._build_sale(chart.POS_PAYMENT, "pos", payer, shop, amount, terminal)
        if with_pin:
            command = msgspec.structs.replace(command, payer_pin=pin)
        result = await self._submit(
            command, payer, enters_wrong_pin=enters_wrong_pin, is_clone=is_clone
        )
        if result is not None and result.status == "completed":
            shop.unpaid_takings += result.amount - result.fee
            if will_refund and shop.unpaid_takings > result.amount:
                self.pending_refunds.append((shop, result.transaction_id, refund_amount))

    async def pay_in_app(self, resident: Resident, shop: Shop, amount: int) -> None:
        payer = _card(resident)
        command = self._build_sale(chart.ONLINE_PAYMENT, "in_app", payer, shop, amount)
        result = await self._submit(command, payer)
        if result is not None:
            shop.unpaid_takings += result.amount - result.fee

    async def refund(self, shop: Shop, transaction_id: int, refund_amount: int | None) -> None:
        result = await self._execute(
            chart.REFUND,
            "pos",
            _settlement(shop),
            _CASH,
            refund_amount,
            original_id=transaction_id,
            idempotency_key=self._build_request_key(shop.key_id),
            memo="returned goods",
        )
        if result is not None:
            shop.unpaid_takings -= result.amount

    async def send(
        self, sender: Resident, recipient: Resident, amount: int, memo: str | None
    ) -> None:
        enters_wrong_pin = self._random.random() < 0.02
        channel = self._random.choice(("api", "messaging"))
        await self._execute(
            chart.TRANSFER_P2P,
            channel,
            _wallet(sender),
            _card(recipient),
            amount,
            payer_pin=sender.pin,
            memo=memo,
            enters_wrong_pin=enters_wrong_pin,
        )

    async def pay_wage(self, employer: Resident, worker: Resident, amount: int) -> None:
        await self._execute(
            chart.TRANSFER,
            "api",
            _account(employer),
            _account(worker),
            amount,
            payer_pin=employer.pin,
            wallets_only=True,
            memo="weekly wage",
        )

    async def cash_in(self, resident: Resident, agent: Agent, amount: int) -> None:
        result = await self._execute(
            chart.AGENT_CASHIN, "agent", _float(agent), _card(resident), amount, payer_pin=agent.pin
        )
        if result is not None:
            agent.commission += result.commission

    async def cash_out(self, resident: Resident, agent: Agent, amount: int) -> None:
        await self._execute(
            chart.AGENT_CASHOUT,
            "agent",
            _wallet(resident),
            _float(agent),
            amount,
            payer_pin=resident.pin,
            payee_pin=agent.pin,
        )

    async def fund_agent(self, agent: Agent, amount: int) -> None:
        await self._execute(
            chart.AGENT_FUND, "agent", _CASH, _float(agent), amount, memo="weekly float"
        )

    async def transfer_float(self, agent: Agent, sub_agent: Agent, amount: int) -> None:
        sides = _float(agent), _float(sub_agent)
        await self._execute(chart.AGENT_TRANSFER, "agent", *sides, amount, payer_pin=agent.pin)

    async def pay_out_commission(self, agent: Agent) -> None:
        commission = Side(commands.commission_party(agent.id))
        if await self._execute(chart.COMMISSION_PAYOUT, "agent", commission, _float(agent), None):
            agent.commission = 0

    async def deposit(self, amount: int) -> None:
        """Deposit funds for the partner's later payments to subscribers."""
        await self._execute(chart.PARTNER_DEPOSIT, "admin", _CASH, self._partner, amount)

    async def fund_from_partner(self, resident: Resident, amount: int, purpose: str) -> None:
        """Pay a resident from the partner's account, for example a salary or a remittance."""
        self._sequence += 1
        reference = PartnerReference(self._partner_id, f"{purpose}-{self._sequence:06}")
        sides = self._partner, _wallet(resident)
        await self._execute(chart.PARTNER_FUND, "partner", *sides, amount, reference=reference)

    async def pay_out_merchant(self, shop: Shop, owner: Resident, amount: int) -> None:
        """Pay part of a merchant's takings to its owner."""
        sides, memo = (_settlement(shop), _wallet(owner)), f"payout from {shop.merchant.name}"
        result = await self._execute(chart.PROCESSOR_TRANSFER, "admin", *sides, amount, memo=memo)
        if result is not None:
            shop.unpaid_takings -= result.amount

    def _build_sale(
        self,
        command_type: str,
        channel: str,
        payer: Side,
        shop: Shop,
        amount: int,
        terminal: Terminal | None = None,
    ) -> Command:
        key = self._build_request_key(shop.key_id if terminal is None else terminal.key_id)
        context = {
            "merchant_id": ids.encode(ids.PROCESSOR, shop.id),
            "merchant_name": shop.merchant.name,
            "transaction_ref": f"R{self._sequence:07}",
        }
        return Command(
            type=command_type,
            channel=channel,
            payer=payer.party,
            payee=commands.processor_party(shop.id),
            amount=amount,
            pin_policy="above_no_pin_limit",
            idempotency_key=key,
            context=context if terminal is None else {"terminal_id": terminal.public_id, **context},
        )

    def _build_request_key(self, credential: str) -> ScopedIdempotencyKey:
        self._sequence += 1
        key = f"demo-{self._sequence:07}"
        return ScopedIdempotencyKey(
            credential, key, hashlib.blake2b(key.encode(), digest_size=16).digest()
        )

    async def _execute(
        self,
        command_type: str,
        channel: str,
        payer: Side,
        payee: Side,
        amount: int | None,
        *,
        memo: str | None = None,
        enters_wrong_pin: bool = False,
        **fields: Any,
    ) -> TransactionResult | None:
        """Submit a command with these fields; a payer's PIN is required if it is given."""
        command = Command(
            type=command_type,
            channel=channel,
            payer=payer.party,
            payee=payee.party,
            amount=amount,
            pin_policy="required" if "payer_pin" in fields else "if_given",
            context=None if memo is None else {"memo": memo},
            **fields,
        )
        return await self._submit(command, payer, payee, enters_wrong_pin=enters_wrong_pin)

    async def _submit(
        self,
        command: Command,
        *sides: Side,
        enters_wrong_pin: bool = False,
        is_clone: bool = False,
    ) -> TransactionResult | None:
        """Submit a command and update its payer's and payee's balances.

        Return None if it was declined or rejected. With `enters_wrong_pin`, submit it with a wrong
        PIN first, which is too few attempts to lock the PIN.
        """
        if enters_wrong_pin:
            wrong_pin = str((int(command.payer_pin or 0) + 1111) % 10_000).zfill(4)
            wrong = self._tap(msgspec.structs.replace(command, payer_pin=wrong_pin))
            await self._ledger.submit(wrong)
        outcome = await self._ledger.submit(self._tap(command, is_clone=is_clone))
        result = outcome.result
        if result is None or outcome.code is not None:
            return None
        balances = (result.payer_available, result.payee_available)
        for side, balance in zip(sides, balances, strict=False):
            if side.owner is not None and balance is not None:
                side.owner.balance = balance
        return result

    def _tap(self, command: Command, *, is_clone: bool = False) -> Command:
        """Tap a payment's card immediately before it is submitted.

        The ledger receives a card's taps in counter order.
        """
        if command.type not in (chart.POS_PAYMENT, chart.ONLINE_PAYMENT):
            return command
        return self._signing_cards.tap(command, is_clone=is_clone)
