"""Receipts: enqueued once, in the batch's database transaction, and only for subscribers."""

import asyncio
import random
from typing import Any

import pytest

from ledger.builders import PIN, WRONG_PIN, LedgerDriver, build_command, build_request_key
from ledger.command_builders import (
    build_cash_in,
    build_fund,
    build_p2p,
    build_payment,
    build_refund,
    remove_limits,
)
from tapgate.errors import Code
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, LedgerCommand, Party, ReviewDecision
from tapgate.ledger.receipts import MONEY_RECEIVED, PAYMENT_MADE

ReceiptRow = tuple[int, str, int]

RECEIPT_KINDS = (MONEY_RECEIVED, PAYMENT_MADE)


def enable_receipts(books: LedgerDriver, *kinds: str) -> None:
    books.ledger._receipt_kinds = frozenset(kinds)
    books.ledger._invalidate_rules()


async def list_receipts(books: LedgerDriver) -> list[ReceiptRow]:
    rows = await books.database.fetch(
        "SELECT transaction_id, kind, subscriber_id FROM notices ORDER BY transaction_id, kind"
    )
    return [tuple(row) for row in rows]


async def submit_and_get_id(books: LedgerDriver, order: LedgerCommand) -> int:
    return (await books.submit(order)).require_accepted().transaction_id


@pytest.mark.parametrize("kinds", [(), (MONEY_RECEIVED,), (PAYMENT_MADE,), RECEIPT_KINDS])
async def test_transfer_enqueues_only_the_enabled_receipt_kinds(
    books: LedgerDriver, kinds: tuple[str, ...]
) -> None:
    sender, receiver = await books.create_subscriber(100_00), await books.create_subscriber()
    enable_receipts(books, *kinds)
    number = await submit_and_get_id(books, build_p2p(sender, receiver, 10_00))
    both = [(number, MONEY_RECEIVED, receiver), (number, PAYMENT_MADE, sender)]
    assert await list_receipts(books) == [one for one in both if one[1] in kinds]


async def test_receipts_are_disabled_by_default(books: LedgerDriver) -> None:
    sender, receiver = await books.create_subscriber(100_00), await books.create_subscriber()
    await submit_and_get_id(books, build_p2p(sender, receiver, 10_00))
    assert await list_receipts(books) == []


async def test_only_subscribers_get_receipts(books: LedgerDriver) -> None:
    one, other = await books.create_subscriber(1_000_00), await books.create_subscriber()
    agent, processor, partner = (
        await books.create_agent(500_00),
        await books.create_processor(500_00),
        await books.create_partner(500_00),
    )
    enable_receipts(books, *RECEIPT_KINDS)
    subscriber = commands.subscriber_party

    async def moved(kind: str, payer: Party, payee: Party, **more: Any) -> list[tuple[str, int]]:
        number = await submit_and_get_id(books, build_command(kind, payer, payee, 10_00, **more))
        return [
            (kind, who)
            for transaction, kind, who in await list_receipts(books)
            if transaction == number
        ]

    received, paid = (MONEY_RECEIVED, other), (PAYMENT_MADE, one)
    shop = commands.processor_party(processor)
    assert await moved(chart.TRANSFER_P2P, subscriber(one), subscriber(other)) == [received, paid]
    assert await moved(chart.TRANSFER, subscriber(one), subscriber(other)) == [received, paid]
    assert await moved(chart.TRANSFER, subscriber(one), shop) == [paid]
    assert await moved(chart.TRANSFER, shop, subscriber(other)) == []
    assert await moved(chart.TRANSFER, commands.CASH_PARTY, subscriber(other)) == []
    assert await moved(chart.POS_PAYMENT, subscriber(one), shop) == [paid]
    assert await moved(chart.ONLINE_PAYMENT, subscriber(one), shop) == [paid]
    handed_out = await moved(
        chart.AGENT_CASHOUT, subscriber(one), commands.agent_party(agent), payee_pin=PIN
    )
    assert handed_out == [paid]
    handed_in = await moved(
        chart.AGENT_CASHIN, commands.agent_party(agent), subscriber(other), payer_pin=PIN
    )
    assert handed_in == [received]
    assert await moved(chart.PARTNER_FUND, commands.partner_party(partner), subscriber(other)) == [
        received
    ]
    assert await moved(chart.PROCESSOR_TRANSFER, shop, subscriber(other)) == [received]
    assert await moved(chart.AGENT_FUND, commands.CASH_PARTY, commands.agent_party(agent)) == []
    assert (
        await moved(chart.PARTNER_DEPOSIT, commands.CASH_PARTY, commands.partner_party(partner))
        == []
    )


