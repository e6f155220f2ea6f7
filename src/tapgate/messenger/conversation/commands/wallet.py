"""Wallet commands: balance, history, statement and limits."""

from datetime import date, timedelta
from typing import Final

from tapgate.messenger import texts
from tapgate.messenger.conversation.commands.common_steps import (
    SUBSCRIBER_STEPS,
    build_lookup_script,
)
from tapgate.messenger.conversation.commands.proofs import has_proof
from tapgate.messenger.conversation.commands.undo import DISPUTABLE_TYPES
from tapgate.messenger.conversation.steps import AskStep, Next, RequestStep, Script
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.gateway_requests import (
    GetLastTransfers,
    LastTransfers,
    ListTransactions,
    TransactionSummary,
    client_request,
)
from tapgate.messenger.model import Command, DocumentReply
from tapgate.messenger.understanding.periods import parse_period
from tapgate_client.schemas.subscribers import Limits
from tapgate_client.schemas.wallets import Balance, StatementRecord

_MAX_LISTED_TRANSACTIONS: Final = 8
_MAX_NAME_LENGTH: Final = 24
#: Offered periods, in words that `parse_period` understands.
_PERIODS: Final = {
    "this_month": "this month",
    "last_month": "last month",
    "last_90": "last 90 days",
}
#: Statement link lifetime, as documented by the gateway.
_LINK_LIFETIME: Final = timedelta(hours=24)
_MAX_KYC_LEVEL: Final = 3


def _reply_with_balance(turn: Turn, balance: Balance) -> Next:
    available = turn.format_money(balance.available, balance.currency)
    if balance.available == balance.balance:
        text = turn.translate("balance", available=available)
    else:
        text = turn.translate(
            "balance.held",
            available=available,
            balance=turn.format_money(balance.balance, balance.currency),
            held=turn.format_money(balance.held, balance.currency),
        )
    return turn.suggest_commands(text, "send", "history", "menu")


def _reply_with_history(turn: Turn, transactions: list[TransactionSummary]) -> Next:
    if not transactions:
        return turn.finish("history.none", "menu")
    lines = [
        _format_transaction(turn, transaction)
        for transaction in transactions[:_MAX_LISTED_TRANSACTIONS]
    ]
    commands: tuple[Command, ...] = ("statement", "menu")
    shown = transactions[:_MAX_LISTED_TRANSACTIONS]
    if any(has_proof(turn, item) for item in shown):
        commands = ("proof", *commands)
    if any(_is_card_payment(item) for item in shown):
        commands = ("dispute", *commands)
    return turn.suggest_commands("\n".join([turn.translate("history"), *lines]), *commands)


def _is_card_payment(transaction: TransactionSummary) -> bool:
    return not transaction.is_credit and transaction.type in DISPUTABLE_TYPES


def _format_transaction(turn: Turn, transaction: TransactionSummary) -> str:
    """Format a transaction as `− 500.00 SLE · fee 7.50 SLE · Aminata K. · 3 Jan 2026, 14:05`."""
    sign = "+" if transaction.is_credit else "−"
    parts = [f"{sign} {turn.format_money(transaction.amount, transaction.currency)}"]
    if transaction.fee.strip("0."):
        fee = turn.format_money(transaction.fee, transaction.currency)
        parts.append(turn.translate("history.fee", fee=fee))
    parts += [
        texts.truncate(transaction.counterparty_name or "", _MAX_NAME_LENGTH)
        or turn.translate_or(f"type.{transaction.type}", "type.other"),
        turn.format_datetime(transaction.at),
    ]
    if texts.has_text(f"status.{transaction.status}"):
        parts.append(turn.translate(f"status.{transaction.status}"))
    return " · ".join(parts)


def _reply_with_last_transfers(turn: Turn, last: LastTransfers) -> Next:
    """Show what is known about money that has not arrived, with its state."""
    if last.incoming is None and last.outgoing is None:
        return turn.finish("not_arrived.none", "history", "person", "menu", yes="person")
    lines = [
        turn.translate(f"not_arrived.{direction}", transfer=_format_transfer_state(turn, transfer))
        if transfer is not None
        else turn.translate(f"not_arrived.no_{direction}")
        for direction, transfer in (("incoming", last.incoming), ("outgoing", last.outgoing))
    ]
    text = "\n".join(
        [turn.translate("not_arrived"), *lines, "", turn.translate("not_arrived.next")]
    )
    return turn.suggest_commands(text, "history", "wrong_recipient", "person", yes="person")


