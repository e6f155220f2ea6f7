"""Notifications: enqueued once, in the batch's database transaction, for holders with a phone."""

import asyncio
import random
from typing import Any

import pytest

from builders.ledger import (
    PIN,
    WRONG_PIN,
    LedgerDriver,
    build_cash_in,
    build_command,
    build_fund,
    build_p2p,
    build_payment,
    build_refund,
    build_request_key,
    remove_limits,
)
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, LedgerCommand, Party, ReviewDecision
from tapgate.ledger.effects.pending_notifications import (
    FLOAT_LOW,
    MONEY_RECEIVED,
    PAYMENT_MADE,
    PAYMENT_REJECTED,
    PAYMENT_RELEASED,
)
from tapgate_client.errors import Code

ReceiptRow = tuple[int, str, int]

RECEIPT_KINDS = (MONEY_RECEIVED, PAYMENT_MADE)
REVIEW_KINDS = (PAYMENT_RELEASED, PAYMENT_REJECTED)


def enable_receipts(ledger: LedgerDriver, *kinds: str) -> None:
    ledger.ledger.notification_kinds = frozenset(kinds)
    ledger.ledger.invalidate_rules()


async def list_receipts(ledger: LedgerDriver) -> list[ReceiptRow]:
    rows = await ledger.database.fetch(
        "SELECT transaction_id, kind, subscriber_id FROM notices ORDER BY 1, 2, 3"
    )
    return [tuple(row) for row in rows]


async def submit_and_get_id(ledger: LedgerDriver, command: LedgerCommand) -> int:
    return (await ledger.submit(command)).require_accepted().transaction_id


@pytest.mark.parametrize("kinds", [(), (MONEY_RECEIVED,), (PAYMENT_MADE,), RECEIPT_KINDS])
async def test_transfer_enqueues_only_the_enabled_receipt_kinds(
    ledger: LedgerDriver, kinds: tuple[str, ...]
) -> None:
    sender, receiver = await ledger.create_subscriber(100_00), await ledger.create_subscriber()
    enable_receipts(ledger, *kinds)
    transaction_id = await submit_and_get_id(ledger, build_p2p(sender, receiver, 10_00))
    both = [(transaction_id, MONEY_RECEIVED, receiver), (transaction_id, PAYMENT_MADE, sender)]
    assert await list_receipts(ledger) == [receipt for receipt in both if receipt[1] in kinds]


async def test_ledger_without_enabled_receipt_kinds_enqueues_no_receipt(
    ledger: LedgerDriver,
) -> None:
    sender, receiver = await ledger.create_subscriber(100_00), await ledger.create_subscriber()
    await submit_and_get_id(ledger, build_p2p(sender, receiver, 10_00))
    assert await list_receipts(ledger) == []