async def test_each_refund_enqueues_a_receipt_for_the_original_payer(books: LedgerDriver) -> None:
    payer, processor = await books.create_subscriber(100_00), await books.create_processor(50_00)
    payment = await submit_and_get_id(books, build_payment(payer, processor, 30_00))
    enable_receipts(books, *RECEIPT_KINDS)
    part = await submit_and_get_id(books, build_refund(processor, payment, 10_00))
    rest = await submit_and_get_id(books, build_refund(processor, payment, None))
    assert (
        await books.submit(build_refund(processor, payment, 1_00))
    ).code == Code.ALREADY_REFUNDED
    assert await list_receipts(books) == [
        (part, MONEY_RECEIVED, payer),
        (rest, MONEY_RECEIVED, payer),
    ]


async def test_card_payment_receipt_goes_to_the_wallet_owner(books: LedgerDriver) -> None:
    parent, processor = await books.create_subscriber(100_00), await books.create_processor()
    card = await books.create_card(parent, daily_limit=50_00, pin="8350")
    enable_receipts(books, *RECEIPT_KINDS)
    number = await submit_and_get_id(
        books,
        build_command(
            chart.POS_PAYMENT, commands.card_party(card), commands.processor_party(processor), 5_00
        ),
    )
    assert await list_receipts(books) == [(number, PAYMENT_MADE, parent)]


async def test_payer_on_the_messaging_channel_gets_no_receipt(books: LedgerDriver) -> None:
    sender, receiver = await books.create_subscriber(100_00), await books.create_subscriber()
    enable_receipts(books, *RECEIPT_KINDS)
    order = Command(
        type=chart.TRANSFER_P2P,
        channel="messaging",
        payer=commands.subscriber_party(sender),
        payee=commands.subscriber_party(receiver),
        amount=10_00,
    )
    number = await submit_and_get_id(books, order)
    assert await list_receipts(books) == [(number, MONEY_RECEIVED, receiver)]


@pytest.mark.parametrize("channel", ["api", "messaging"])
async def test_held_transaction_enqueues_receipts_once_on_release(
    books: LedgerDriver, channel: str
) -> None:
    """A chat payer also gets a receipt, because the chat could only report the hold."""
    await remove_limits(books)
    sender, receiver = await books.create_subscriber(2_000_000_00), await books.create_subscriber()
    enable_receipts(books, *RECEIPT_KINDS)
    order = Command(
        type=chart.TRANSFER_P2P,
        channel=channel,
        payer=commands.subscriber_party(sender),
        payee=commands.subscriber_party(receiver),
        amount=600_000_00,
    )
    released, rejected = (
        await submit_and_get_id(books, order),
        await submit_and_get_id(books, order),
    )
    assert await list_receipts(books) == []
    for number in (released, rejected):
        await submit_and_get_id(
            books, ReviewDecision(transaction_id=number, release=number == released)
        )
        again = ReviewDecision(transaction_id=number, release=True)
        assert (await books.submit(again)).code == Code.ALREADY_RESOLVED
    assert await list_receipts(books) == [
        (released, MONEY_RECEIVED, receiver),
        (released, PAYMENT_MADE, sender),
    ]


async def test_failed_release_enqueues_no_receipt(books: LedgerDriver) -> None:
    await remove_limits(books)
    sender, receiver = await books.create_subscriber(1_000_000_00), await books.create_subscriber()
    enable_receipts(books, *RECEIPT_KINDS)
    number = await submit_and_get_id(books, build_p2p(sender, receiver, 600_000_00))
    await books.database.execute(
        "UPDATE accounts SET status = 'closed' WHERE owner_id = $1", receiver
    )
    settled = (
        await books.submit(ReviewDecision(transaction_id=number, release=True))
    ).require_accepted()
    assert settled.status == "failed"
    assert await list_receipts(books) == []


async def test_declines_rejections_and_replays_enqueue_no_receipt(books: LedgerDriver) -> None:
    sender, receiver = await books.create_subscriber(100_00), await books.create_subscriber()
    enable_receipts(books, *RECEIPT_KINDS)
    wrong = await books.submit(build_p2p(sender, receiver, 10_00, payer_pin=WRONG_PIN))
    assert wrong.code == Code.INVALID_PIN
    assert (await books.submit(build_p2p(sender, receiver, 500_00))).code == Code.INSUFFICIENT_FUNDS
    assert await list_receipts(books) == []
    first = build_p2p(sender, receiver, 10_00, idempotency_key=build_request_key("one"))
    number = await submit_and_get_id(books, first)
    assert (await books.submit(first)).replayed
    assert len(await list_receipts(books)) == 2
    await books.database.execute("DELETE FROM notices")  # simulates delivered receipts
    assert await submit_and_get_id(books, first) == number
    assert await list_receipts(books) == []


