"""Ledger commands of statement lines: payouts that they pay or return, and postings."""

from typing import Final

from tapgate.auth.actors import Actor
from tapgate.business.finance.payouts.requests import ALLOWED_STATUSES
from tapgate.business.finance.reconciliation.model import Line
from tapgate.business.finance.reconciliation.operations import build_line_change
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, PayoutChange, ScopedIdempotencyKey
from tapgate_client import ids
from tapgate_client.schemas.bank_statements import LineStatus
from tapgate_client.schemas.payouts import PayoutStatus
from tapgate_client.schemas.transactions import Channel

_RETURN_REASON = "Returned by the bank"
#: Without the payment, a return would be more cash than the ledger knows of.
RETURNABLE_STATUSES: Final = (PayoutStatus.PAID,)


def build_payout_command(
    line: Line, payout_id: int, actor: Actor, key: ScopedIdempotencyKey | None = None
) -> Command:
    """Return the command that marks a payout as paid, or as returned if the line is a credit."""
    is_return = line.amount > 0
    status = PayoutStatus.RETURNED if is_return else PayoutStatus.PAID
    allowed = RETURNABLE_STATUSES if is_return else ALLOWED_STATUSES[PayoutStatus.PAID]
    return Command(
        type=chart.PAYOUT_RETURN if is_return else chart.BANK_POSTING,
        channel=Channel.ADMIN,
        payer=commands.UNKNOWN_PARTY,
        payee=commands.UNKNOWN_PARTY,
        amount=None,
        context=_build_context(line),
        audit=actor.build_audit_facts(),
        payout_change=PayoutChange(
            payout_id=payout_id,
            status=status,
            allowed=allowed,
            return_reason=(line.description or _RETURN_REASON)[:500] if is_return else None,
        ),
        bank_line=build_line_change(line, LineStatus.MATCHED, key),
    )


def build_posting_command(
    line: Line, reason: str | None, actor: Actor, key: ScopedIdempotencyKey | None
) -> Command:
    """Return the command that books a line to `suspense`, or a posted line back."""
    is_posted = line.status == LineStatus.POSTED
    is_cash_debited = (line.amount > 0) != is_posted
    parties = (commands.CASH_PARTY, commands.SUSPENSE_PARTY)
    payer, payee = parties if is_cash_debited else parties[::-1]
    return Command(
        type=chart.BANK_POSTING,
        channel=Channel.ADMIN,
        payer=payer,
        payee=payee,
        amount=abs(line.amount),
        original_id=line.transaction_id,
        context={**_build_context(line), **({} if reason is None else {"memo": reason})},
        audit=actor.build_audit_facts(reason),
        bank_line=build_line_change(
            line, LineStatus.UNMATCHED if is_posted else LineStatus.POSTED, key, reason
        ),
    )


def _build_context(line: Line) -> dict[str, str]:
    context = {"bank_line_id": ids.encode(ids.BANK_STATEMENT_LINE, line.id)}
    return context if line.reference is None else {**context, "reference": line.reference}
