"""Random command sequences: the ledger agrees with the reference model for any batch split."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import Phase, example, given, seed, settings
from hypothesis import strategies as st

from builders.auth import FakeClock
from builders.ledger import LedgerDriver
from builders.ledger_model import (
    ACCOUNTS,
    CASH_RULES,
    OPENING_BALANCES,
    OWNERS,
    START,
    InMemoryLedger,
    build_command,
    build_model,
    is_possible,
    sequences,
)
from examples import limit_examples
from ledger import reference_model
from ledger.reference_model import CARDS, WALLETS, Step
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, LedgerCommand, ReviewDecision, ScopedIdempotencyKey
from tapgate.ledger.verification.verify import verify
from tapgate.runtime.store.database import Database

pytestmark = [
    pytest.mark.refund,
    pytest.mark.reviews,
    pytest.mark.cash_in,
    pytest.mark.cash_out,
    pytest.mark.commission,
]

#: A cash-in that a review rejects no longer counts toward the agent's daily maximum.
REJECTED_THEN_REPEATED = [
    *[Step("agent_cashin", "agent", "w0", 1, pin=reference_model.PIN)]
    * (reference_model.MAX_CASH_OPERATIONS_PER_DAY - 1),
    Step("agent_cashin", "agent", "w1", 300, pin=reference_model.PIN),
    Step("decide_review", original=reference_model.MAX_CASH_OPERATIONS_PER_DAY - 1, release=False),
    Step("agent_cashin", "agent", "w0", 1, pin=reference_model.PIN),
]


@settings(max_examples=limit_examples(500))
@given(sequences)
@example(REJECTED_THEN_REPEATED)
def test_decisions_agree_with_the_model(sequence: list[Step]) -> None:
    ledger, model = InMemoryLedger(), build_model()
    for step in sequence:
        if step.kind == "wait":
            model.now += timedelta(hours=step.hours)
            ledger.advance_counts(model)
        elif is_possible(step, len(model.transactions)):
            assert ledger.run(step) == model.run(step), step
            for name, account_id in ACCOUNTS.items():
                account = ledger.state.accounts[account_id]
                assert account.balance == model.balances[name], (name, step)
                assert account.held == model.held.get(name, 0), (name, step)
    expected = sum(OPENING_BALANCES.values())
    assert sum(account.balance for account in ledger.state.accounts.values()) == expected


async def create_rules(ledger: LedgerDriver) -> None:
    """Create the model's rules in the database."""
    async with ledger.database.transaction() as tx:
        for level, limits in reference_model.LIMITS.items():
            await tx.execute(
                "UPDATE account_rules SET max_balance = $2, max_transaction = $3, daily_limit = $4,"
                " monthly_limit = $5, no_pin_limit = $6 WHERE kyc_level = $1",
                level,
                *limits.values(),
            )
        await tx.execute("DELETE FROM fee_rules WHERE type = 'transfer_p2p' AND up_to IS NOT NULL")
        await tx.execute("UPDATE fee_rules SET rate = 1500 WHERE type = 'transfer_p2p'")
        await tx.execute(
            "DELETE FROM compliance_rules WHERE window_seconds = 3600 OR subject <> 'payer'"
        )
        await tx.execute(
            """UPDATE compliance_rules SET status = 'active', threshold = CASE type
                   WHEN 'AMOUNT_THRESHOLD' THEN $1::bigint
                   WHEN 'TRANSACTION_COUNT' THEN $2::bigint ELSE $3::bigint END,
                   action = CASE type WHEN 'PIN_FAILURES' THEN 'block' ELSE action END""",
            reference_model.REVIEW_ABOVE,
            reference_model.MAX_PAYMENTS_PER_DAY,
            reference_model.MAX_WRONG_PINS_PER_DAY,
        )
        for rule in CASH_RULES:
            await tx.execute(
                """INSERT INTO compliance_rules (id, type, subject, transaction_types, threshold,
                                                 window_seconds, action, name, severity)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, 'Cash', 'LOW')""",
                *(
                    list(value) if isinstance(value, frozenset) else value
                    for value in rule.values()
                ),
            )
        for kind, rate in reference_model.COMMISSION_RATES.items():
            await tx.execute(
                "UPDATE commission_rules SET rate = $2, minimum_amount = $3 WHERE type = $1",
                kind,
                rate,
                reference_model.MIN_COMMISSIONED_AMOUNT,
            )