async def test_concurrent_identical_requests_enqueue_receipts_once(books: LedgerDriver) -> None:
    sender, receiver = await books.create_subscriber(100_00), await books.create_subscriber()
    enable_receipts(books, *RECEIPT_KINDS)
    same = build_p2p(sender, receiver, 1_00, idempotency_key=build_request_key("one"))
    one_by_one = [books.submit(same) for _ in range(20)]
    in_batches = [books.submit_batch([same] * 3) for _ in range(4)]
    await asyncio.gather(*one_by_one, *in_batches)
    number = (await books.submit(same)).require_accepted().transaction_id
    assert await list_receipts(books) == [
        (number, MONEY_RECEIVED, receiver),
        (number, PAYMENT_MADE, sender),
    ]


async def test_rolled_back_batch_enqueues_no_receipt(
    books: LedgerDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tapgate.ledger import engine

    sender, receiver = await books.create_subscriber(100_00), await books.create_subscriber()
    enable_receipts(books, *RECEIPT_KINDS)
    write = engine.write

    async def interrupted(*arguments: Any) -> None:
        await write(*arguments)
        raise ZeroDivisionError

    monkeypatch.setattr(engine, "write", interrupted)
    with pytest.raises(ZeroDivisionError):
        await books.submit_batch([build_p2p(sender, receiver, 10_00)])
    assert await list_receipts(books) == []


async def test_merchant_payments_add_no_statement_when_only_money_received_is_enabled(
    books: LedgerDriver, statements: list[str]
) -> None:
    payers = [await books.create_subscriber(100_00) for _ in range(3)]
    processor = await books.create_processor()
    payments = [build_payment(payer, processor, 1_00) for payer in payers for _ in range(3)]
    await books.submit_batch(payments)
    quiet = list(statements)
    enable_receipts(books, MONEY_RECEIVED)
    statements.clear()
    await books.submit_batch(payments)
    assert statements == quiet
    assert await list_receipts(books) == []


async def test_batch_enqueues_all_receipts_in_one_statement(
    books: LedgerDriver, statements: list[str]
) -> None:
    senders = [await books.create_subscriber(100_00) for _ in range(3)]
    receiver, processor = await books.create_subscriber(), await books.create_processor()
    orders = [build_p2p(sender, receiver, 1_00) for sender in senders for _ in range(3)]
    orders += [build_payment(sender, processor, 1_00) for sender in senders]
    await books.submit_batch(orders)
    quiet = len(statements)
    enable_receipts(books, *RECEIPT_KINDS)
    statements.clear()
    await books.submit_batch(orders)
    assert len(statements) == quiet + 1
    assert len(await list_receipts(books)) == 9 * 2 + 3


#: The receipt rules restated in SQL over the final state of the ledger.
_EXPECTED_RECEIPTS_SQL = """
    SELECT t.id, 'money_received', payee.owner_id
    FROM transactions t
    JOIN accounts payer ON payer.id = t.from_account
    JOIN accounts payee ON payee.id = t.to_account AND payee.kind = 'wallet'
    WHERE t.completed_at IS NOT NULL
      AND (t.type IN ('transfer_p2p', 'agent_cashin', 'partner_fund', 'processor_transfer',
                      'refund')
           OR t.type = 'transfer' AND payer.kind = 'wallet')
    UNION ALL
    SELECT t.id, 'payment_made', payer.owner_id
    FROM transactions t JOIN accounts payer ON payer.id = t.from_account AND payer.kind = 'wallet'
    WHERE t.completed_at IS NOT NULL AND (t.channel <> 'messaging' OR t.held > 0)
      AND t.type IN ('pos_payment', 'online_payment', 'agent_cashout', 'transfer_p2p', 'transfer')
    ORDER BY 1, 2"""


class RandomCommands:
    """Random commands of every type, including replays and declines."""

    def __init__(self, books: LedgerDriver, seed: int) -> None:
        self._ledger_driver = books
        self._random = random.Random(seed)
        self._wallets: list[int] = []
        self._agent = self._processor = self._partner = 0
        self._transaction_ids: list[LedgerCommand] = []

    async def create_accounts(self) -> None:
        books = self._ledger_driver
        self._wallets = [await books.create_subscriber(2_500_000_00) for _ in range(3)]
        self._agent = await books.create_agent(1_000_00)
        self._processor = await books.create_processor(1_000_00)
        self._partner = await books.create_partner(1_000_00)

    async def build_batch(self) -> list[LedgerCommand]:
        """Build commands whose refund and review targets are mostly, but not always, valid."""
        rows = await self._ledger_driver.database.fetch(
            """SELECT id FROM transactions
               ORDER BY status = 'under_review' DESC, type LIKE '%_payment' DESC, id DESC
               LIMIT 20"""
        )
        made = [row["id"] for row in rows]
        return [self._build_command(made) for _ in range(self._random.randint(1, 8))]

    def _build_command(self, made: list[int]) -> LedgerCommand:
        choose = self._random.choice
        if self._transaction_ids and self._random.random() < 0.2:
            return choose(self._transaction_ids)
        if self._random.random() < 0.2:
            return ReviewDecision(transaction_id=choose(made), release=choose([True, True, False]))
        order = self._build_transaction(made)
        self._transaction_ids.append(order)
        return order

    def _build_transaction(self, made: list[int]) -> Command:
        choose = self._random.choice
        one, other = self._random.sample(self._wallets, 2)
        amount = choose([1_00, 20_00, 300_00, 510_000_00])
        named = build_request_key(str(len(self._transaction_ids)))
        kind = choose(chart.TRANSACTION_TYPES)
        own, their = commands.subscriber_party(one), commands.subscriber_party(other)
        agent, shop = commands.agent_party(self._agent), commands.processor_party(self._processor)
        partner = commands.partner_party(self._partner)
        sides: dict[str, tuple[Party, Party]] = {
            chart.TRANSFER_P2P: (own, their),
            chart.TRANSFER: choose([(own, their), (own, shop), (agent, own), (shop, own)]),
            chart.AGENT_CASHIN: (agent, own),
            chart.AGENT_CASHOUT: (own, agent),
            chart.AGENT_FUND: (commands.CASH_PARTY, agent),
            chart.AGENT_TRANSFER: (agent, agent),
            chart.COMMISSION_PAYOUT: (commands.commission_party(self._agent), agent),
            chart.POS_PAYMENT: (own, shop),
            chart.ONLINE_PAYMENT: (own, shop),
            chart.PARTNER_FUND: (partner, own),
            chart.PARTNER_DEPOSIT: (commands.CASH_PARTY, partner),
            chart.PROCESSOR_TRANSFER: (shop, own),
            chart.REFUND: (shop, commands.CASH_PARTY),
        }
        payer, payee = sides[kind]
        return Command(
            type=kind,
            channel=choose(["api", "messaging"]),
            payer=payer,
            payee=payee,
            amount=amount,
            original_id=choose(made) if kind == chart.REFUND else None,
            idempotency_key=named,
        )


@pytest.mark.parametrize("seed", range(3))
async def test_random_commands_enqueue_exactly_the_expected_receipts(
    books: LedgerDriver, seed: int
) -> None:
    await remove_limits(books)
    await books.database.execute(
        "UPDATE compliance_rules SET status = 'inactive' WHERE action <> 'review'"
    )
    chance = RandomCommands(books, seed)
    await chance.create_accounts()
    enable_receipts(books, *RECEIPT_KINDS)
    for _ in range(50):
        await books.submit_batch(await chance.build_batch())
    due = [tuple(row) for row in await books.database.fetch(_EXPECTED_RECEIPTS_SQL)]
    assert await list_receipts(books) == due
    kinds = await books.database.fetchval(
        """SELECT count(DISTINCT (type, kind, held > 0)) FROM notices
           JOIN transactions ON transactions.id = transaction_id"""
    )
    assert kinds >= 10, "too few different ones to say anything"


async def test_agent_funding_and_payout_enqueue_no_receipts(books: LedgerDriver) -> None:
    agent, subscriber = await books.create_agent(100_00), await books.create_subscriber()
    enable_receipts(books, *RECEIPT_KINDS)
    await submit_and_get_id(books, build_fund(agent, 10_00))
    number = await submit_and_get_id(books, build_cash_in(agent, subscriber, 10_00))
    payout = build_command(
        chart.COMMISSION_PAYOUT, commands.commission_party(agent), commands.agent_party(agent), None
    )
    await submit_and_get_id(books, payout)
    assert await list_receipts(books) == [(number, MONEY_RECEIVED, subscriber)]
