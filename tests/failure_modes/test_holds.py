"""Failure mode: funds on hold are spent, move twice, or stay reserved after a timeout or crash."""

import asyncio
import sys
from collections.abc import Callable
from decimal import Decimal

import msgspec
import pytest

from builders.payments import list_alerts, resolve_alert, update_rule
from drivers import load_process
from drivers.actors import (
    Agent,
    Customer,
    Merchant,
    new_request_id,
    require_error,
    require_error_details,
    require_success,
)
from drivers.deployments import TwoGateways, TwoLedgers, wait_for_blocked_sessions
from drivers.load_process import LoadPlan
from drivers.messenger import ServicesDriver
from drivers.processes import Client, PendingResponse, count_outcomes
from harness import PIN
from tapgate.ledger.commands import ReviewDecision
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.errors import Code

INSUFFICIENT_FUNDS = (402, "INSUFFICIENT_FUNDS")


class HeldPayment:
    """A customer with a balance of 100: a payment of 80 is on hold, and 20 are available."""

    def __init__(
        self, two_gateways: TwoGateways, customer: Customer, merchant: Merchant, agent: Agent
    ) -> None:
        self.gateways = two_gateways
        self.customer = customer
        self.merchant = merchant
        self.agent = agent
        self.friend: Customer
        self.alert_id = ""

    def build_spend_requests(self, amount: str) -> dict[str, Callable[[Client], PendingResponse]]:
        """Return one request per endpoint that debits the customer."""
        customer, terminal = self.customer, self.merchant.server
        accounts = {"from_account_id": customer.account_id, "to_account_id": self.friend.account_id}
        return {
            "by POS": lambda client: terminal.with_client(client).pay(amount, customer.card, PIN),
            "in app": lambda client: terminal.with_client(client).pay_in_app(amount, customer.card),
            "by P2P": lambda client: customer.with_client(client).send_money(amount, self.friend),
            "by cash-out": lambda client: self.agent.with_client(client).cash_out(amount, customer),
            "by transfer": lambda client: self.gateways.app.with_client(client).post(
                "wallet/transfer", amount=amount, pin=PIN, **accounts
            ),
            "by an admin": lambda client: self.gateways.admin.with_client(client).post(
                "wallet/transfer", amount=amount, **accounts
            ),
        }

    async def resolve(self, decision: str) -> None:
        require_success(
            await resolve_alert(self.gateways.harness, self.alert_id, transaction_decision=decision)
        )


@pytest.fixture
async def held_payment(two_gateways: TwoGateways) -> HeldPayment:
    await update_rule(two_gateways.harness, "Large amount", threshold="50", status="active")
    held = HeldPayment(
        two_gateways,
        await two_gateways.create_customer("100"),
        await two_gateways.create_merchant(),
        await two_gateways.create_agent("100"),
    )
    held.friend = await two_gateways.create_customer()
    paid = require_success(await held.merchant.server.pay("80", held.customer.card))
    assert paid["status"] == "under_review"
    assert paid["remaining_balance"] == "20.00 SLE"
    (alert,) = await list_alerts(two_gateways.harness, subscriber_id=held.customer.id)
    held.alert_id = alert["id"]
    return held


async def test_held_funds_cannot_be_spent_through_any_endpoint(held_payment: HeldPayment) -> None:
    """Every endpoint must check the available balance, not the total balance."""
    for name, spend in held_payment.build_spend_requests("20.01").items():
        for client in held_payment.gateways.clients:
            response = await spend(client)
            assert require_error(response) == INSUFFICIENT_FUNDS, name
            assert require_error_details(response)["available"] == 20.0
    assert await held_payment.customer.get_funds() == ("20.00", "80.00")


