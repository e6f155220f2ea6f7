"""Ledger engine: batching, isolation of failing commands, lost connections, backpressure."""

import asyncio
from typing import Any

import asyncpg
import pytest

from builders.ledger import (
    PIN,
    WRONG_PIN,
    LedgerDriver,
    build_command,
    build_p2p,
    is_correct_pin,
    remove_limits,
)
from tapgate.ledger import chart, commands
from tapgate.ledger.accounts import lock_account
from tapgate.ledger.commands import Command, ReviewDecision
from tapgate.ledger.engine import group_commit, load
from tapgate.ledger.pins.pin_lockout import PinState
from tapgate.runtime.store.server_status import get_server_status
from tapgate_client.errors import ApiError, Code


async def build_transfers(ledger: LedgerDriver, count: int, **more: Any) -> list[Command]:
    """Build transfers between separate pairs of wallets."""
    return [
        build_command(
            chart.TRANSFER,
            await ledger.create_subscriber(10_00),
            await ledger.create_subscriber(),
            1_00,
            **more,
        )
        for _ in range(count)
    ]


async def test_concurrent_commands_share_a_batch(ledger: LedgerDriver) -> None:
    commands = await build_transfers(ledger, 40)
    outcomes = await asyncio.gather(*(ledger.submit(command) for command in commands))
    assert {outcome.code for outcome in outcomes} == {None}
    assert ledger.ledger.batch_stats.commands == 40
    assert ledger.ledger.batch_stats.batches <= 3
    assert ledger.ledger.batch_stats.largest_batch >= 20


