"""Compliance reviews: holds, releases, rejections, alerts and declines."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from builders.ledger import AUDIT, PIN, LedgerDriver, build_command
from builders.transfers import HELD_AMOUNT, create_sender_and_receiver, submit_transfer
from tapgate.ledger import chart
from tapgate.ledger.commands import LedgerCommand, Outcome, ReviewDecision, TransactionResult
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code


async def get_balance_and_held(ledger: LedgerDriver, owner: int) -> tuple[int, int]:
    row = await ledger.database.fetchrow(
        "SELECT balance, held FROM accounts WHERE owner_id = $1", owner
    )
    assert row is not None
    return row["balance"], row["held"]


async def list_alerts(ledger: LedgerDriver) -> list[Any]:
    rows = await ledger.database.fetch(
        "SELECT alert_type, review, occurrences, status FROM alerts ORDER BY id"
    )
    return [tuple(row) for row in rows]


async def test_held_funds_cannot_be_spent_and_are_released(ledger: LedgerDriver) -> None:
    sender, receiver = await create_sender_and_receiver(ledger)
    result = (await submit_transfer(ledger, sender, receiver)).require_accepted()
    fee = 3_000_00
    assert (result.status, result.payer_available) == ("under_review", 400_000_00 - fee)
    assert await get_balance_and_held(ledger, sender) == (1_000_000_00, HELD_AMOUNT + fee)
    assert await get_balance_and_held(ledger, receiver) == (0, 0)
    declined = await submit_transfer(ledger, sender, receiver, 400_000_00)
    assert declined.code == Code.INSUFFICIENT_FUNDS
    release = ReviewDecision(transaction_id=result.transaction_id, release=True)
    assert (await ledger.submit(release)).require_accepted().status == "completed"
    assert await get_balance_and_held(ledger, sender) == (400_000_00 - fee, 0)
    assert await get_balance_and_held(ledger, receiver) == (HELD_AMOUNT, 0)
    assert (await ledger.submit(release)).code == Code.ALREADY_RESOLVED
    assert await list_alerts(ledger) == [("AMOUNT_THRESHOLD", True, 1, "open")]


async def test_rejecting_a_held_transaction_returns_the_funds(ledger: LedgerDriver) -> None:
    sender, receiver = await create_sender_and_receiver(ledger)
    result = (await submit_transfer(ledger, sender, receiver)).require_accepted()
    reject = ReviewDecision(transaction_id=result.transaction_id, release=False)
    decided = (await ledger.submit(reject)).require_accepted()
    assert (decided.status, decided.details) == ("failed", {"failure_code": "COMPLIANCE_REJECTED"})
    assert await get_balance_and_held(ledger, sender) == (1_000_000_00, 0)
    row = await ledger.database.fetchrow("SELECT * FROM transactions WHERE type = 'transfer_p2p'")
    assert row is not None
    assert (row["status"], row["failure_code"]) == ("failed", "COMPLIANCE_REJECTED")


async def test_release_fails_and_returns_the_funds_if_the_receiver_cannot_be_credited(
    ledger: LedgerDriver,
) -> None:
    sender, receiver = await create_sender_and_receiver(ledger)
    first = (await submit_transfer(ledger, sender, receiver)).require_accepted().transaction_id
    await ledger.database.execute(
        "UPDATE accounts SET status = 'blocked' WHERE owner_id = $1", receiver
    )
    outcome = await ledger.submit(ReviewDecision(transaction_id=first, release=True))
    assert outcome.require_accepted().details == {"failure_code": "SUBSCRIBER_BLOCKED"}
    await ledger.database.execute("UPDATE accounts SET status = 'active'")
    second = (await submit_transfer(ledger, sender, receiver)).require_accepted().transaction_id
    await ledger.database.execute("UPDATE account_rules SET max_balance = 1")
    ledger.ledger.invalidate_rules()
    outcome = await ledger.submit(ReviewDecision(transaction_id=second, release=True))
    assert outcome.require_accepted().details == {"failure_code": "MAX_BALANCE_EXCEEDED"}
    assert await get_balance_and_held(ledger, sender) == (1_000_000_00, 0)


async def test_released_payment_is_credited_to_the_merchant(ledger: LedgerDriver) -> None:
    payer, _ = await create_sender_and_receiver(ledger)
    merchant, card = await ledger.create_processor(), await ledger.create_card(payer)
    command = build_command(chart.POS_PAYMENT, card, merchant, HELD_AMOUNT)
    held_transaction_id = (await ledger.submit(command)).require_accepted().transaction_id
    await ledger.submit(ReviewDecision(transaction_id=held_transaction_id, release=True))
    assert await get_balance_and_held(ledger, merchant) == (HELD_AMOUNT - 6_000_00, 0)
    row = await ledger.database.fetchrow(
        "SELECT * FROM transactions WHERE id = $1", held_transaction_id
    )
    assert row is not None
    assert (row["from_balance"], row["to_balance"]) == (400_000_00, HELD_AMOUNT - 6_000_00)


async def test_review_decision_on_an_unknown_transaction_is_rejected(ledger: LedgerDriver) -> None:
    outcome = await ledger.submit(ReviewDecision(transaction_id=1, release=True))
    assert outcome.code == Code.TRANSACTION_NOT_FOUND


async def test_hourly_count_rule_alerts_and_daily_count_rule_declines(ledger: LedgerDriver) -> None:
    sender, receiver = await create_sender_and_receiver(ledger)
    ledger_commands = [build_command(chart.TRANSFER, sender, receiver, 1) for _ in range(25)]
    outcomes = [await ledger.submit(command) for command in ledger_commands[:5]]
    outcomes += await ledger.submit_batch(ledger_commands[5:15])  # also within one batch
    outcomes += [await ledger.submit(command) for command in ledger_commands[15:]]
    codes = [outcome.code for outcome in outcomes]
    assert codes == [None] * 20 + [Code.COMPLIANCE_REJECTED] * 5
    assert await list_alerts(ledger) == [
        ("TRANSACTION_COUNT", False, 10, "open"),
        ("TRANSACTION_COUNT", False, 5, "open"),
    ]


async def test_cumulative_amount_rule_declines_above_its_threshold(ledger: LedgerDriver) -> None:
    sender, receiver = await create_sender_and_receiver(ledger)
    await ledger.database.execute(
        """INSERT INTO compliance_rules
               (id, name, type, transaction_types, threshold, window_seconds, action, severity)
           VALUES (1, 'Sum', 'CUMULATIVE_AMOUNT', '{transfer_p2p}', 1000, 60, 'block', 'LOW')"""
    )
    assert (await submit_transfer(ledger, sender, receiver, 600)).code is None
    assert (await submit_transfer(ledger, sender, receiver, 401)).code == Code.COMPLIANCE_REJECTED
    assert (await submit_transfer(ledger, sender, receiver, 400)).code is None


async def test_decline_for_insufficient_funds_raises_no_alert(ledger: LedgerDriver) -> None:
    _, sender = await create_sender_and_receiver(ledger)
    receiver = await ledger.create_subscriber()
    assert (await submit_transfer(ledger, sender, receiver)).code == Code.INSUFFICIENT_FUNDS
    assert await list_alerts(ledger) == []


async def test_failed_transactions_do_not_count_toward_compliance_rules(
    ledger: LedgerDriver,
) -> None:
    sender, receiver = await create_sender_and_receiver(ledger)
    for _ in range(21):
        assert (await submit_transfer(ledger, receiver, sender, 1)).code == Code.INSUFFICIENT_FUNDS
    await ledger.deposit(await ledger.get_account_id(receiver), 10_00)
    assert (await submit_transfer(ledger, receiver, sender, 1)).code is None


async def test_before_commit_runs_in_the_review_decisions_database_transaction(
    ledger: LedgerDriver,
) -> None:
    sender, receiver = await create_sender_and_receiver(ledger)
    held_transaction_id = (
        (await submit_transfer(ledger, sender, receiver)).require_accepted().transaction_id
    )
    statuses: list[str] = []

    async def resolve_alerts(
        tx: Transaction, command: LedgerCommand, result: TransactionResult
    ) -> None:
        assert command == decision
        status = await tx.fetchval(
            "SELECT status FROM transactions WHERE id = $1", held_transaction_id
        )
        statuses.extend((result.status, status))
        await tx.execute("UPDATE alerts SET status = 'resolved'")

    ledger.before_commit = resolve_alerts
    decision = ReviewDecision(transaction_id=held_transaction_id, release=True, audit=AUDIT)
    assert (await ledger.submit(decision)).require_accepted().status == "completed"
    assert statuses == ["completed", "completed"]
    assert await list_alerts(ledger) == [("AMOUNT_THRESHOLD", True, 1, "resolved")]
    assert (await ledger.submit(decision)).code == Code.ALREADY_RESOLVED
    assert len(statuses) == 2, "the hook must not run for a rejected decision"


@pytest.mark.parametrize("error", [ApiError(Code.ALREADY_RESOLVED), ValueError()])
async def test_failing_before_commit_fails_only_its_own_review_decision(
    ledger: LedgerDriver, error: Exception
) -> None:
    sender, receiver = await create_sender_and_receiver(ledger)
    held_transaction_id = (
        (await submit_transfer(ledger, sender, receiver)).require_accepted().transaction_id
    )

    async def raise_error(*_: object) -> None:
        raise error

    ledger.before_commit = raise_error
    ledger_commands = [
        build_command(chart.TRANSFER, sender, receiver, 1),
        ReviewDecision(transaction_id=held_transaction_id, release=True, audit=AUDIT),
        build_command(chart.TRANSFER, sender, receiver, 2),
    ]
    with capture_logs() as log_entries:
        tasks = [asyncio.create_task(ledger.submit(command)) for command in ledger_commands]
        first, decided, last = await asyncio.gather(*tasks, return_exceptions=True)
    assert [entry["event"] for entry in log_entries] == ["ledger.command_failed"]
    assert isinstance(first, Outcome)
    assert isinstance(last, Outcome)
    assert (first.code, last.code) == (None, None)
    assert isinstance(decided, ApiError)
    assert decided.code == Code.INTERNAL_ERROR
    assert await get_balance_and_held(ledger, sender) == (1_000_000_00 - 3, HELD_AMOUNT + 3_000_00)


async def test_release_fails_if_the_receiving_card_is_no_longer_active(
    ledger: LedgerDriver,
) -> None:
    sender, receiver = await create_sender_and_receiver(ledger)
    serial = await ledger.create_card(receiver)
    outcome = await ledger.submit(build_command(chart.TRANSFER_P2P, sender, serial, HELD_AMOUNT))
    held = outcome.require_accepted()
    assert held.status == "under_review"
    await ledger.database.execute("UPDATE cards SET status = 'LOST' WHERE serial = $1", serial)
    decided = await ledger.submit(ReviewDecision(transaction_id=held.transaction_id, release=True))
    assert decided.require_accepted().status == "failed"
    assert decided.require_accepted().details == {"failure_code": "CARD_NOT_ACTIVE"}
    assert await get_balance_and_held(ledger, sender) == (1_000_000_00, 0)
    assert await get_balance_and_held(ledger, receiver) == (0, 0)


#: What a payment uses up: the wallet's daily and monthly limits, the card's daily limit and the
#: no-PIN allowance, and held funds.
_SELECT_USAGE = """
    SELECT day_used, month_used, held, day_spent, day_unpinned
    FROM accounts JOIN cards ON cards.account_id = accounts.id WHERE serial = $1"""


async def hold_payments(ledger: LedgerDriver) -> None:
    """Hold all card payments for review. The no-PIN limit is 20.00, and 100.00 per day."""
    await ledger.database.execute("UPDATE account_rules SET no_pin_limit = 2000")
    await ledger.database.execute(
        """UPDATE compliance_rules SET threshold = 0, transaction_types = '{pos_payment}'
           WHERE type = 'AMOUNT_THRESHOLD' AND action = 'review'"""
    )
    ledger.ledger.invalidate_rules()


async def submit_card_payment(
    ledger: LedgerDriver, card: str, merchant: int, amount: int, pin: str | None = None
) -> Outcome:
    return await ledger.submit(
        build_command(
            chart.POS_PAYMENT,
            card,
            merchant,
            amount,
            payer_pin=pin,
            pin_policy="above_no_pin_limit",
        )
    )


@pytest.mark.parametrize("pin", [None, PIN])
@pytest.mark.parametrize("child_card", [{}, {"daily_limit": 500_00, "pin": PIN}])
async def test_rejected_review_restores_everything_the_payment_used(
    ledger: LedgerDriver, pin: str | None, child_card: dict[str, Any]
) -> None:
    payer, merchant = await ledger.create_subscriber(1_000_00), await ledger.create_processor()
    card = await ledger.create_card(payer, **child_card)
    await submit_card_payment(ledger, card, merchant, 15_00)
    await hold_payments(ledger)
    before = await ledger.database.fetchrow(_SELECT_USAGE, card)
    held = (await submit_card_payment(ledger, card, merchant, 20_00, pin)).require_accepted()
    assert held.status == "under_review"
    assert await ledger.database.fetchrow(_SELECT_USAGE, card) != before
    await ledger.submit(ReviewDecision(transaction_id=held.transaction_id, release=False))
    assert await ledger.database.fetchrow(_SELECT_USAGE, card) == before


async def test_rejected_reviews_restore_the_no_pin_allowance(ledger: LedgerDriver) -> None:
    await hold_payments(ledger)
    payer, merchant = await ledger.create_subscriber(1_000_00), await ledger.create_processor()
    card = await ledger.create_card(payer)
    for _ in range(10):
        held = (await submit_card_payment(ledger, card, merchant, 20_00)).require_accepted()
        await ledger.submit(ReviewDecision(transaction_id=held.transaction_id, release=False))
    for _ in range(5):
        held = (await submit_card_payment(ledger, card, merchant, 20_00)).require_accepted()
        await ledger.submit(ReviewDecision(transaction_id=held.transaction_id, release=True))
    # A released payment has used the allowance.
    assert (await submit_card_payment(ledger, card, merchant, 20_00)).code == Code.PIN_REQUIRED


async def test_rejected_review_after_the_card_was_linked_again_leaves_no_negative_usage(
    ledger: LedgerDriver,
) -> None:
    await hold_payments(ledger)
    payer, merchant = await ledger.create_subscriber(1_000_00), await ledger.create_processor()
    card = await ledger.create_card(payer)
    held = (await submit_card_payment(ledger, card, merchant, 20_00)).require_accepted()
    await ledger.database.execute("UPDATE cards SET day_spent = 0, day_unpinned = 0")
    await ledger.submit(ReviewDecision(transaction_id=held.transaction_id, release=False))
    row = await ledger.database.fetchrow("SELECT day_spent, day_unpinned FROM cards")
    assert row is not None
    assert tuple(row) == (0, 0)