async def test_held_funds_cannot_be_spent_in_a_chat(
    held_payment: HeldPayment, database_url: str
) -> None:
    """The chat shows the available balance, and a transfer above it moves no money."""
    services_driver = ServicesDriver(held_payment.gateways.harness, database_url)
    async with services_driver.run_messenger() as messenger:
        phone = messenger.create_phone(held_payment.customer.phone)
        assert "20.00 SLE" in await phone.send_by_bridge("balance")
        for text in (f"send 21 to {held_payment.friend.card}", "yes", PIN):
            await phone.send_by_bridge(text)
    assert await held_payment.friend.get_balance() == "0.00"
    assert await held_payment.customer.get_funds() == ("20.00", "80.00")


@pytest.mark.parametrize("decision", ["release", "reject"])
async def test_review_decision_concurrent_with_spending_does_not_spend_funds_twice(
    held_payment: HeldPayment, decision: str
) -> None:
    """Held funds must not be both released to the merchant and spent by the customer."""
    requests = held_payment.build_spend_requests("10").values()
    spends = [spend(client) for client in held_payment.gateways.clients for spend in requests]
    half = len(spends) // 2
    *first, _ = await asyncio.gather(*spends[:half], held_payment.resolve(decision))
    rest = await asyncio.gather(*spends[half:])
    responses = [*first, *rest]
    spent = sum(response.is_success for response in responses)
    assert set(count_outcomes(responses)) <= {200, INSUFFICIENT_FUNDS}
    # 20 covers two requests of 10. 100 covers nine if one of them is a P2P transfer with its fee.
    assert spent <= (2 if decision == "release" else 9)
    available, still_held = await held_payment.customer.get_funds()
    assert still_held == "0.00"
    fees = Decimal("0.15") * sum(item.is_success for item in responses[2::6])
    debited = Decimal(80 if decision == "release" else 0) + spent * 10 + fees
    assert Decimal(available) == 100 - debited


async def _require_no_locks_or_holds(database: Database) -> None:
    """Assert that no funds are held and no advisory locks (idempotency keys) remain.

    Polls for up to 30 seconds, because a terminated session releases its locks with a delay.
    """
    assert await database.fetchval("SELECT sum(held) FROM accounts") == 0
    async with asyncio.timeout(30):
        while await database.fetchval(
            """SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
               WHERE locktype = 'advisory' AND datname = current_database()"""
        ):
            await asyncio.sleep(0.01)


async def _lock_account(tx: object, customer: Customer) -> None:
    await tx.execute(
        "SELECT FROM accounts WHERE owner_id = $1 FOR UPDATE",
        ids.decode(ids.SUBSCRIBER, customer.id),
    )


async def _set_review_threshold(ledgers: TwoLedgers, threshold: int) -> None:
    await ledgers.first.database.execute(
        "UPDATE compliance_rules SET status = 'active', threshold = $1 WHERE action = 'review'",
        threshold,
    )
    ledgers.invalidate_rules()


async def test_client_disconnect_leaves_no_funds_reserved(two_gateways: TwoGateways) -> None:
    """The client disconnects while its payment waits for a lock."""
    aminata = await two_gateways.create_customer("100")
    terminal = (await two_gateways.create_merchant()).server
    database = two_gateways.harness.database
    request_ids = [new_request_id() for _ in range(10)]
    async with database.transaction() as tx:
        await _lock_account(tx, aminata)
        tasks = [
            asyncio.create_task(
                terminal.with_client(two_gateways.clients[number % 2]).pay(
                    "5", aminata.card, request_id=request_id
                )
            )
            for number, request_id in enumerate(request_ids)
        ]
        await wait_for_blocked_sessions(database, 2)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    # Each payment was executed completely or not at all, and its retry causes no second debit.
    responses = [
        await terminal.pay("5", aminata.card, request_id=request_id) for request_id in request_ids
    ]
    assert all(response.is_success for response in responses)
    assert await aminata.get_funds() == ("50.00", "0.00")
    await _require_no_locks_or_holds(database)


