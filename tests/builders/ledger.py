"""A ledger with its accounts, and commands to submit."""

import itertools
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import msgspec

from builders.auth import FakeClock
from tapgate.core.id_generator import IdGenerator
from tapgate.ledger import chart, commands
from tapgate.ledger.accounts import open_account
from tapgate.ledger.commands import (
    AuditFacts,
    Command,
    LedgerCommand,
    Outcome,
    Party,
    ScopedIdempotencyKey,
    TransactionResult,
)
from tapgate.ledger.effects.rollups import get_bucket_start
from tapgate.ledger.engine.group_commit import BeforeCommit, Ledger, connect_ledger
from tapgate.ledger.pins.pin_lockout import PinState
from tapgate.ledger.pins.pin_storage import set_pin
from tapgate.ledger.rules import loaded_rules
from tapgate.ledger.verification.verify import verify
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.signals import Signals
from tapgate.runtime.store.transaction import Transaction

#: Start of the ledger's clock.
START = datetime(2026, 3, 10, 12, tzinfo=UTC)

CURRENCY = "SLE"
PIN = "1234"
WRONG_PIN = "9999"
#: A command with these facts calls the before-commit hook.
AUDIT = AuditFacts(actor={"type": "system", "id": "system"}, ip=None, request_id=None)
_sequence = itertools.count(1)


class PlaintextPin(msgspec.Struct, frozen=True):
    """Stored PIN whose verifier is the PIN itself; ledger tests do not cover PIN hashing."""

    verifier: bytes
    key_id: str = "test"
    salt: bytes = b""


def is_correct_pin(state: PinState, pin: str) -> bool:
    return state.verifier == pin.encode()


