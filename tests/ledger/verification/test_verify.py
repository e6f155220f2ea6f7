"""Database constraints on the ledger, and detection of tampering by `verify`."""

from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from builders.ledger import (
    LedgerDriver,
    build_cash_in,
    build_cash_out,
    build_command,
    build_p2p,
    build_refund,
    build_request_key,
)
from builders.transfers import send_to_other_book
from tapgate.ledger import chart
from tapgate.ledger.commands import RecallDecision, RecallRequest, Reversal
from tapgate.ledger.verification.invariants import INVARIANTS
from tapgate.ledger.verification.verify import verify
from tapgate.runtime.store.database import Database


async def create_history(ledger: LedgerDriver) -> None:
    payer, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    card = await ledger.create_card(payer, daily_limit=50_00, pin="4321")
    command = build_command(chart.POS_PAYMENT, card, merchant, 10_00)
    payment = (await ledger.submit(command)).require_accepted()
    refund = build_refund(merchant, payment.transaction_id, 4_00)
    await ledger.submit(refund)
    agent = await ledger.create_agent(100_00)
    for cash_command in (build_cash_out(agent, payer, 30_00), build_cash_in(agent, payer, 50_00)):
        (await ledger.submit(cash_command)).require_accepted()
    sender, receiver = await ledger.create_subscriber(1_000_00), await ledger.create_subscriber()
    reversed_id, recalled_id = [
        (await ledger.submit(build_p2p(sender, receiver, amount))).require_accepted().transaction_id
        for amount in (200_00, 300_00)
    ]
    await ledger.submit(Reversal(original_id=reversed_id, amount=100_00, channel="admin"))
    await ledger.submit(
        RecallRequest(
            transaction_id=recalled_id,
            max_age_seconds=60,
            hold_seconds=60,
            idempotency_key=build_request_key("recall"),
        )
    )
    recall_id = await ledger.database.fetchval("SELECT id FROM recalls")
    decision = RecallDecision(
        recall_id=recall_id,
        transaction_id=recalled_id,
        status="returned",
        is_return=True,
        channel="messaging",
    )
    (await ledger.submit(decision)).require_accepted()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET amount = amount + 1",
        "DELETE FROM entries",
        "TRUNCATE entries",
        "DELETE FROM transactions",
        "TRUNCATE transactions",
        "UPDATE transactions SET amount = amount + 1",
        "UPDATE transactions SET to_account = from_account",
        "UPDATE transactions SET answer = NULL",
        "UPDATE accounts SET balance = -1 WHERE kind = 'wallet'",
        "UPDATE accounts SET held = balance + 1 WHERE kind = 'wallet'",
    ],
)
async def test_database_constraints_reject_tampering(ledger: LedgerDriver, statement: str) -> None:
    await create_history(ledger)
    with pytest.raises(asyncpg.IntegrityConstraintViolationError):
        await ledger.database.execute(statement)


#: Claim -> the statement that breaks it.
TAMPERING_SQL = {
    "every balance is the sum of its entries": (
        "UPDATE accounts SET balance = balance + 1 WHERE kind = 'wallet'"
    ),
    "every entry refers to two existing accounts": (
        "UPDATE entries SET credit_account = 5 WHERE position = 1"
    ),
    "every entry belongs to a completed transaction": (
        "UPDATE transactions SET status = 'failed' WHERE type = 'refund'"
    ),
    "transaction amounts and fees match their entries": (
        "UPDATE transactions SET fee_amount = 3 WHERE type = 'pos_payment'"
    ),
    "no account is below its minimum balance": (
        "ALTER TABLE accounts DROP CONSTRAINT never_overdrawn;"
        "UPDATE accounts SET balance = -1 WHERE kind = 'wallet'"
    ),
    "held funds match payments under review and open recalls": (
        "UPDATE accounts SET held = 1 WHERE kind = 'wallet'"
    ),
    "amounts given back match the refunds and reversals and never exceed the original": (
        "UPDATE transactions SET refunded_amount = 1 WHERE type = 'pos_payment'"
    ),
    "reversals return fees and commissions in proportion": (
        "DELETE FROM entries WHERE debit_account = (SELECT id FROM accounts WHERE kind = 'fees')"
        " AND transaction_id IN (SELECT id FROM transactions WHERE type = 'reversal')"
    ),
    "recalls match their transfers and reversals": (
        "UPDATE recalls SET reversal_id = NULL WHERE status = 'returned'"
    ),
    "daily and monthly usage matches the amounts sent": (
        "UPDATE accounts SET month_used = 0 WHERE kind = 'wallet'"
    ),
    "daily spending of limited cards matches their payments": (
        "UPDATE cards SET day_spent = day_spent + 1"
    ),
    "commission is paid once on cash that is deposited and withdrawn": (
        "UPDATE cash_matches SET amount = amount + 1"
    ),
    "every wallet, float, settlement and clearing account has a holder": (
        "INSERT INTO accounts (id, kind, owner_id, holder_name, public_name, currency, checked)"
        " VALUES (9, 'float', 9, 'Aminata Kamara', 'Aminata K.', 'SLE', true)"
    ),
    "payouts in transit match requested and submitted payouts": (
        "INSERT INTO payouts SELECT 9, 'processor', 9, 9, 9, 5, 0, 'SLE', 'requested', 'PO9', NULL,"
        " 1, NULL, NULL, now(), now()"
    ),
    "every payout matches its transaction": (
        "INSERT INTO payouts SELECT 9, 'processor', 9, 9, 9, 5, 0, 'SLE', 'paid', 'PO9', NULL,"
        " min(id), NULL, NULL, now(), now() FROM transactions"
    ),
    "transfers to other books match their transactions": (
        "INSERT INTO book_transfers (id, book, recipient_id, recipient_name, sender_name, status,"
        " next_attempt_at, created_at)"
        " SELECT min(id), 'south', 'sub_0800000000000', 'Fatu S.', 'Aminata K.', 'returned', now(),"
        " now() FROM transactions WHERE type = 'transfer_p2p'"
    ),
    "batches match their lines and transactions": (
        "INSERT INTO batches (id, name, status, paid, currency, created_by, created_at, updated_at)"
        " VALUES (9, 'Salaries', 'completed', 1, 'SLE', 9, now(), now())"
    ),
    "overview totals match the transactions": (
        "UPDATE figures SET fees = fees + 1 WHERE type = 'refund'"
    ),
}