async def test_only_subscribers_get_receipts(ledger: LedgerDriver) -> None:
    sender, receiver = await ledger.create_subscriber(1_000_00), await ledger.create_subscriber()
    agent = await ledger.create_agent(500_00)
    processor = await ledger.create_processor(500_00)
    partner = await ledger.create_partner(500_00)
    enable_receipts(ledger, *RECEIPT_KINDS)
    subscriber = commands.subscriber_party

    async def submit_and_list_receipts(
        kind: str, payer: Party, payee: Party, **more: Any
    ) -> list[tuple[str, int]]:
        transaction_id = await submit_and_get_id(
            ledger, build_command(kind, payer, payee, 10_00, **more)
        )
        return [
            (kind, subscriber_id)
            for transaction, kind, subscriber_id in await list_receipts(ledger)
            if transaction == transaction_id
        ]

    received, paid = (MONEY_RECEIVED, receiver), (PAYMENT_MADE, sender)
    merchant = commands.processor_party(processor)
    found = await submit_and_list_receipts(
        chart.TRANSFER_P2P, subscriber(sender), subscriber(receiver)
    )
    assert found == [received, paid]
    found = await submit_and_list_receipts(chart.TRANSFER, subscriber(sender), subscriber(receiver))
    assert found == [received, paid]
    assert await submit_and_list_receipts(chart.TRANSFER, subscriber(sender), merchant) == [paid]
    assert await submit_and_list_receipts(chart.TRANSFER, merchant, subscriber(receiver)) == []
    found = await submit_and_list_receipts(
        chart.TRANSFER, commands.CASH_PARTY, subscriber(receiver)
    )
    assert found == []
    assert await submit_and_list_receipts(chart.POS_PAYMENT, subscriber(sender), merchant) == [paid]
    found = await submit_and_list_receipts(chart.ONLINE_PAYMENT, subscriber(sender), merchant)
    assert found == [paid]
    cash_out_receipts = await submit_and_list_receipts(
        chart.AGENT_CASHOUT, subscriber(sender), commands.agent_party(agent), payee_pin=PIN
    )
    assert cash_out_receipts == [paid]
    cash_in_receipts = await submit_and_list_receipts(
        chart.AGENT_CASHIN, commands.agent_party(agent), subscriber(receiver), payer_pin=PIN
    )
    assert cash_in_receipts == [received]
    found = await submit_and_list_receipts(
        chart.PARTNER_FUND, commands.partner_party(partner), subscriber(receiver)
    )
    assert found == [received]
    found = await submit_and_list_receipts(chart.PROCESSOR_TRANSFER, merchant, subscriber(receiver))
    assert found == [received]
    found = await submit_and_list_receipts(
        chart.AGENT_FUND, commands.CASH_PARTY, commands.agent_party(agent)
    )
    assert found == []
    found = await submit_and_list_receipts(
        chart.PARTNER_DEPOSIT, commands.CASH_PARTY, commands.partner_party(partner)
    )
    assert found == []


async def test_each_refund_enqueues_a_receipt_for_the_original_payer(ledger: LedgerDriver) -> None:
    payer, processor = await ledger.create_subscriber(100_00), await ledger.create_processor(50_00)
    payment = await submit_and_get_id(ledger, build_payment(payer, processor, 30_00))
    enable_receipts(ledger, *RECEIPT_KINDS)
    partial_refund = await submit_and_get_id(ledger, build_refund(processor, payment, 10_00))
    final_refund = await submit_and_get_id(ledger, build_refund(processor, payment, None))
    outcome = await ledger.submit(build_refund(processor, payment, 1_00))
    assert outcome.code == Code.ALREADY_REFUNDED
    assert await list_receipts(ledger) == [
        (partial_refund, MONEY_RECEIVED, payer),
        (final_refund, MONEY_RECEIVED, payer),
    ]


async def test_child_card_payment_receipt_goes_to_the_wallet_owner(ledger: LedgerDriver) -> None:
    parent, processor = await ledger.create_subscriber(100_00), await ledger.create_processor()
    card = await ledger.create_card(parent, daily_limit=50_00, pin="8350")
    enable_receipts(ledger, *RECEIPT_KINDS)
    transaction_id = await submit_and_get_id(
        ledger, build_command(chart.POS_PAYMENT, card, processor, 5_00)
    )
    assert await list_receipts(ledger) == [(transaction_id, PAYMENT_MADE, parent)]


async def test_payer_on_the_messaging_channel_gets_no_receipt(ledger: LedgerDriver) -> None:
    sender, receiver = await ledger.create_subscriber(100_00), await ledger.create_subscriber()
    enable_receipts(ledger, *RECEIPT_KINDS)
    command = Command(
        type=chart.TRANSFER_P2P,
        channel="messaging",
        payer=commands.subscriber_party(sender),
        payee=commands.subscriber_party(receiver),
        amount=10_00,
    )
    transaction_id = await submit_and_get_id(ledger, command)
    assert await list_receipts(ledger) == [(transaction_id, MONEY_RECEIVED, receiver)]


