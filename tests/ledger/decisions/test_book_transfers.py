"""Transfers between books: what the ledger charges, stores, returns and refuses to undo."""

import pytest

from builders.ledger import (
    LedgerDriver,
    build_command,
    build_p2p,
    build_request_key,
    require_balanced_books,
)
from builders.reversals import build_reversal, get_usage, submit
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, NewBookTransfer, RecallRequest
from tapgate.ledger.effects.pending_notifications import REFUSED_BY_CONTEXT_KEY
from tapgate_client.errors import Code

SOUTH = NewBookTransfer(book="south", recipient_id="sub_1", recipient_name="Fatu S.")


def build_outgoing(sender: int, partner: int, amount: int) -> Command:
    payee = commands.partner_party(partner)
    return build_command(chart.TRANSFER_P2P, sender, payee, amount, book_transfer=SOUTH)


def build_incoming(partner: int, receiver: int, amount: int) -> Command:
    return build_command(chart.TRANSFER_P2P, commands.partner_party(partner), receiver, amount)


async def count_transfers(ledger: LedgerDriver) -> int:
    count: int = await ledger.database.fetchval("SELECT count(*) FROM book_transfers")
    return count


async def test_transfer_to_another_book_costs_what_a_transfer_costs(ledger: LedgerDriver) -> None:
    sender, partner = await ledger.create_subscriber(1_000_00), await ledger.create_partner()
    transfer = await submit(ledger, build_outgoing(sender, partner, 200_00))
    row = await ledger.database.fetchrow("SELECT * FROM book_transfers")
    assert (row["id"], row["book"], row["status"]) == (transfer, "south", "pending")
    assert (row["recipient_id"], row["recipient_name"]) == ("sub_1", "Fatu S.")
    assert await ledger.get_balance(partner) == 200_00
    assert await ledger.get_platform_balance(chart.FEES) == 3_00
    assert await get_usage(ledger, sender) == (200_00, 200_00)
    await require_balanced_books(ledger.database)


async def test_declined_transfer_is_not_delivered(ledger: LedgerDriver) -> None:
    sender, partner = await ledger.create_subscriber(100_00), await ledger.create_partner()
    outcome = await ledger.submit(build_outgoing(sender, partner, 200_00))
    assert outcome.code == Code.INSUFFICIENT_FUNDS
    assert await count_transfers(ledger) == 0


async def test_transfer_from_another_book_has_no_fee(ledger: LedgerDriver) -> None:
    receiver = await ledger.create_subscriber()
    partner = await ledger.create_partner(overdraft=500_00)
    await submit(ledger, build_incoming(partner, receiver, 200_00))
    assert await ledger.get_balance(receiver) == 200_00
    assert await ledger.get_balance(partner) == -200_00
    assert await ledger.get_platform_balance(chart.FEES) == 0
    outcome = await ledger.submit(build_incoming(partner, receiver, 300_01))
    assert outcome.code == Code.INSUFFICIENT_FUNDS
    await require_balanced_books(ledger.database)


async def test_only_a_refusal_returns_a_transfer_to_another_book(ledger: LedgerDriver) -> None:
    sender, partner = await ledger.create_subscriber(1_000_00), await ledger.create_partner()
    transfer = await submit(ledger, build_outgoing(sender, partner, 200_00))
    assert (await ledger.submit(build_reversal(transfer))).code == Code.NOT_REVERSIBLE
    refusal = build_reversal(transfer, is_refused=True, context={REFUSED_BY_CONTEXT_KEY: "south"})
    first, second = await ledger.submit_batch([refusal, refusal])
    assert first.code is None
    assert second.code == Code.NOT_REVERSIBLE
    assert await ledger.get_balance(sender) == 1_000_00
    assert await ledger.get_balance(partner) == 0
    assert await ledger.get_platform_balance(chart.FEES) == 0
    assert await get_usage(ledger, sender) == (0, 0)
    await require_balanced_books(ledger.database)


@pytest.mark.parametrize("is_refused", [False, True])
async def test_transfer_from_another_book_is_not_reversible(
    ledger: LedgerDriver, is_refused: bool
) -> None:
    receiver = await ledger.create_subscriber()
    partner = await ledger.create_partner(overdraft=500_00)
    transfer = await submit(ledger, build_incoming(partner, receiver, 200_00))
    outcome = await ledger.submit(build_reversal(transfer, is_refused=is_refused))
    assert outcome.code == Code.NOT_REVERSIBLE
    assert await ledger.get_balance(receiver) == 200_00


async def test_refusal_cannot_return_a_transfer_within_the_book(ledger: LedgerDriver) -> None:
    sender, receiver = await ledger.create_subscriber(1_000_00), await ledger.create_subscriber()
    transfer = await submit(ledger, build_p2p(sender, receiver, 200_00))
    outcome = await ledger.submit(build_reversal(transfer, is_refused=True))
    assert outcome.code == Code.NOT_REVERSIBLE


async def test_transfer_between_books_is_not_recallable(ledger: LedgerDriver) -> None:
    sender, partner = await ledger.create_subscriber(1_000_00), await ledger.create_partner()
    transfer = await submit(ledger, build_outgoing(sender, partner, 200_00))
    outcome = await ledger.submit(
        RecallRequest(
            transaction_id=transfer,
            max_age_seconds=86_400,
            hold_seconds=86_400,
            idempotency_key=build_request_key("recall"),
        )
    )
    assert outcome.code == Code.NOT_RECALLABLE