class LedgerDriver:
    """A ledger, and methods that create its accounts and submit commands."""

    def __init__(self, database: Database, ledger: Ledger, clock: FakeClock) -> None:
        self.database = database
        self.ledger = ledger
        self.clock = clock
        #: The ledger's hook, for tests that submit commands with `audit`.
        self.before_commit: BeforeCommit
        self.new_id = IdGenerator(999, lambda: int(clock().timestamp() * 1000))

    @classmethod
    async def open(
        cls,
        url: str,
        database: Database,
        clock: FakeClock | None = None,
        timezone: str = "Africa/Freetown",
        slot: int = 1,
        create: Callable[..., Ledger] = Ledger,
    ) -> "LedgerDriver":
        """Open a driver; a different slot simulates another process on the same database."""
        clock = clock or FakeClock(START)
        signals = Signals(url)
        await signals.start()
        new_id = IdGenerator(slot, lambda: int(clock().timestamp() * 1000))
        async with database.transaction() as tx:
            await loaded_rules.insert_defaults(tx, CURRENCY, new_id)

        async def run_before_commit(
            tx: Transaction, command: LedgerCommand, result: TransactionResult
        ) -> bytes | None:
            return await driver.before_commit(tx, command, result)

        ledger_database = await connect_ledger(url)
        ledger = create(
            ledger_database,
            signals,
            currency=CURRENCY,
            timezone=ZoneInfo(timezone),
            clock=clock,
            new_id=new_id,
            is_correct_pin=is_correct_pin,
            before_commit=run_before_commit,
        ).start()
        driver = cls(database, ledger, clock)
        driver.signals, driver.ledger_database = signals, ledger_database
        return driver

    signals: Signals
    ledger_database: Database

    async def close(self) -> None:
        await self.ledger.stop()
        await self.signals.stop()

    async def create_account(self, kind: str, owner_id: int, **fields: Any) -> int:
        account_id = self.new_id()
        async with self.database.transaction() as tx:
            await open_account(
                tx,
                id=account_id,
                kind=kind,
                owner_id=owner_id,
                holder_name="Aminata Kamara",
                public_name="Aminata K.",
                currency=CURRENCY,
                **fields,
            )
        return account_id

    async def create_subscriber(self, balance: int = 0, *, kyc_level: int = 1) -> int:
        subscriber_id = self.new_id()
        account_id = await self.create_account(chart.WALLET, subscriber_id, kyc_level=kyc_level)
        async with self.database.transaction() as tx:
            await tx.execute(
                """INSERT INTO subscribers (id, account_id, phone_number, first_name, last_name,
                                            created_at, updated_at)
                   VALUES ($1, $2, $3, 'Aminata', 'Kamara', now(), now())""",
                subscriber_id,
                account_id,
                f"+2327{next(_sequence):07d}",
            )
            await set_pin(tx, subscriber_id, PlaintextPin(PIN.encode()))
        if balance:
            await self.deposit(account_id, balance)
        return subscriber_id

    async def create_card(self, subscriber_id: int | None, **fields: Any) -> str:
        serial = f"CARD-{next(_sequence)}"
        card_id = self.new_id()
        is_child = "daily_limit" in fields
        account_id = subscriber_id and await self.get_account_id(subscriber_id)
        async with self.database.transaction() as tx:
            await tx.execute(
                """INSERT INTO cards (id, serial, type, status, subscriber_id, account_id,
                                      pin_holder_id, daily_limit, expires_at, created_at,
                                      updated_at)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, now(), now())""",
                card_id,
                serial,
                None if subscriber_id is None else "CHILD" if is_child else "PARENT",
                "UNASSIGNED" if subscriber_id is None else "ACTIVE",
                subscriber_id,
                account_id,
                card_id if is_child else subscriber_id,
                fields.get("daily_limit"),
                fields.get("expires_at"),
            )
            if is_child:
                await set_pin(tx, card_id, PlaintextPin(fields["pin"].encode()))
        return serial

    async def create_agent(
        self, balance: int = 0, *, tier: int = 1, parent: int | None = None
    ) -> int:
        agent_id = self.new_id()
        float_id = await self.create_account(chart.FLOAT, agent_id)
        commission_id = await self.create_account(chart.COMMISSION, agent_id)
        async with self.database.transaction() as tx:
            await tx.execute(
                """INSERT INTO agents (id, account_id, commission_account_id, agent_type,
                                       parent_agent_id, phone_number, commission_tier, created_at,
                                       updated_at)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, now(), now())""",
                agent_id,
                float_id,
                commission_id,
                "sub_agent" if parent else "super_agent",
                parent,
                f"+2328{next(_sequence):07d}",
                tier,
            )
            await set_pin(tx, agent_id, PlaintextPin(PIN.encode()))
        if balance:
            await self.deposit(float_id, balance)
        return agent_id

    async def create_processor(self, balance: int = 0) -> int:
        processor_id = self.new_id()
        account_id = await self.create_account(chart.SETTLEMENT, processor_id)
        await self.database.execute(
            """INSERT INTO processors (id, account_id, phone_number, email, created_at, updated_at)
               VALUES ($1, $2, '+23276000000', 'a@b.sl', now(), now())""",
            processor_id,
            account_id,
        )
        if balance:
            await self.deposit(account_id, balance)
        return processor_id

    async def create_partner(self, balance: int = 0, *, overdraft: int = 0) -> int:
        partner_id = self.new_id()
        account_id = await self.create_account(chart.CLEARING, partner_id, overdraft=overdraft)
        await self.database.execute(
            """INSERT INTO partners (id, account_id, webhook_secret, created_at)
               VALUES ($1, $2, '', now())""",
            partner_id,
            account_id,
        )
        if balance:
            await self.deposit(account_id, balance)
        return partner_id

    async def deposit(self, account_id: int, amount: int) -> None:
        """Write a cash deposit directly: transaction, entry, balance and rollup, without checks."""
        async with self.database.transaction() as tx:
            cash = await tx.fetchval("SELECT id FROM accounts WHERE kind = 'cash'")
            transaction_id = self.new_id()
            await tx.execute(
                """INSERT INTO transactions (id, type, status, channel, amount, fee_amount,
                                             currency, from_account, to_account, created_at,
                                             completed_at)
                   VALUES ($1, 'transfer', 'completed', 'admin', $2, 0, $3, $4, $5, $6, $6)""",
                transaction_id,
                amount,
                CURRENCY,
                cash,
                account_id,
                self.clock(),
            )
            await tx.execute(
                "INSERT INTO entries VALUES ($1, 0, $2, $3, $4)",
                transaction_id,
                cash,
                account_id,
                amount,
            )
            await tx.execute(
                "UPDATE accounts SET balance = balance + $2 WHERE id = $1", account_id, amount
            )
            await tx.execute(
                """INSERT INTO figures AS existing
                   VALUES ($1, 'transfer', 'completed', NULL, 999, 1, $2, 0)
                   ON CONFLICT (quarter, type, outcome, failure_code, slot) DO UPDATE
                   SET count = existing.count + 1, amount = existing.amount + excluded.amount""",
                get_bucket_start(self.clock()),
                amount,
            )

    async def get_account_id(self, owner_id: int, kind: str | None = None) -> int:
        kinds = [kind] if kind else [chart.WALLET, chart.FLOAT, chart.SETTLEMENT, chart.CLEARING]
        account_id = await self.database.fetchval(
            "SELECT id FROM accounts WHERE owner_id = $1 AND kind = ANY ($2)", owner_id, kinds
        )
        return int(account_id)

    async def get_balance(self, owner_id: int, kind: str | None = None) -> int:
        account_id = await self.get_account_id(owner_id, kind)
        balance = await self.database.fetchval(
            "SELECT balance FROM accounts WHERE id = $1", account_id
        )
        return int(balance)

    async def get_platform_balance(self, kind: str) -> int:
        balance = await self.database.fetchval(
            """SELECT coalesce(sum(CASE WHEN credit_account = a.id THEN amount ELSE -amount END), 0)
               FROM accounts a JOIN entries ON a.id IN (credit_account, debit_account)
               WHERE a.kind = $1 AND a.owner_id IS NULL""",
            kind,
        )
        return int(balance)

    async def submit(self, command: LedgerCommand) -> Outcome:
        return await self.ledger.submit(command)

    async def submit_batch(self, commands: Sequence[LedgerCommand]) -> list[Outcome]:
        """Process the commands as one batch."""
        outcomes, _ = await self.ledger.run_with_retries(commands)
        return outcomes


