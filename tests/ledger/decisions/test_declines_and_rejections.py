"""Ledger declines and rejections: error codes, storage and check order."""

from datetime import timedelta

import pytest

from builders.ledger import (
    PIN,
    WRONG_PIN,
    LedgerDriver,
    build_command,
    build_refund,
    build_request_key,
)
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, Party
from tapgate_client.errors import Code


async def list_failure_codes(ledger: LedgerDriver) -> list[str]:
    rows = await ledger.database.fetch(
        "SELECT failure_code FROM transactions WHERE status = 'failed' ORDER BY id"
    )
    return [row[0] for row in rows]


async def set_account_status(ledger: LedgerDriver, owner_id: int, status: str) -> None:
    await ledger.database.execute(
        "UPDATE accounts SET status = $2 WHERE owner_id = $1", owner_id, status
    )


def build_p2p(sender: int, payee: Party, amount: int = 1_00, **more: object) -> Command:
    return build_command(chart.TRANSFER_P2P, sender, payee, amount, **more)


@pytest.mark.parametrize(
    ("payer", "code"),
    [
        (commands.card_party("NONE"), Code.CARD_NOT_FOUND),
        (commands.subscriber_party(1), Code.SUBSCRIBER_NOT_FOUND),
        (commands.agent_party(1), Code.AGENT_NOT_FOUND),
        (commands.commission_party(1), Code.AGENT_NOT_FOUND),
        (commands.processor_party(1), Code.PROCESSOR_NOT_FOUND),
        (commands.partner_party(1), Code.PARTNER_NOT_FOUND),
        (commands.account_party(1), Code.ACCOUNT_NOT_FOUND),
    ],
)
async def test_unknown_party_is_rejected_and_not_stored(
    ledger: LedgerDriver, payer: Party, code: Code
) -> None:
    subscriber = commands.subscriber_party(await ledger.create_subscriber(10_00))
    for command in (
        build_command(
            chart.TRANSFER, payer, subscriber, 1_00, idempotency_key=build_request_key("one")
        ),
        build_command(
            chart.TRANSFER, subscriber, payer, 1_00, idempotency_key=build_request_key("one")
        ),
    ):
        assert (await ledger.submit(command)).code == code
    assert await list_failure_codes(ledger) == []


async def test_transfer_to_the_senders_own_card_is_rejected(ledger: LedgerDriver) -> None:
    sender = await ledger.create_subscriber(10_00)
    child = await ledger.create_card(sender, daily_limit=5_00, pin="4321")
    outcome = await ledger.submit(build_p2p(sender, commands.card_party(child)))
    assert outcome.code == Code.SELF_TRANSFER
    assert await list_failure_codes(ledger) == []


async def test_wallets_only_command_cannot_debit_an_agent(ledger: LedgerDriver) -> None:
    agent, subscriber = await ledger.create_agent(10_00), await ledger.create_subscriber()
    outcome = await ledger.submit(
        build_command(
            chart.TRANSFER, commands.agent_party(agent), subscriber, 1_00, wallets_only=True
        )
    )
    assert outcome.code == Code.FORBIDDEN


async def test_agent_cannot_transfer_to_an_agent_that_is_not_a_sub_agent(
    ledger: LedgerDriver,
) -> None:
    agent, other_agent = await ledger.create_agent(10_00), await ledger.create_agent()
    outcome = await ledger.submit(build_command(chart.AGENT_TRANSFER, agent, other_agent, 1_00))
    assert outcome.code == Code.FORBIDDEN


async def test_missing_required_pin_is_rejected_and_not_stored(ledger: LedgerDriver) -> None:
    sender, receiver = await ledger.create_subscriber(10_00), await ledger.create_subscriber()
    command = build_p2p(sender, commands.subscriber_party(receiver), pin_policy="required")
    assert (await ledger.submit(command)).code == Code.PIN_REQUIRED
    assert await list_failure_codes(ledger) == []


