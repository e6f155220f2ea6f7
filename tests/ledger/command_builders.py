"""Command builders shared by several ledger tests."""

from typing import Any

from ledger.builders import PIN, LedgerDriver, build_command
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command


def build_p2p(sender: int, receiver: int, amount: int, **fields: Any) -> Command:
    return build_command(
        chart.TRANSFER_P2P,
        commands.subscriber_party(sender),
        commands.subscriber_party(receiver),
        amount,
        **fields,
    )


def build_payment(payer: int, processor: int, amount: int, **fields: Any) -> Command:
    return build_command(
        chart.POS_PAYMENT,
        commands.subscriber_party(payer),
        commands.processor_party(processor),
        amount,
        **fields,
    )


def build_refund(processor: int, original_id: int, amount: int | None) -> Command:
    return build_command(
        chart.REFUND,
        commands.processor_party(processor),
        commands.CASH_PARTY,
        amount,
        original_id=original_id,
    )


def build_fund(agent: int, amount: int) -> Command:
    return build_command(chart.AGENT_FUND, commands.CASH_PARTY, commands.agent_party(agent), amount)


def build_cash_in(agent: int, subscriber: int, amount: int) -> Command:
    return build_command(
        chart.AGENT_CASHIN,
        commands.agent_party(agent),
        commands.subscriber_party(subscriber),
        amount,
        payer_pin=PIN,
    )


def build_cash_out(agent: int, subscriber: int, amount: int) -> Command:
    return build_command(
        chart.AGENT_CASHOUT,
        commands.subscriber_party(subscriber),
        commands.agent_party(agent),
        amount,
        payer_pin=PIN,
        payee_pin=PIN,
    )


async def remove_limits(ledger: LedgerDriver) -> None:
    await ledger.database.execute(
        """UPDATE account_rules SET max_transaction = 1000000000, daily_limit = 1000000000,
                                    monthly_limit = 1000000000, max_balance = 1000000000"""
    )
    ledger.ledger._invalidate_rules()