async def require_balanced_books(database: Database) -> None:
    """Fail if `verify` finds a broken invariant."""
    async with database.connection() as connection:
        verification = await verify(connection)
    assert verification.is_valid, [finding for finding in verification.findings if finding.broken]


def build_request_key(name: str, content: str = "the same") -> ScopedIdempotencyKey:
    return ScopedIdempotencyKey("test", name, content.encode())


#: Payer and payee of each type of transaction, as created from an ID.
_PARTIES: Final[dict[str, tuple[Callable[[int], Party], Callable[[int], Party]]]] = {
    chart.TRANSFER: (commands.subscriber_party, commands.subscriber_party),
    chart.TRANSFER_P2P: (commands.subscriber_party, commands.subscriber_party),
    chart.POS_PAYMENT: (commands.subscriber_party, commands.processor_party),
    chart.AGENT_CASHIN: (commands.agent_party, commands.subscriber_party),
    chart.AGENT_CASHOUT: (commands.subscriber_party, commands.agent_party),
    chart.AGENT_FUND: (commands.agent_party, commands.agent_party),
    chart.AGENT_TRANSFER: (commands.agent_party, commands.agent_party),
    chart.COMMISSION_PAYOUT: (commands.commission_party, commands.agent_party),
    chart.PARTNER_FUND: (commands.partner_party, commands.subscriber_party),
    chart.PROCESSOR_TRANSFER: (commands.processor_party, commands.subscriber_party),
    chart.REFUND: (commands.processor_party, commands.subscriber_party),
}


def build_command(
    kind: str, payer: Party | int | str, payee: Party | int | str, amount: int | None, **fields: Any
) -> Command:
    """Build a command. A party is given as such, as its owner's ID, or as a card's serial."""
    build_payer, build_payee = _PARTIES.get(kind, (commands.account_party, commands.account_party))
    return Command(
        type=kind,
        channel="api",
        payer=_build_party(payer, build_payer),
        payee=_build_party(payee, build_payee),
        amount=amount,
        **fields,
    )


def _build_party(party: Party | int | str, build: Callable[[int], Party]) -> Party:
    if isinstance(party, str):
        return commands.card_party(party)
    return build(party) if isinstance(party, int) else party


def build_p2p(sender: int, receiver: int, amount: int, **fields: Any) -> Command:
    return build_command(chart.TRANSFER_P2P, sender, receiver, amount, **fields)


def build_payment(payer: int, processor: int, amount: int, **fields: Any) -> Command:
    return build_command(chart.POS_PAYMENT, payer, processor, amount, **fields)


def build_refund(processor: int, original_id: int, amount: int | None, **fields: Any) -> Command:
    refund = {"original_id": original_id, **fields}
    return build_command(chart.REFUND, processor, commands.CASH_PARTY, amount, **refund)


def build_fund(agent: int, amount: int) -> Command:
    return build_command(chart.AGENT_FUND, commands.CASH_PARTY, agent, amount)


def build_cash_in(agent: int, subscriber: int, amount: int) -> Command:
    return build_command(chart.AGENT_CASHIN, agent, subscriber, amount, payer_pin=PIN)


def build_cash_out(agent: int, subscriber: int, amount: int) -> Command:
    pins = {"payer_pin": PIN, "payee_pin": PIN}
    return build_command(chart.AGENT_CASHOUT, subscriber, agent, amount, **pins)


async def remove_limits(ledger: LedgerDriver) -> None:
    await ledger.database.execute(
        """UPDATE account_rules SET max_transaction = 1000000000, daily_limit = 1000000000,
                                    monthly_limit = 1000000000, max_balance = 1000000000"""
    )
    ledger.ledger.invalidate_rules()