async def test_card_payments_without_pin_are_capped_per_payment_and_at_five_times_that_per_day(
    ledger: LedgerDriver,
) -> None:
    payer, merchant = await ledger.create_subscriber(10_000_00), await ledger.create_processor()
    card, other_card = await ledger.create_card(payer), await ledger.create_card(payer)

    async def pay(serial: str, amount: int, pin: str | None = None) -> Code | None:
        outcome = await ledger.submit(
            build_command(
                chart.POS_PAYMENT,
                serial,
                merchant,
                amount,
                payer_pin=pin,
                pin_policy="above_no_pin_limit",
            )
        )
        return outcome.code

    assert await pay(card, 500_01) == Code.PIN_REQUIRED
    for _ in range(5):
        assert await pay(card, 500_00) is None
    assert await pay(card, 1) == Code.PIN_REQUIRED
    assert await pay(card, 1, PIN) is None
    assert await pay(other_card, 1) is None
    ledger.clock.now += timedelta(days=1)
    assert await pay(card, 500_00) is None
    assert await list_failure_codes(ledger) == []


async def test_three_wrong_pins_lock_the_pin_for_30_minutes(ledger: LedgerDriver) -> None:
    sender, receiver = await ledger.create_subscriber(10_00), await ledger.create_subscriber()

    async def send(pin: str) -> tuple[Code | None, object]:
        command = build_p2p(sender, commands.subscriber_party(receiver), payer_pin=pin)
        outcome = await ledger.submit(command)
        return outcome.code, outcome.details

    assert await send(WRONG_PIN) == (Code.INVALID_PIN, {"attempts_remaining": 2})
    assert await send(PIN) == (None, None)  # a correct PIN resets the count
    for remaining in (2, 1, 0):
        assert await send(WRONG_PIN) == (Code.INVALID_PIN, {"attempts_remaining": remaining})
    locked = (Code.ACCOUNT_LOCKED, {"locked_until": "2026-03-10T12:30:00.000Z"})
    assert await send(PIN) == locked
    ledger.clock.now += timedelta(minutes=29, seconds=59)
    assert await send(WRONG_PIN) == locked
    ledger.clock.now += timedelta(seconds=1)
    assert await send(WRONG_PIN) == (Code.INVALID_PIN, {"attempts_remaining": 2})
    assert await send(PIN) == (None, None)
    assert await list_failure_codes(ledger) == []


async def test_child_card_has_its_own_pin_and_failure_count(ledger: LedgerDriver) -> None:
    parent, merchant = await ledger.create_subscriber(100_00), await ledger.create_processor()
    child = await ledger.create_card(parent, daily_limit=50_00, pin="4321")
    parent_card = await ledger.create_card(parent)

    async def pay(card: str, pin: str) -> Code | None:
        outcome = await ledger.submit(
            build_command(chart.POS_PAYMENT, card, merchant, 1_00, payer_pin=pin)
        )
        return outcome.code

    for _ in range(3):
        assert await pay(child, PIN) == Code.INVALID_PIN
    assert await pay(child, "4321") == Code.ACCOUNT_LOCKED
    assert await pay(parent_card, PIN) is None


async def test_blocked_or_closed_party_and_blocked_receiving_card_are_declined(
    ledger: LedgerDriver,
) -> None:
    sender, receiver = await ledger.create_subscriber(10_00), await ledger.create_subscriber()
    card = await ledger.create_card(receiver)
    for owner, party in ((sender, "sender"), (receiver, "receiver")):
        for status in ("blocked", "closed"):
            await set_account_status(ledger, owner, status)
            outcome = await ledger.submit(build_p2p(sender, commands.card_party(card)))
            assert (outcome.code, outcome.details) == (Code.SUBSCRIBER_BLOCKED, {"party": party})
        await set_account_status(ledger, owner, "active")
    await ledger.database.execute("UPDATE cards SET status = 'BLOCKED'")
    outcome = await ledger.submit(build_p2p(sender, commands.card_party(card)))
    assert (outcome.code, outcome.details) == (Code.CARD_NOT_ACTIVE, {"party": "receiver"})
    assert await list_failure_codes(ledger) == ["SUBSCRIBER_BLOCKED"] * 4 + ["CARD_NOT_ACTIVE"]


