"""Transaction, card, daily, monthly and balance limits, exact to the minor unit."""

from datetime import UTC, datetime, timedelta
from typing import Any

from builders.ledger import PIN, LedgerDriver, build_command, build_refund
from tapgate.ledger import chart
from tapgate.ledger.commands import Outcome, ReviewDecision
from tapgate_client.errors import Code


async def set_limits(ledger: LedgerDriver, **limits: int) -> None:
    for name, amount in limits.items():
        await ledger.database.execute(f"UPDATE account_rules SET {name} = $1", amount)
    ledger.ledger.invalidate_rules()


async def submit_transfer(ledger: LedgerDriver, sender: int, receiver: int, amount: int) -> Outcome:
    return await ledger.submit(build_command(chart.TRANSFER, sender, receiver, amount))


async def submit_payment(
    ledger: LedgerDriver, card: str, merchant: int, amount: int, **fields: Any
) -> Outcome:
    return await ledger.submit(build_command(chart.POS_PAYMENT, card, merchant, amount, **fields))


async def test_transaction_limit_is_inclusive(ledger: LedgerDriver) -> None:
    sender = await ledger.create_subscriber(1_000_000_00)
    receiver = await ledger.create_subscriber()
    outcome = await submit_transfer(ledger, sender, receiver, 50_000_01)
    assert outcome.code == Code.TRANSACTION_LIMIT_EXCEEDED
    assert outcome.details == {"limit": "50000.00", "used": "0.00", "attempted": "50000.01"}
    assert (await submit_transfer(ledger, sender, receiver, 50_000_00)).code is None


async def test_daily_limit_resets_at_midnight_in_the_platform_timezone(
    ledger: LedgerDriver,
) -> None:
    await set_limits(ledger, daily_limit=100)
    sender, receiver = await ledger.create_subscriber(10_00), await ledger.create_subscriber()
    assert (await submit_transfer(ledger, sender, receiver, 99)).code is None
    outcome = await submit_transfer(ledger, sender, receiver, 2)
    assert (outcome.code, outcome.details) == (
        Code.DAILY_LIMIT_EXCEEDED,
        {"limit": "1.00", "used": "0.99", "attempted": "0.02"},
    )
    assert (await submit_transfer(ledger, sender, receiver, 1)).code is None
    ledger.clock.now = datetime(2026, 3, 10, 23, 59, 59, 999_000, tzinfo=UTC)
    assert (await submit_transfer(ledger, sender, receiver, 1)).code == Code.DAILY_LIMIT_EXCEEDED
    ledger.clock.now += timedelta(milliseconds=1)
    assert (await submit_transfer(ledger, sender, receiver, 100)).code is None


async def test_clock_set_back_does_not_reset_the_daily_limit(ledger: LedgerDriver) -> None:
    await set_limits(ledger, daily_limit=100)
    sender, receiver = await ledger.create_subscriber(10_00), await ledger.create_subscriber()
    midnight = datetime(2026, 3, 11, tzinfo=UTC)
    ledger.clock.now = midnight
    assert (await submit_transfer(ledger, sender, receiver, 100)).code is None
    ledger.clock.now = midnight - timedelta(seconds=1)
    assert (await submit_transfer(ledger, sender, receiver, 1)).code == Code.DAILY_LIMIT_EXCEEDED
    ledger.clock.now = midnight + timedelta(days=1)
    assert (await submit_transfer(ledger, sender, receiver, 100)).code is None


async def test_monthly_limit_resets_on_the_first_of_the_month(ledger: LedgerDriver) -> None:
    await set_limits(ledger, daily_limit=100, monthly_limit=150)
    sender, receiver = await ledger.create_subscriber(10_00), await ledger.create_subscriber()
    assert (await submit_transfer(ledger, sender, receiver, 100)).code is None
    ledger.clock.now += timedelta(days=1)
    outcome = await submit_transfer(ledger, sender, receiver, 51)
    assert (outcome.code, outcome.details) == (
        Code.MONTHLY_LIMIT_EXCEEDED,
        {"limit": "1.50", "used": "1.00", "attempted": "0.51"},
    )
    assert (await submit_transfer(ledger, sender, receiver, 50)).code is None
    ledger.clock.now = datetime(2026, 4, 1, tzinfo=UTC)
    assert (await submit_transfer(ledger, sender, receiver, 100)).code is None