def _format_transfer_state(turn: Turn, transfer: TransactionSummary) -> str:
    line = _format_transaction(turn, transfer)
    has_state = texts.has_text(f"status.{transfer.status}")
    return line if has_state else f"{line} · {turn.translate('not_arrived.completed')}"


def _reply_with_limits(turn: Turn, limits: Limits) -> Next:
    amounts = {
        "per_transaction": limits.per_transaction,
        "max_balance": limits.max_balance,
        "daily": limits.daily.limit,
        "daily_used": limits.daily.used,
        "daily_left": limits.daily.remaining,
        "monthly": limits.monthly.limit,
        "monthly_used": limits.monthly.used,
        "monthly_left": limits.monthly.remaining,
    }
    formatted = {name: turn.format_money(text, limits.currency) for name, text in amounts.items()}
    text = turn.translate("limits", level=limits.kyc_level, **formatted)
    if limits.kyc_level >= _MAX_KYC_LEVEL:
        return turn.suggest_commands(text, "menu")
    return turn.suggest_commands(f"{text}\n\n{turn.translate('limits.raise')}", "kyc", "menu")


def _parse_period(turn: Turn, text: str) -> dict[str, str] | None:
    period = parse_period(text, turn.context.now.date())
    if period is None:
        return None
    first, last = period
    return {"period": "given", "from_date": first.isoformat(), "to_date": last.isoformat()}


def _begin_statement(turn: Turn, text: str) -> None:
    """Take the period from the opening text, for example "Statement for March 2026"."""
    turn.set_facts(**_parse_period(turn, text) or {})


def _reply_with_statement(turn: Turn, statement: StatementRecord) -> Next:
    link = statement.statement_url or ""
    from_date, to_date = turn.facts["from_date"], turn.facts["to_date"]
    first, last = (
        texts.format_date(date.fromisoformat(text), turn.language) for text in (from_date, to_date)
    )
    if turn.context.can_send_documents:
        caption = turn.translate("statement.file", first=first, last=last)
        filename = f"statement-{from_date}-{to_date}.pdf"
        turn.replies.append(DocumentReply(link=link, filename=filename, caption=caption))
    else:
        until = turn.format_datetime(turn.context.now + _LINK_LIFETIME)
        turn.add_reply("statement.link", first=first, last=last, link=link, until=until)
    return "end"


SCRIPTS: Final = (
    build_lookup_script(
        "balance",
        lambda turn: client_request("wallet.get_balance", turn.subscriber.id),
        _reply_with_balance,
    ),
    build_lookup_script(
        "history",
        lambda turn: ListTransactions(
            subscriber_id=turn.subscriber.id, limit=_MAX_LISTED_TRANSACTIONS
        ),
        _reply_with_history,
    ),
    build_lookup_script(
        "not_arrived",
        lambda turn: GetLastTransfers(subscriber_id=turn.subscriber.id),
        _reply_with_last_transfers,
    ),
    build_lookup_script(
        "limits",
        lambda turn: client_request("subscribers.get_limits", turn.subscriber.id),
        _reply_with_limits,
    ),
    Script(
        command="statement",
        on_begin=_begin_statement,
        steps=(
            *SUBSCRIBER_STEPS,
            AskStep(
                name="period",
                prompt=lambda turn: turn.translate("statement.period"),
                choices=lambda turn: [
                    Choice(period, turn.translate(f"period.{period}")) for period in _PERIODS
                ],
                parse_option=lambda turn, value: _parse_period(turn, _PERIODS.get(value, "")),
                parse_text=_parse_period,
                not_understood_key="not_understood.period",
            ),
            RequestStep(
                name="statement",
                build_request=lambda turn: client_request(
                    "wallet.create_statement",
                    subscriber_id=turn.subscriber.id,
                    from_date=turn.facts["from_date"],
                    to_date=turn.facts["to_date"],
                    format="pdf",
                ),
                on_success=_reply_with_statement,
            ),
        ),
    ),
)