async def test_unassigned_and_expired_cards_are_declined(ledger: LedgerDriver) -> None:
    payer, merchant = await ledger.create_subscriber(10_00), await ledger.create_processor()
    unlinked = await ledger.create_card(None)
    expired = await ledger.create_card(payer, expires_at=ledger.clock())
    for card in (unlinked, expired):
        outcome = await ledger.submit(
            build_command(
                chart.POS_PAYMENT,
                card,
                merchant,
                1_00,
                payer_pin=PIN,
                pin_policy="above_no_pin_limit",
            )
        )
        assert (outcome.code, outcome.details) == (Code.CARD_NOT_ACTIVE, {"party": "sender"})
    assert len(await list_failure_codes(ledger)) == 2


async def test_blocked_agents_processors_and_partners_cannot_send_or_receive(
    ledger: LedgerDriver,
) -> None:
    subscriber = commands.subscriber_party(await ledger.create_subscriber(100_00))
    agent, merchant = await ledger.create_agent(100_00), await ledger.create_processor(100_00)
    partner = await ledger.create_partner(100_00)
    for owner, party, code in (
        (agent, commands.agent_party(agent), Code.AGENT_NOT_ACTIVE),
        (merchant, commands.processor_party(merchant), Code.PROCESSOR_SUSPENDED),
        (partner, commands.partner_party(partner), Code.PARTNER_SUSPENDED),
    ):
        await set_account_status(ledger, owner, "blocked")
        outcome = await ledger.submit(build_command(chart.TRANSFER, party, subscriber, 1_00))
        assert (outcome.code, outcome.details) == (code, {"party": "sender"})
        outcome = await ledger.submit(build_command(chart.TRANSFER, subscriber, party, 1_00))
        assert (outcome.code, outcome.details) == (code, {"party": "receiver"})


async def test_cash_out_checks_the_agent_status_before_limits(ledger: LedgerDriver) -> None:
    agent, customer = await ledger.create_agent(), await ledger.create_subscriber()
    await set_account_status(ledger, agent, "blocked")
    outcome = await ledger.submit(
        build_command(chart.AGENT_CASHOUT, customer, agent, 60_000_00, payer_pin=PIN, payee_pin=PIN)
    )
    assert (outcome.code, outcome.details) == (Code.AGENT_NOT_ACTIVE, {"party": "receiver"})


async def test_insufficient_funds_and_insufficient_float_are_declined(ledger: LedgerDriver) -> None:
    sender, receiver = await ledger.create_subscriber(100_00), await ledger.create_subscriber()
    outcome = await ledger.submit(build_p2p(sender, commands.subscriber_party(receiver), 500_00))
    assert outcome.code == Code.INSUFFICIENT_FUNDS
    assert outcome.details == {"available": 100.0, "required": 507.5}
    agent = await ledger.create_agent(1_00)
    outcome = await ledger.submit(build_command(chart.AGENT_CASHIN, agent, receiver, 1_01))
    assert outcome.code == Code.INSUFFICIENT_FLOAT
    assert await list_failure_codes(ledger) == ["INSUFFICIENT_FUNDS", "INSUFFICIENT_FLOAT"]


