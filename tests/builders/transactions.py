"""Builders for transaction tests: agents, processors, partners, and their transactions."""

import itertools
from typing import Any

from harness import PIN, Harness
from tapgate import ids, money
from tapgate.ledger import chart, commands
from tapgate.ledger.accounts import open_account
from tapgate.ledger.commands import Command, Outcome, Party, ReviewDecision, TransactionResult
from tapgate.pins.storage import set_pin

_sequence = itertools.count(1)


async def create_agent(harness: Harness, name: str = "Kadiatu Conteh") -> str:
    """Create an agent whose PIN is `PIN` and return its ID."""
    services, agent_id = harness.services, harness.services.new_id()
    accounts = {}
    async with services.transaction() as tx:
        for kind in (chart.FLOAT, chart.COMMISSION):
            accounts[kind] = await _create_account(tx, harness, kind, agent_id, name)
        await tx.execute(
            """INSERT INTO agents (id, account_id, commission_account_id, agent_type, phone_number,
                                   created_at, updated_at)
               VALUES ($1, $2, $3, 'super_agent', $4, now(), now())""",
            agent_id,
            accounts[chart.FLOAT],
            accounts[chart.COMMISSION],
            f"+2328{next(_sequence):07d}",
        )
        await set_pin(tx, agent_id, services.pin_verifier.hash(PIN))
    return ids.encode(ids.AGENT, agent_id)


async def create_processor(harness: Harness, name: str = "Kamara Stores") -> str:
    """Create a processor and return its ID."""
    processor_id = harness.services.new_id()
    async with harness.services.transaction() as tx:
        account_id = await _create_account(tx, harness, chart.SETTLEMENT, processor_id, name)
        await tx.execute(
            """INSERT INTO processors (id, account_id, phone_number, email, created_at, updated_at)
               VALUES ($1, $2, '+23276000000', 'shop@example.com', now(), now())""",
            processor_id,
            account_id,
        )
    return ids.encode(ids.PROCESSOR, processor_id)


async def create_partner(harness: Harness, name: str = "Sierra Bank") -> str:
    """Create a partner and return its ID."""
    partner_id = harness.services.new_id()
    async with harness.services.transaction() as tx:
        account_id = await _create_account(tx, harness, chart.CLEARING, partner_id, name)
        await tx.execute(
            """INSERT INTO partners (id, account_id, webhook_secret, created_at)
               VALUES ($1, $2, '', now())""",
            partner_id,
            account_id,
        )
    return ids.encode(ids.PARTNER, partner_id)


async def _create_account(tx: Any, harness: Harness, kind: str, owner_id: int, name: str) -> int:
    account_id = harness.services.new_id()
    await open_account(
        tx,
        id=account_id,
        kind=kind,
        owner_id=owner_id,
        holder_name=name,
        public_name=f"{name.split(' ', maxsplit=1)[0]} (public)",
        currency=harness.services.settings.currency,
    )
    return account_id


def build_party(public_id: str) -> Party:
    """Build a party from a user ID, "cash" or a card serial."""
    for prefix, build in (
        (ids.SUBSCRIBER, commands.subscriber_party),
        (ids.AGENT, commands.agent_party),
        (ids.PROCESSOR, commands.processor_party),
        (ids.PARTNER, commands.partner_party),
    ):
        internal_id = ids.decode(prefix, public_id)
        if internal_id is not None:
            return build(internal_id)
    return commands.CASH_PARTY if public_id == "cash" else commands.card_party(public_id)


async def submit_command(
    harness: Harness, kind: str, payer: str | Party, payee: str | Party, amount: str, **fields: Any
) -> Outcome:
    """Submit a command to the ledger directly."""
    return await harness.services.ledger.submit(
        Command(
            type=kind,
            channel=fields.pop("channel", "api"),
            payer=build_party(payer) if isinstance(payer, str) else payer,
            payee=build_party(payee) if isinstance(payee, str) else payee,
            amount=money.parse(amount, harness.services.settings.currency),
            **fields,
        )
    )


async def submit_and_get_id(
    harness: Harness, kind: str, payer: str | Party, payee: str | Party, amount: str, **fields: Any
) -> str:
    """Submit a command, require that it is accepted, and return the transaction ID."""
    return encode_transaction_id(
        (await submit_command(harness, kind, payer, payee, amount, **fields)).require_accepted()
    )


async def submit_refund(
    harness: Harness, transaction_id: str, processor_id: str, amount: str
) -> str:
    return await submit_and_get_id(
        harness,
        chart.REFUND,
        processor_id,
        processor_id,  # ignored: the refund goes to the original payer
        amount,
        original_id=ids.decode(ids.TRANSACTION, transaction_id),
    )


async def decide_review(harness: Harness, transaction_id: str, *, release: bool) -> None:
    internal_id = ids.decode(ids.TRANSACTION, transaction_id)
    assert internal_id is not None
    decision = ReviewDecision(transaction_id=internal_id, release=release)
    await harness.services.ledger.submit(decision)


async def set_kyc_level(harness: Harness, subscriber_id: str, level: int) -> None:
    await harness.services.database.execute(
        "UPDATE accounts SET kyc_level = $2 WHERE owner_id = $1",
        ids.decode(ids.SUBSCRIBER, subscriber_id),
        level,
    )


def encode_transaction_id(result: TransactionResult) -> str:
    return ids.encode(ids.TRANSACTION, result.transaction_id)