async def list_broken_claims(database: Database) -> dict[str, Any]:
    async with database.connection() as connection:
        verification = await verify(connection)
    assert verification.is_valid == (not any(finding.broken for finding in verification.findings))
    return {
        finding.invariant: finding.examples for finding in verification.findings if finding.broken
    }


async def list_invariants_broken_by(
    sql: str,
    database_url: str,
    database: Database,
    create: Callable[[LedgerDriver], Awaitable[None]] = create_history,
) -> dict[str, Any]:
    """Tamper with a valid history and return the invariants that no longer hold."""
    ledger = await LedgerDriver.open(database_url, database)
    try:
        await create(ledger)
        assert await list_broken_claims(database) == {}
        await database.execute(
            f"SET session_replication_role = replica; {sql}; SET session_replication_role = origin"
        )
        return await list_broken_claims(database)
    finally:
        await ledger.close()


@pytest.mark.parametrize("invariant", INVARIANTS)
async def test_verify_finds_each_broken_invariant(
    database_url: str, database: Database, invariant: str
) -> None:
    invariants_broken_by = await list_invariants_broken_by(
        TAMPERING_SQL[invariant], database_url, database
    )
    assert invariant in invariants_broken_by


CASH_CLAIM = "commission is paid once on cash that is deposited and withdrawn"


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE cash_matches SET amount = amount + 1",
        "UPDATE cash_matches SET matched_id = transaction_id",
        "UPDATE cash_matches SET matched_id = 5",
        "UPDATE cash_matches SET transaction_id = 5",
        "UPDATE cash_matches SET amount = 50 * 100",
        "UPDATE transactions SET completed_at = NULL WHERE type = 'agent_cashout'",
        "UPDATE transactions SET from_account = 5 WHERE type = 'agent_cashin'",
        "INSERT INTO cash_matches SELECT matched_id, transaction_id, 3001, matched_at"
        " FROM cash_matches",
    ],
)
async def test_verify_finds_forged_cash_matches(
    database_url: str, database: Database, forgery: str
) -> None:
    assert CASH_CLAIM in await list_invariants_broken_by(forgery, database_url, database)


BOOK_CLAIM = "transfers to other books match their transactions"


async def create_book_transfers(ledger: LedgerDriver) -> None:
    await create_history(ledger)
    await send_to_other_book(ledger)
    refused = await send_to_other_book(ledger)
    reversal = Reversal(original_id=refused, amount=None, channel="partner", is_refused=True)
    (await ledger.submit(reversal)).require_accepted()


#: Forged row, and what `verify` says about it. The first transfer is completed, the second one is
#: reversed.
BOOK_FORGERIES = {
    "DELETE FROM book_transfers WHERE id = (SELECT min(id) FROM book_transfers)": (
        "transaction completed without a transfer to another book"
    ),
    "DELETE FROM book_transfers WHERE id = (SELECT max(id) FROM book_transfers)": (
        "transaction reversed without a transfer to another book"
    ),
    "UPDATE book_transfers SET id = 5 WHERE id = (SELECT min(id) FROM book_transfers)": (
        "transfer pending, transaction is missing of type "
    ),
    "INSERT INTO book_transfers (id, book, recipient_id, recipient_name, sender_name, status,"
    " next_attempt_at, created_at)"
    " SELECT id, 'south', 'sub_1', 'Fatu S.', 'Aminata K.', 'pending', now(), now()"
    " FROM transactions WHERE type = 'refund'": "transfer pending, transaction is missing of type ",
    "UPDATE book_transfers SET status = 'returned'"
    " WHERE id = (SELECT min(id) FROM book_transfers)": (
        "transfer returned, transaction completed of type transfer_p2p"
    ),
    "UPDATE book_transfers SET status = 'delivered'"
    " WHERE id = (SELECT max(id) FROM book_transfers)": (
        "transfer delivered, transaction reversed of type transfer_p2p"
    ),
}


@pytest.mark.parametrize("forgery", BOOK_FORGERIES)
async def test_verify_finds_forged_transfers_to_other_books(
    database_url: str, database: Database, forgery: str
) -> None:
    broken = await list_invariants_broken_by(forgery, database_url, database, create_book_transfers)
    examples = {example.partition(": ")[2] for example in broken[BOOK_CLAIM]}
    assert BOOK_FORGERIES[forgery] in examples