async def test_invalid_refunds_are_rejected_and_not_stored(ledger: LedgerDriver) -> None:
    payer = await ledger.create_subscriber(100_00)
    merchant = await ledger.create_processor()
    other_merchant = await ledger.create_processor()
    card = await ledger.create_card(payer)
    receiver = await ledger.create_subscriber()

    async def refund(processor: int, transaction: int) -> Code | None:
        outcome = await ledger.submit(
            build_refund(
                processor,
                transaction,
                None,
                idempotency_key=build_request_key(f"refund {transaction}"),
            )
        )
        return outcome.code

    payment_command = build_command(chart.POS_PAYMENT, card, merchant, 50_00)
    payment_id = (await ledger.submit(payment_command)).require_accepted().transaction_id
    assert await refund(other_merchant, payment_id) == Code.TRANSACTION_NOT_FOUND
    assert await refund(merchant, 12345) == Code.TRANSACTION_NOT_FOUND
    assert (await ledger.submit(payment_command)).code is None
    declined = (await ledger.submit(payment_command)).result
    assert declined is not None
    assert await refund(merchant, declined.transaction_id) == Code.NOT_REFUNDABLE
    transfer = build_command(chart.PROCESSOR_TRANSFER, merchant, receiver, 1_00)
    transfer_id = (await ledger.submit(transfer)).require_accepted().transaction_id
    assert await refund(merchant, transfer_id) == Code.NOT_REFUNDABLE
    assert await refund(other_merchant, transfer_id) == Code.TRANSACTION_NOT_FOUND
    unlinked = await ledger.create_card(None)
    unlinked_payment = build_command(chart.POS_PAYMENT, unlinked, merchant, 1_00)
    declined = (await ledger.submit(unlinked_payment)).result
    assert declined is not None
    assert await refund(merchant, declined.transaction_id) == Code.NOT_REFUNDABLE
    await set_account_status(ledger, payer, "closed")
    assert await refund(merchant, payment_id) == Code.NOT_REFUNDABLE
    await set_account_status(ledger, payer, "blocked")
    assert await refund(merchant, payment_id) is None
    refund_id = await ledger.database.fetchval("SELECT id FROM transactions WHERE type = 'refund'")
    assert await refund(merchant, refund_id) == Code.NOT_REFUNDABLE
    assert await list_failure_codes(ledger) == ["INSUFFICIENT_FUNDS", "CARD_NOT_ACTIVE"]


async def test_checks_run_in_a_fixed_order(ledger: LedgerDriver) -> None:
    """The cause of each failure is removed in turn, so that the next check fails."""
    sender, receiver = await ledger.create_subscriber(), await ledger.create_subscriber()
    card = await ledger.create_card(receiver)
    await set_account_status(ledger, sender, "blocked")
    await ledger.database.execute("UPDATE cards SET status = 'BLOCKED'")
    await ledger.database.execute(
        """INSERT INTO compliance_rules (id, name, type, transaction_types, threshold, action,
                                         severity)
           VALUES (1, 'None', 'AMOUNT_THRESHOLD', '{transfer_p2p}', 0, 'block', 'LOW')"""
    )
    await ledger.database.execute("UPDATE account_rules SET max_transaction = 50")
    await ledger.database.execute("UPDATE account_rules SET daily_limit = 60")
    await ledger.database.execute("UPDATE account_rules SET monthly_limit = 70")
    await ledger.database.execute("UPDATE account_rules SET max_balance = 80")

    async def send(pin: str | None = PIN, to: str = card) -> Code | None:
        ledger.ledger.invalidate_rules()
        command = build_p2p(
            sender, commands.card_party(to), 1_00, payer_pin=pin, pin_policy="required"
        )
        return (await ledger.submit(command)).code

    assert await send(to="NONE") == Code.CARD_NOT_FOUND
    assert await send(pin=None) == Code.PIN_REQUIRED
    assert await send(pin=WRONG_PIN) == Code.INVALID_PIN
    for fix, code in (
        ("UPDATE accounts SET status = 'active'", Code.SUBSCRIBER_BLOCKED),
        ("UPDATE account_rules SET max_transaction = 100", Code.TRANSACTION_LIMIT_EXCEEDED),
        ("UPDATE account_rules SET monthly_limit = 100, daily_limit = 100", None),
        ("UPDATE compliance_rules SET status = 'inactive'", Code.COMPLIANCE_REJECTED),
        ("funds", Code.INSUFFICIENT_FUNDS),
        ("UPDATE cards SET status = 'ACTIVE'", Code.CARD_NOT_ACTIVE),
        ("UPDATE account_rules SET max_balance = 100", Code.MAX_BALANCE_EXCEEDED),
    ):
        assert await send() == (code or Code.DAILY_LIMIT_EXCEEDED)
        if fix == "funds":
            await ledger.deposit(await ledger.get_account_id(sender), 1_02)
        else:
            await ledger.database.execute(fix)
    assert await send() is None


async def test_failed_payout_without_an_amount_is_not_stored(ledger: LedgerDriver) -> None:
    agent = await ledger.create_agent()
    await set_account_status(ledger, agent, "blocked")
    payout = build_command(chart.COMMISSION_PAYOUT, agent, agent, None)
    assert (await ledger.submit(payout)).code == Code.AGENT_NOT_ACTIVE
    assert await list_failure_codes(ledger) == []