class DatabaseLedger:
    """One copy of the model's accounts; one database holds several copies."""

    def __init__(self, ledger: LedgerDriver) -> None:
        self.ledger_driver = ledger
        self.owners: dict[str, int] = {}
        self.serials: dict[str, str] = {}
        self.transaction_ids: list[int] = []

    @classmethod
    async def open(cls, ledger: LedgerDriver) -> "DatabaseLedger":
        database_ledger = cls(ledger)
        for name, level in WALLETS.items():
            database_ledger.owners[name] = await ledger.create_subscriber(
                OPENING_BALANCES[name], kyc_level=level
            )
        database_ledger.owners["agent"] = await ledger.create_agent(OPENING_BALANCES["agent"])
        database_ledger.owners["sub"] = await ledger.create_agent(
            parent=database_ledger.owners["agent"]
        )
        database_ledger.owners["merchant"] = await ledger.create_processor(
            OPENING_BALANCES["merchant"]
        )
        database_ledger.owners["partner"] = await ledger.create_partner(
            OPENING_BALANCES["partner"], overdraft=reference_model.OVERDRAFT
        )
        for serial, wallet in CARDS.items():
            fields: dict[str, Any] = {}
            if serial == "k0":
                fields = {
                    "daily_limit": reference_model.CHILD_LIMIT,
                    "pin": reference_model.CHILD_PIN,
                }
            database_ledger.serials[serial] = await ledger.create_card(
                database_ledger.owners[wallet], **fields
            )
        return database_ledger

    def translate_command(self, command: LedgerCommand, name: str) -> LedgerCommand:
        if isinstance(command, ReviewDecision):
            return command

        def translate_party(party: commands.Party) -> commands.Party:
            if party.by == "card":
                return commands.card_party(self.serials[str(party.key)])
            if party == commands.CASH_PARTY:
                return party
            name_in_model = next(
                candidate for candidate, number in OWNERS.items() if number == party.key
            )
            return commands.Party("owner", self.owners[name_in_model], party.kind)

        idempotency_key = command.idempotency_key and ScopedIdempotencyKey(
            f"{name}", command.idempotency_key.request_id, command.idempotency_key.fingerprint
        )
        return Command(
            **{
                **{field: getattr(command, field) for field in command.__struct_fields__},
                "payer": translate_party(command.payer),
                "payee": translate_party(command.payee),
                "idempotency_key": idempotency_key,
            }
        )

    async def run(self, batch: list[Step], name: str) -> list[Any]:
        commands = [
            self.translate_command(build_command(step, self.transaction_ids), name)
            for step in batch
        ]
        outcomes = await self.ledger_driver.submit_batch(commands)
        results = []
        for outcome in outcomes:
            result = outcome.result
            if result is not None and result.transaction_id not in self.transaction_ids:
                self.transaction_ids.append(result.transaction_id)
            results.append(outcome.code or (result and result.status))
        return results

    async def get_balances(self) -> dict[str, int]:
        balances = {
            name: await self.ledger_driver.get_balance(owner) for name, owner in self.owners.items()
        }
        balances["commission"] = await self.ledger_driver.get_balance(
            self.owners["agent"], chart.COMMISSION
        )
        return balances


@pytest.fixture
async def ledger_with_rules(database_url: str, database: Database) -> Any:
    # Allocate the slot as a process does, because the ledger takes its next slot from the same
    # sequence when the clock is set back.
    slot = await database.fetchval("SELECT nextval('process_slots')")
    ledger = await LedgerDriver.open(database_url, database, FakeClock(START), slot=slot)
    await create_rules(ledger)
    yield ledger
    await ledger.close()


def split_into_batches(sequence: list[Step], cuts: set[int]) -> list[list[Step]]:
    """Split the sequence into batches at `cuts`, at every wait and before each dependent step.

    A step that refers to an earlier transaction needs the ID that the earlier batch returned.
    """
    batches: list[list[Step]] = [[]]
    for number, step in enumerate(sequence):
        if number in cuts or step.kind == "wait" or step.original is not None:
            batches.append([])
        batches[-1].append(step)
        if step.kind == "wait":
            batches.append([])
    return [batch for batch in batches if batch]


async def test_any_batch_split_agrees_with_the_model(ledger_with_rules: LedgerDriver) -> None:
    """One copy of the accounts gets the commands one by one, the other in batches."""
    for number in range(20):
        sequence, cuts = draw_sequence(number)
        await compare_with_model(ledger_with_rules, sequence, cuts, number)
    async with ledger_with_rules.database.connection() as connection:
        verification = await verify(connection)
    assert verification.is_valid, [finding for finding in verification.findings if finding.broken]


def draw_sequence(number: int) -> tuple[list[Step], set[int]]:
    """Return a random sequence and its cuts, deterministic for each number."""
    examples: list[tuple[list[Step], set[int]]] = []

    @settings(
        max_examples=2,  # the first example is always the simplest
        database=None,
        phases=[Phase.generate],
    )
    @seed(number)
    @given(sequences, st.sets(st.integers(0, 40), max_size=8))
    def collect(sequence: list[Step], cuts: set[int]) -> None:
        examples.append((sequence, cuts))

    collect()
    return examples[-1]


async def compare_with_model(
    ledger: LedgerDriver, sequence: list[Step], cuts: set[int], number: int
) -> None:
    ledger.clock.now = START
    model = build_model()
    single, batched = await DatabaseLedger.open(ledger), await DatabaseLedger.open(ledger)
    for batch in split_into_batches(sequence, cuts):
        if batch[0].kind == "wait":
            model.now += timedelta(hours=batch[0].hours)
            ledger.clock.now = model.now
            continue
        if not all(is_possible(step, len(model.transactions)) for step in batch):
            continue
        expected = [model.run(step) for step in batch]
        single_results = [(await single.run([step], f"single {number}"))[0] for step in batch]
        assert single_results == expected, batch
        assert await batched.run(batch, f"batch {number}") == expected, batch
    balances = {name: model.balances[name] for name in await single.get_balances()}
    assert await single.get_balances() == balances
    assert await batched.get_balances() == balances
