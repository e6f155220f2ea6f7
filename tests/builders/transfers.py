"""Transfers between two subscribers."""

from builders.ledger import LedgerDriver, build_command
from tapgate.ledger import chart
from tapgate.ledger.commands import Outcome

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
