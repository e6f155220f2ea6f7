"""Orders that tests of what the ledger tells have in common."""

from typing import Any

from ledger.books import PIN, Books, movement
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command


def p2p(sender: int, receiver: int, amount: int, **more: Any) -> Command:
    return movement(
        chart.TRANSFER_P2P,
        commands.subscriber_party(sender),
        commands.subscriber_party(receiver),
        amount,
        **more,
    )


def pay(payer: int, processor: int, amount: int, **more: Any) -> Command:
    return movement(
        chart.POS_PAYMENT,
        commands.subscriber_party(payer),
        commands.processor_party(processor),
        amount,
        **more,
    )


def refund(processor: int, original_id: int, amount: int | None) -> Command:
    return movement(
        chart.REFUND,
        commands.processor_party(processor),
        commands.CASH_PARTY,
        amount,
        original_id=original_id,
    )


def fund(agent: int, amount: int) -> Command:
    return movement(chart.AGENT_FUND, commands.CASH_PARTY, commands.agent_party(agent), amount)


def cash_in(agent: int, subscriber: int, amount: int) -> Command:
    return movement(
        chart.AGENT_CASHIN,
        commands.agent_party(agent),
        commands.subscriber_party(subscriber),
        amount,
        payer_pin=PIN,
    )


def cash_out(agent: int, subscriber: int, amount: int) -> Command:
    return movement(
        chart.AGENT_CASHOUT,
        commands.subscriber_party(subscriber),
        commands.agent_party(agent),
        amount,
        payer_pin=PIN,
        payee_pin=PIN,
    )


async def without_limits(books: Books) -> None:
    await books.database.execute(
        """UPDATE account_rules SET max_transaction = 1000000000, daily_limit = 1000000000,
                                    monthly_limit = 1000000000, max_balance = 1000000000"""
    )
    books.ledger._invalidate_rules()
