"""Transfers between two subscribers."""

from builders.ledger import LedgerDriver, build_command
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import NewBookTransfer, Outcome

HELD_AMOUNT = 600_000_00


async def create_sender_and_receiver(ledger: LedgerDriver) -> tuple[int, int]:
    await ledger.database.execute(
        """UPDATE account_rules SET max_transaction = 1000000000, daily_limit = 1000000000,
                                    monthly_limit = 1000000000, max_balance = 1000000000"""
    )
    ledger.ledger.invalidate_rules()
    return await ledger.create_subscriber(1_000_000_00), await ledger.create_subscriber()


async def submit_transfer(
    ledger: LedgerDriver, sender: int, receiver: int, amount: int = HELD_AMOUNT
) -> Outcome:
    return await ledger.submit(build_command(chart.TRANSFER_P2P, sender, receiver, amount))


async def send_to_other_book(ledger: LedgerDriver) -> int:
    """Send money to a customer of another book, and return the transaction's ID."""
    sender, partner = await ledger.create_subscriber(1_000_00), await ledger.create_partner()
    command = build_command(
        chart.TRANSFER_P2P,
        sender,
        commands.partner_party(partner),
        200_00,
        book_transfer=NewBookTransfer(book="south", recipient_id="sub_1", recipient_name="Fatu S."),
    )
    return (await ledger.submit(command)).require_accepted().transaction_id