@pytest.mark.parametrize("channel", ["api", "messaging"])
async def test_both_parties_of_a_held_transaction_are_notified_once_of_the_decision(
    ledger: LedgerDriver, channel: str
) -> None:
    """They get no receipts. A chat payer is notified too: the chat reported only the hold."""
    await remove_limits(ledger)
    sender = await ledger.create_subscriber(2_000_000_00)
    receiver = await ledger.create_subscriber()
    enable_receipts(ledger, *RECEIPT_KINDS, *REVIEW_KINDS)
    command = Command(
        type=chart.TRANSFER_P2P,
        channel=channel,
        payer=commands.subscriber_party(sender),
        payee=commands.subscriber_party(receiver),
        amount=600_000_00,
    )
    released = await submit_and_get_id(ledger, command)
    rejected = await submit_and_get_id(ledger, command)
    assert await list_receipts(ledger) == []
    for transaction_id in (released, rejected):
        await submit_and_get_id(
            ledger,
            ReviewDecision(transaction_id=transaction_id, release=transaction_id == released),
        )
        again = ReviewDecision(transaction_id=transaction_id, release=True)
        assert (await ledger.submit(again)).code == Code.ALREADY_RESOLVED
    assert await list_receipts(ledger) == [
        (released, PAYMENT_RELEASED, sender),
        (released, PAYMENT_RELEASED, receiver),
        (rejected, PAYMENT_REJECTED, sender),
        (rejected, PAYMENT_REJECTED, receiver),
    ]


async def test_failed_release_notifies_both_parties_of_a_rejection_without_a_fee(
    ledger: LedgerDriver,
) -> None:
    await remove_limits(ledger)
    sender = await ledger.create_subscriber(1_000_000_00)
    receiver = await ledger.create_subscriber()
    enable_receipts(ledger, *RECEIPT_KINDS, *REVIEW_KINDS)
    transaction_id = await submit_and_get_id(ledger, build_p2p(sender, receiver, 600_000_00))
    await ledger.database.execute(
        "UPDATE accounts SET status = 'closed' WHERE owner_id = $1", receiver
    )
    result = (
        await ledger.submit(ReviewDecision(transaction_id=transaction_id, release=True))
    ).require_accepted()
    assert (result.status, result.fee) == ("failed", 0)
    assert await list_receipts(ledger) == [
        (transaction_id, PAYMENT_REJECTED, sender),
        (transaction_id, PAYMENT_REJECTED, receiver),
    ]


@pytest.mark.parametrize("kind", [chart.AGENT_CASHOUT, chart.POS_PAYMENT])
async def test_decision_notifies_agents_but_not_merchants(ledger: LedgerDriver, kind: str) -> None:
    await remove_limits(ledger)
    await ledger.database.execute(
        "UPDATE compliance_rules SET transaction_types = $1 WHERE action = 'review'", [kind]
    )
    payer = await ledger.create_subscriber(1_000_000_00)
    agent, processor = await ledger.create_agent(), await ledger.create_processor()
    enable_receipts(ledger, *REVIEW_KINDS)
    is_cash_out = kind == chart.AGENT_CASHOUT
    payee = commands.agent_party(agent) if is_cash_out else commands.processor_party(processor)
    command = build_command(kind, commands.subscriber_party(payer), payee, 600_000_00)
    transaction_id = await submit_and_get_id(ledger, command)
    await submit_and_get_id(ledger, ReviewDecision(transaction_id=transaction_id, release=False))
    receipts = await list_receipts(ledger)
    expected = [
        (transaction_id, PAYMENT_REJECTED, holder)
        for holder in ([payer, agent] if is_cash_out else [payer])
    ]
    assert receipts == expected


async def test_decision_between_accounts_of_one_agent_notifies_the_agent_once(
    ledger: LedgerDriver,
) -> None:
    await ledger.database.execute(
        """UPDATE compliance_rules SET subject = 'agent', transaction_types = '{transfer}',
                  threshold = 0 WHERE action = 'review'"""
    )
    agent = await ledger.create_agent(100_00)
    enable_receipts(ledger, *REVIEW_KINDS)
    transfer = build_command(
        chart.TRANSFER, commands.agent_party(agent), commands.commission_party(agent), 1_00
    )
    transaction_id = await submit_and_get_id(ledger, transfer)
    await submit_and_get_id(ledger, ReviewDecision(transaction_id=transaction_id, release=True))
    assert await list_receipts(ledger) == [(transaction_id, PAYMENT_RELEASED, agent)]