async def test_killed_database_session_leaves_no_funds_reserved(two_gateways: TwoGateways) -> None:
    """The session is terminated while its payment waits for the lock on the wallet."""
    aminata = await two_gateways.create_customer("100")
    terminal = (await two_gateways.create_merchant()).server
    database, request_id = two_gateways.harness.database, new_request_id()
    async with database.transaction() as tx:
        await _lock_account(tx, aminata)
        payment = asyncio.create_task(terminal.pay("60", aminata.card, request_id=request_id))
        async with asyncio.timeout(30):
            while not await tx.fetchval(
                """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'"""
            ):
                await asyncio.sleep(0.01)
        failed = await payment
    assert require_error(failed) == (503, "SERVICE_UNAVAILABLE")
    assert failed.headers["Retry-After"]
    assert await aminata.get_funds() == ("100.00", "0.00")
    await _require_no_locks_or_holds(database)
    require_success(
        await terminal.with_client(two_gateways.clients[1]).pay(
            "60", aminata.card, request_id=request_id
        )
    )
    assert await aminata.get_funds() == ("40.00", "0.00")


async def test_killed_ledger_process_leaves_no_funds_reserved(
    two_ledgers: TwoLedgers, database_url: str
) -> None:
    """A `kill -9` under load must not leave locks, holds, or partial transactions."""
    ledger, database = two_ledgers.first, two_ledgers.first.database
    await two_ledgers.set_limits(daily_limit=10**9, monthly_limit=10**9)
    wallets = [await ledger.create_subscriber(1_000_00) for _ in range(3)]
    plan = LoadPlan(
        url=database_url,
        slot=10,
        seed=1,
        wallets=wallets,
        merchants=[await ledger.create_processor()],
        agents=[await ledger.create_agent(500_00)],
        cards=[await ledger.create_card(wallet) for wallet in wallets],
        command_count=400,
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        load_process.__file__,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(msgspec.json.encode(plan))
    process.stdin.close()
    for _ in range(20):
        await process.stdout.readline()
    process.kill()
    await process.communicate()
    # The killed process's wallets can be used again.
    async with asyncio.timeout(30):
        codes = await two_ledgers.submit_concurrently(wallets[0], wallets[1], 1, times=10)
    assert codes == {None: 10}
    await _require_no_locks_or_holds(database)


async def test_stalled_database_session_blocks_a_wallet_only_until_its_idle_timeout(
    two_gateways: TwoGateways,
) -> None:
    """The session holds a row lock on the wallet, as if its process were suspended."""
    setting = "idle_in_transaction_session_timeout"
    value = await two_gateways.harness.database.fetchval(f"SHOW {setting}")
    assert value == "30s"
    aminata = await two_gateways.create_customer("100")
    terminal = (await two_gateways.create_merchant()).server
    async with two_gateways.harness.database.connection() as stalled:
        try:
            await stalled.execute("BEGIN")
            await _lock_account(stalled, aminata)
            await stalled.execute(f"SET {setting} = '300ms'")  # stalls from here on
            require_success(await terminal.pay("10", aminata.card))
        finally:
            stalled.terminate()
    assert await aminata.get_funds() == ("90.00", "0.00")


async def test_undecided_review_keeps_the_funds_on_hold(two_ledgers: TwoLedgers) -> None:
    """A hold must neither lose the money nor expire and make the money spendable."""
    ledger = two_ledgers.first
    await _set_review_threshold(two_ledgers, 50_00)
    sender, receiver = await two_ledgers.create_pair(100_00)
    held = (await two_ledgers.submit_transfer(ledger, sender, receiver, 80_00)).require_accepted()
    assert held.status == "under_review"
    # Holds do not expire: only a review decision ends them.
    two_ledgers.advance_clocks(days=400)
    for process in two_ledgers.ledgers:
        outcome = await two_ledgers.submit_transfer(process, sender, receiver, 20_01)
        assert outcome.code == Code.INSUFFICIENT_FUNDS
    decided = await two_ledgers.second.submit(
        ReviewDecision(transaction_id=held.transaction_id, release=True)
    )
    assert decided.require_accepted().status == "completed"
    assert [await ledger.get_balance(item) for item in (sender, receiver)] == [20_00, 80_00]
    await _require_no_locks_or_holds(ledger.database)