async def test_child_card_has_its_own_daily_limit(ledger: LedgerDriver) -> None:
    parent, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    child = await ledger.create_card(parent, daily_limit=10_00, pin="4321")
    assert (await submit_payment(ledger, child, merchant, 9_99, payer_pin="4321")).code is None
    outcome = await submit_payment(ledger, child, merchant, 2, payer_pin="4321")
    assert (outcome.code, outcome.details) == (
        Code.CARD_LIMIT_EXCEEDED,
        {"limit": "10.00", "used": "9.99", "attempted": "0.02"},
    )
    parent_card = await ledger.create_card(parent)
    assert (await submit_payment(ledger, parent_card, merchant, 20_00, payer_pin=PIN)).code is None
    ledger.clock.now += timedelta(days=1)
    assert (await submit_payment(ledger, child, merchant, 10_00, payer_pin="4321")).code is None


async def test_card_limit_applies_when_the_clock_is_behind_the_wallets_usage_day(
    ledger: LedgerDriver,
) -> None:
    parent, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    child = await ledger.create_card(parent, daily_limit=10_00, pin="4321")
    parent_card = await ledger.create_card(parent)
    midnight = datetime(2026, 3, 11, tzinfo=UTC)
    ledger.clock.now = midnight
    assert (await submit_payment(ledger, parent_card, merchant, 1_00, payer_pin=PIN)).code is None
    ledger.clock.now = midnight - timedelta(seconds=2)
    assert (await submit_payment(ledger, child, merchant, 10_00, payer_pin="4321")).code is None
    result = await submit_payment(ledger, child, merchant, 1, payer_pin="4321")
    assert result.code == Code.CARD_LIMIT_EXCEEDED


async def test_maximum_balance_applies_to_receivers_except_for_refunds(
    ledger: LedgerDriver,
) -> None:
    await set_limits(ledger, max_balance=100_00)
    sender, receiver = await ledger.create_subscriber(100_00), await ledger.create_subscriber(60_00)
    outcome = await submit_transfer(ledger, sender, receiver, 40_01)
    assert (outcome.code, outcome.details) == (
        Code.MAX_BALANCE_EXCEEDED,
        {"limit": "100.00", "used": "60.00", "attempted": "40.01", "party": "receiver"},
    )
    merchant, card = await ledger.create_processor(), await ledger.create_card(receiver)
    payment = (await submit_payment(ledger, card, merchant, 10_00)).require_accepted()
    assert (await submit_transfer(ledger, sender, receiver, 50_00)).code is None
    refund = build_refund(merchant, payment.transaction_id, None)
    assert (await ledger.submit(refund)).code is None
    assert await ledger.get_balance(receiver) == 110_00


async def test_refund_restores_the_limits_of_the_payments_day_and_month(
    ledger: LedgerDriver,
) -> None:
    await set_limits(ledger, daily_limit=100, monthly_limit=200)
    parent, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor(50_00)
    child = await ledger.create_card(parent, daily_limit=100, pin="4321")

    async def refund(transaction: int, amount: int | None) -> None:
        command = build_refund(merchant, transaction, amount)
        assert (await ledger.submit(command)).code is None

    async def pay(amount: int) -> Outcome:
        return await submit_payment(ledger, child, merchant, amount, payer_pin="4321")

    first = (await pay(100)).require_accepted().transaction_id
    assert (await pay(1)).code == Code.CARD_LIMIT_EXCEEDED
    await refund(first, 40)
    assert (await pay(40)).code is None
    assert (await pay(1)).code == Code.CARD_LIMIT_EXCEEDED

    ledger.clock.now += timedelta(days=1)
    await refund(first, 60)  # yesterday's payment: only the monthly limit is restored
    assert (await pay(100)).code is None
    assert (await pay(1)).code == Code.CARD_LIMIT_EXCEEDED
    ledger.clock.now += timedelta(days=1)
    assert (await pay(61)).code == Code.MONTHLY_LIMIT_EXCEEDED
    assert (await pay(60)).code is None


async def test_held_transaction_counts_toward_limits_until_rejected(ledger: LedgerDriver) -> None:
    await set_limits(ledger, max_transaction=600_000_00, daily_limit=600_000_00)
    await set_limits(ledger, monthly_limit=600_000_00, max_balance=10_000_000_00)
    sender = await ledger.create_subscriber(2_000_000_00)
    receiver = await ledger.create_subscriber()
    held = (await submit_transfer(ledger, sender, receiver, 600_000_00)).require_accepted()
    assert held.status == "under_review"
    assert (await submit_transfer(ledger, sender, receiver, 1)).code == Code.DAILY_LIMIT_EXCEEDED
    await ledger.submit(ReviewDecision(transaction_id=held.transaction_id, release=False))
    assert (await submit_transfer(ledger, sender, receiver, 1)).code is None