async def test_each_drop_below_the_low_float_threshold_notifies_the_agent(
    ledger: LedgerDriver, statements: list[str]
) -> None:
    agent, customer = await ledger.create_agent(150_00), await ledger.create_subscriber(10_00)
    processor = await ledger.create_processor()
    ledger.ledger.low_float_threshold = 100_00
    enable_receipts(ledger)
    await ledger.submit_batch([build_payment(customer, processor, 1_00)])
    baseline = list(statements)
    enable_receipts(ledger, FLOAT_LOW)
    statements.clear()
    await ledger.submit_batch([build_payment(customer, processor, 1_00)])
    assert statements == baseline  # payments without an agent cost nothing
    await submit_and_get_id(ledger, build_cash_in(agent, customer, 50_00))
    assert await list_receipts(ledger) == []  # a float equal to the threshold is not low
    first = await submit_and_get_id(ledger, build_cash_in(agent, customer, 1_00))
    await submit_and_get_id(ledger, build_cash_in(agent, customer, 1_00))
    outcomes = await ledger.submit_batch(
        [build_fund(agent, 50_00), build_cash_in(agent, customer, 60_00)]
    )
    second = outcomes[1].require_accepted().transaction_id
    assert await list_receipts(ledger) == [(first, FLOAT_LOW, agent), (second, FLOAT_LOW, agent)]


async def test_declines_rejections_and_replays_enqueue_no_receipt(ledger: LedgerDriver) -> None:
    sender, receiver = await ledger.create_subscriber(100_00), await ledger.create_subscriber()
    enable_receipts(ledger, *RECEIPT_KINDS)
    rejected = await ledger.submit(build_p2p(sender, receiver, 10_00, payer_pin=WRONG_PIN))
    assert rejected.code == Code.INVALID_PIN
    outcome = await ledger.submit(build_p2p(sender, receiver, 500_00))
    assert outcome.code == Code.INSUFFICIENT_FUNDS
    assert await list_receipts(ledger) == []
    command = build_p2p(sender, receiver, 10_00, idempotency_key=build_request_key("one"))
    transaction_id = await submit_and_get_id(ledger, command)
    assert (await ledger.submit(command)).replayed
    assert len(await list_receipts(ledger)) == 2
    await ledger.database.execute("DELETE FROM notices")  # simulates delivered receipts
    assert await submit_and_get_id(ledger, command) == transaction_id
    assert await list_receipts(ledger) == []


async def test_concurrent_identical_requests_enqueue_receipts_once(ledger: LedgerDriver) -> None:
    sender, receiver = await ledger.create_subscriber(100_00), await ledger.create_subscriber()
    enable_receipts(ledger, *RECEIPT_KINDS)
    command = build_p2p(sender, receiver, 1_00, idempotency_key=build_request_key("one"))
    single = [ledger.submit(command) for _ in range(20)]
    batches = [ledger.submit_batch([command] * 3) for _ in range(4)]
    await asyncio.gather(*single, *batches)
    transaction_id = (await ledger.submit(command)).require_accepted().transaction_id
    assert await list_receipts(ledger) == [
        (transaction_id, MONEY_RECEIVED, receiver),
        (transaction_id, PAYMENT_MADE, sender),
    ]