async def test_command_whose_decision_raises_fails_alone(
    ledger: LedgerDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_for_one_pin(state: PinState, pin: str) -> bool:
        if pin == "6666":
            raise RuntimeError("key not found")
        return is_correct_pin(state, pin)

    monkeypatch.setattr(ledger.ledger, "is_correct_pin", raise_for_one_pin)
    good = await build_transfers(ledger, 2, payer_pin=PIN)
    (bad,) = await build_transfers(ledger, 1, payer_pin="6666")
    outcomes = await ledger.submit_batch([good[0], bad, good[1]])
    assert [outcome.code for outcome in outcomes] == [None, Code.INTERNAL_ERROR, None]


async def test_command_that_cannot_be_stored_fails_alone(ledger: LedgerDriver) -> None:
    good = await build_transfers(ledger, 5)
    (bad,) = await build_transfers(ledger, 1, context={"memo": "\0"})  # not valid PostgreSQL text
    results = await asyncio.gather(
        *(ledger.submit(command) for command in (*good, bad)), return_exceptions=True
    )
    *succeeded, failed = results
    outcomes = [outcome for outcome in succeeded if not isinstance(outcome, BaseException)]
    assert [outcome.code for outcome in outcomes] == [None] * 5
    assert isinstance(failed, ApiError)
    assert failed.code == Code.INTERNAL_ERROR


async def test_lost_connection_fails_the_batch_and_moves_no_money(
    ledger: LedgerDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = await build_transfers(ledger, 3)
    original = group_commit.write

    async def write_and_disconnect(tx: Any, *arguments: Any, commits: bool) -> None:
        await original(tx, *arguments, commits=False)
        pid = await tx.fetchval("SELECT pg_backend_pid()")
        await ledger.database.execute("SELECT pg_terminate_backend($1)", pid)

    monkeypatch.setattr(group_commit, "write", write_and_disconnect)
    results = await asyncio.gather(
        *(ledger.submit(command) for command in commands), return_exceptions=True
    )
    expected = {Code.SERVICE_UNAVAILABLE}
    assert {result.code for result in results if isinstance(result, ApiError)} == expected
    assert len([result for result in results if isinstance(result, ApiError)]) == 3
    monkeypatch.undo()
    stored_count = await ledger.database.fetchval(
        "SELECT count(*) FROM transactions WHERE channel = 'api'"
    )
    assert stored_count == 0
    assert (await ledger.submit(commands[0])).code is None


@pytest.mark.parametrize("error", [asyncpg.DeadlockDetectedError, asyncpg.UniqueViolationError])
async def test_deadlock_or_unique_violation_retries_the_batch(
    ledger: LedgerDriver, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    (command,) = await build_transfers(ledger, 1)
    original, attempts = group_commit.write, []

    async def fail_once(*arguments: Any, **options: Any) -> None:
        attempts.append(1)
        if len(attempts) == 1:
            raise error("conflict")
        await original(*arguments, **options)

    monkeypatch.setattr(group_commit, "write", fail_once)
    assert (await ledger.submit(command)).code is None
    assert len(attempts) == 2


async def test_full_queue_rejects_further_commands_immediately(
    ledger: LedgerDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger.ledger, "max_pending", 2)
    commands = await build_transfers(ledger, 10)
    results = await asyncio.gather(
        *(ledger.submit(command) for command in commands), return_exceptions=True
    )
    errors = [result for result in results if isinstance(result, ApiError)]
    assert errors
    assert {error.code for error in errors} == {Code.SERVICE_UNAVAILABLE}
    assert errors[0].headers == {"Retry-After": "1"}
    assert len(errors) < 10


async def test_canceled_caller_does_not_cancel_the_command(ledger: LedgerDriver) -> None:
    (command,) = await build_transfers(ledger, 1)
    task = asyncio.create_task(ledger.submit(command))
    await asyncio.sleep(0)
    task.cancel()
    payee = command.payee.key
    async with asyncio.timeout(30):
        while await ledger.get_balance(int(payee)) != 1_00:
            await asyncio.sleep(0.01)


async def test_stop_processes_pending_commands_and_rejects_new_ones(ledger: LedgerDriver) -> None:
    commands = await build_transfers(ledger, 10)
    tasks = [asyncio.create_task(ledger.submit(command)) for command in commands]
    await asyncio.sleep(0)
    await ledger.ledger.stop()
    assert {outcome.code for outcome in await asyncio.gather(*tasks)} == {None}
    with pytest.raises(ApiError) as raised:
        await ledger.submit(commands[0])
    assert raised.value.code == Code.SERVICE_UNAVAILABLE


async def test_server_status_is_unavailable_after_the_ledger_stops(ledger: LedgerDriver) -> None:
    assert not (await get_server_status(ledger.ledger_database)).is_read_only
    await ledger.ledger.stop()
    with pytest.raises(ApiError):
        await get_server_status(ledger.ledger_database)


async def test_batches_that_debit_and_credit_the_same_merchants_do_not_deadlock(
    ledger: LedgerDriver,
) -> None:
    """One batch debits the merchant that the other batch credits, and vice versa.

    Accounts are locked in a fixed order, so the batches cannot wait for each other.
    """
    merchants = [await ledger.create_processor(100_00) for _ in range(2)]
    payers = [await ledger.create_card(await ledger.create_subscriber(100_00)) for _ in range(2)]
    receivers = [await ledger.create_subscriber() for _ in range(2)]

    def build_batch(first: int, second: int) -> list[Command]:
        return [
            build_command(chart.PROCESSOR_TRANSFER, merchants[first], receivers[first], 1_00),
            build_command(chart.POS_PAYMENT, payers[first], merchants[second], 1_00),
        ]

    for _ in range(20):
        await asyncio.gather(
            ledger.submit_batch(build_batch(0, 1)), ledger.submit_batch(build_batch(1, 0))
        )
    assert ledger.ledger.batch_stats.retries == 0


async def test_command_by_account_id_locks_all_accounts_of_its_owner(ledger: LedgerDriver) -> None:
    """An agent has two accounts and one PIN, so PIN attempts on both must be serialized."""
    agent, customer = await ledger.create_agent(), await ledger.create_subscriber()
    accounts = [
        await ledger.get_account_id(agent, kind) for kind in (chart.FLOAT, chart.COMMISSION)
    ]
    wrong_pin_commands = [
        build_command(
            chart.TRANSFER, commands.account_party(account), customer, 1_00, payer_pin=WRONG_PIN
        )
        for account in accounts
    ]
    for locked_account, command in zip(accounts, reversed(wrong_pin_commands), strict=True):
        async with ledger.database.transaction() as tx:
            await lock_account(tx, locked_account)
            submitted = asyncio.create_task(ledger.submit(command))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.shield(submitted), 0.1)
        assert (await submitted).code == Code.INVALID_PIN


async def test_review_decision_retries_if_the_transaction_appears_during_load(
    ledger: LedgerDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulates a transaction created after accounts were locked, so its payee is not locked."""
    await remove_limits(ledger)
    sender = await ledger.create_subscriber(2_000_000_00)
    receiver = await ledger.create_subscriber()
    held = (await ledger.submit(build_p2p(sender, receiver, 600_000_00))).require_accepted()
    assert held.status == "under_review"
    account_id = await ledger.get_account_id(receiver)
    original = load.lock_accounts

    async def omit_payee_once(*arguments: Any) -> Any:
        monkeypatch.setattr(load, "lock_accounts", original)
        return [row for row in await original(*arguments) if row["id"] != account_id]

    monkeypatch.setattr(load, "lock_accounts", omit_payee_once)
    release = ReviewDecision(transaction_id=held.transaction_id, release=True)
    assert (await ledger.submit(release)).code is None
    assert ledger.ledger.batch_stats.retries == 1


@pytest.mark.parametrize(
    ("kind", "lock"), [(chart.POS_PAYMENT, "execute_ahead"), (chart.TRANSFER_P2P, "lock_accounts")]
)
async def test_card_linked_during_load_retries_the_batch(
    ledger: LedgerDriver, monkeypatch: pytest.MonkeyPatch, kind: str, lock: str
) -> None:
    """The newly linked card's account is not locked, so the batch starts over."""
    payer, card = await ledger.create_subscriber(10_00), await ledger.create_card(None)
    is_payment = kind == chart.POS_PAYMENT
    payee = await (ledger.create_processor() if is_payment else ledger.create_subscriber())
    account_id = await ledger.get_account_id(payer)
    original = getattr(load, lock)

    async def lock_and_link_card(tx: Any, *arguments: Any) -> Any:
        accounts = await original(tx, *arguments)
        await tx.execute("SELECT 1")  # executes what was sent ahead
        await ledger.database.execute(
            """UPDATE cards SET status = 'ACTIVE', type = 'PARENT', account_id = $2,
                      subscriber_id = $3, pin_holder_id = $3 WHERE serial = $1""",
            card,
            account_id,
            payer,
        )
        return accounts

    monkeypatch.setattr(load, lock, lock_and_link_card)
    command = build_command(kind, card, payee, 1_00, payer_pin=PIN)
    assert (await ledger.submit(command)).code is None
    assert ledger.ledger.batch_stats.retries == 1