async def test_rolled_back_batch_enqueues_no_receipt(
    ledger: LedgerDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tapgate.ledger.engine import group_commit

    sender, receiver = await ledger.create_subscriber(100_00), await ledger.create_subscriber()
    enable_receipts(ledger, *RECEIPT_KINDS)
    write = group_commit.write

    async def write_and_fail(*arguments: Any, commits: bool) -> None:
        await write(*arguments, commits=False)
        raise ZeroDivisionError

    monkeypatch.setattr(group_commit, "write", write_and_fail)
    with pytest.raises(ZeroDivisionError):
        await ledger.submit_batch([build_p2p(sender, receiver, 10_00)])
    assert await list_receipts(ledger) == []


async def test_merchant_payments_add_no_statement_when_only_money_received_is_enabled(
    ledger: LedgerDriver, statements: list[str]
) -> None:
    payers = [await ledger.create_subscriber(100_00) for _ in range(3)]
    processor = await ledger.create_processor()
    payments = [build_payment(payer, processor, 1_00) for payer in payers for _ in range(3)]
    await ledger.submit_batch(payments)
    baseline = list(statements)
    enable_receipts(ledger, MONEY_RECEIVED)
    statements.clear()
    await ledger.submit_batch(payments)
    assert statements == baseline
    assert await list_receipts(ledger) == []


async def test_receipts_of_a_batch_add_no_statement(
    ledger: LedgerDriver, statements: list[str]
) -> None:
    senders = [await ledger.create_subscriber(100_00) for _ in range(3)]
    receiver, processor = await ledger.create_subscriber(), await ledger.create_processor()
    commands = [build_p2p(sender, receiver, 1_00) for sender in senders for _ in range(3)]
    commands += [build_payment(sender, processor, 1_00) for sender in senders]
    await ledger.submit_batch(commands)
    baseline = len(statements)
    enable_receipts(ledger, *RECEIPT_KINDS)
    statements.clear()
    await ledger.submit_batch(commands)
    assert len(statements) == baseline
    assert len(await list_receipts(ledger)) == 9 * 2 + 3


#: The expected notifications, computed from the stored transactions.
_EXPECTED_RECEIPTS_SQL = """
    SELECT t.id, 'money_received', payee.owner_id
    FROM transactions t
    JOIN accounts payer ON payer.id = t.from_account
    JOIN accounts payee ON payee.id = t.to_account AND payee.kind = 'wallet'
    WHERE t.completed_at IS NOT NULL AND t.held = 0
      AND (t.type IN ('transfer_p2p', 'agent_cashin', 'partner_fund', 'processor_transfer',
                      'refund')
           OR t.type = 'transfer' AND payer.kind = 'wallet')
    UNION ALL
    SELECT t.id, 'payment_made', payer.owner_id
    FROM transactions t JOIN accounts payer ON payer.id = t.from_account AND payer.kind = 'wallet'
    WHERE t.completed_at IS NOT NULL AND t.held = 0 AND t.channel <> 'messaging'
      AND t.type IN ('pos_payment', 'online_payment', 'agent_cashout', 'transfer_p2p', 'transfer')
    UNION ALL
    SELECT t.id, CASE t.status WHEN 'failed' THEN 'payment_rejected' ELSE 'payment_released' END,
           party.owner_id
    FROM transactions t JOIN accounts party ON party.id IN (t.from_account, t.to_account)
    WHERE t.held > 0 AND t.status <> 'under_review' AND party.kind IN ('wallet', 'float')
    ORDER BY 1, 2, 3"""


class RandomCommands:
    """Random commands of every type, including replays and declines."""

    def __init__(self, ledger: LedgerDriver, seed: int) -> None:
        self._ledger_driver = ledger
        self._random = random.Random(seed)
        self._wallets: list[int] = []
        self._agent = self._processor = self._partner = 0
        self._submitted: list[LedgerCommand] = []

    async def create_accounts(self) -> None:
        ledger = self._ledger_driver
        self._wallets = [await ledger.create_subscriber(2_500_000_00) for _ in range(3)]
        self._agent = await ledger.create_agent(1_000_00)
        self._processor = await ledger.create_processor(1_000_00)
        self._partner = await ledger.create_partner(1_000_00)

    async def build_batch(self) -> list[LedgerCommand]:
        """Build 1 to 8 commands; some refund or review targets are not eligible."""
        rows = await self._ledger_driver.database.fetch(
            """SELECT id FROM transactions
               ORDER BY status = 'under_review' DESC, type LIKE '%_payment' DESC, id DESC
               LIMIT 20"""
        )
        created = [row["id"] for row in rows]
        return [self._build_command(created) for _ in range(self._random.randint(1, 8))]

    def _build_command(self, created: list[int]) -> LedgerCommand:
        choose = self._random.choice
        if self._submitted and self._random.random() < 0.2:
            return choose(self._submitted)
        if self._random.random() < 0.2:
            return ReviewDecision(
                transaction_id=choose(created), release=choose([True, True, False])
            )
        command = self._build_transaction(created)
        self._submitted.append(command)
        return command

    def _build_transaction(self, created: list[int]) -> Command:
        choose = self._random.choice
        first_id, second_id = self._random.sample(self._wallets, 2)
        amount = choose([1_00, 20_00, 300_00, 510_000_00])
        key = build_request_key(str(len(self._submitted)))
        first, second = commands.subscriber_party(first_id), commands.subscriber_party(second_id)
        agent = commands.agent_party(self._agent)
        merchant = commands.processor_party(self._processor)
        partner = commands.partner_party(self._partner)
        parties: dict[str, tuple[Party, Party]] = {
            chart.TRANSFER_P2P: (first, second),
            chart.TRANSFER: choose(
                [(first, second), (first, merchant), (agent, first), (merchant, first)]
            ),
            chart.AGENT_CASHIN: (agent, first),
            chart.AGENT_CASHOUT: (first, agent),
            chart.AGENT_FUND: (commands.CASH_PARTY, agent),
            chart.AGENT_TRANSFER: (agent, agent),
            chart.COMMISSION_PAYOUT: (commands.commission_party(self._agent), agent),
            chart.POS_PAYMENT: (first, merchant),
            chart.ONLINE_PAYMENT: (first, merchant),
            chart.PARTNER_FUND: (partner, first),
            chart.PARTNER_DEPOSIT: (commands.CASH_PARTY, partner),
            chart.PROCESSOR_TRANSFER: (merchant, first),
            chart.REFUND: (merchant, commands.CASH_PARTY),
        }
        kind = choose([*parties])
        payer, payee = parties[kind]
        return Command(
            type=kind,
            channel=choose(["api", "messaging"]),
            payer=payer,
            payee=payee,
            amount=amount,
            original_id=choose(created) if kind == chart.REFUND else None,
            idempotency_key=key,
        )


@pytest.mark.parametrize("seed", range(3))
async def test_random_commands_enqueue_exactly_the_expected_receipts(
    ledger: LedgerDriver, seed: int
) -> None:
    await remove_limits(ledger)
    await ledger.database.execute(
        "UPDATE compliance_rules SET status = 'inactive' WHERE action <> 'review'"
    )
    random_commands = RandomCommands(ledger, seed)
    await random_commands.create_accounts()
    enable_receipts(ledger, *RECEIPT_KINDS, *REVIEW_KINDS)
    for _ in range(50):
        await ledger.submit_batch(await random_commands.build_batch())
    expected = [tuple(row) for row in await ledger.database.fetch(_EXPECTED_RECEIPTS_SQL)]
    assert await list_receipts(ledger) == expected
    kinds = await ledger.database.fetchval(
        """SELECT count(DISTINCT (type, kind, held > 0)) FROM notices
           JOIN transactions ON transactions.id = transaction_id"""
    )
    assert kinds >= 10, "the random commands produced too few kinds of receipts"


async def test_agent_funding_and_payout_enqueue_no_receipts(ledger: LedgerDriver) -> None:
    agent, subscriber = await ledger.create_agent(100_00), await ledger.create_subscriber()
    enable_receipts(ledger, *RECEIPT_KINDS)
    await submit_and_get_id(ledger, build_fund(agent, 10_00))
    transaction_id = await submit_and_get_id(ledger, build_cash_in(agent, subscriber, 10_00))
    payout = build_command(chart.COMMISSION_PAYOUT, agent, agent, None)
    await submit_and_get_id(ledger, payout)
    assert await list_receipts(ledger) == [(transaction_id, MONEY_RECEIVED, subscriber)]
