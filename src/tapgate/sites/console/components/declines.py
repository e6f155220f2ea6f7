"""Explanations of declines: why no money moved, and what helps."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tapgate.sites.console.translation.translator import Translator, source_text
from tapgate_client.errors import Code

Record = Mapping[str, Any]

_TRY_AGAIN: Final = source_text("Once that is solved, the customer can try again.")


class Explanation(NamedTuple):
    """Why a transaction was declined, and what staff or the customer can do."""

    why: str
    help: str


_EXPLANATIONS: Final[Mapping[str, Explanation]] = {
    Code.INSUFFICIENT_FUNDS: Explanation(
        source_text("{required} was needed, fee included, but only {available} was available."),
        source_text("The payer adds money at an agent or from a partner, and tries again."),
    ),
    Code.INSUFFICIENT_FLOAT: Explanation(
        source_text("{required} of float was needed, but the agent had only {available}."),
        source_text("Top up the agent's float, or send the customer to another agent."),
    ),
    Code.TRANSACTION_LIMIT_EXCEEDED: Explanation(
        source_text(
            "The customer's KYC level allows {limit} per transaction. This was {attempted}."
        ),
        source_text(
            "The customer pays in smaller parts, or sends documents for a higher KYC level."
        ),
    ),
    Code.DAILY_LIMIT_EXCEEDED: Explanation(
        source_text(
            "The daily limit is {limit}. {used} was used that day, so {attempted} was too much."
        ),
        source_text("The limit starts again at midnight. A higher KYC level raises it."),
    ),
    Code.MONTHLY_LIMIT_EXCEEDED: Explanation(
        source_text(
            "The monthly limit is {limit}. {used} was used that month, so {attempted} was too much."
        ),
        source_text("The limit starts again next month. A higher KYC level raises it."),
    ),
    Code.CARD_LIMIT_EXCEEDED: Explanation(
        source_text(
            "The child card's daily limit is {limit}. {used} was spent that day, so {attempted} was"
            " too much."
        ),
        source_text("The limit starts again at midnight. Staff can change it on the card's page."),
    ),
    Code.MAX_BALANCE_EXCEEDED: Explanation(
        source_text("The recipient's wallet may hold {limit}. It would have held more."),
        source_text("The recipient spends or withdraws money first, or gets a higher KYC level."),
    ),
    Code.COMPLIANCE_REJECTED: Explanation(
        source_text("A compliance rule blocks payments like this one."),
        source_text(
            "Compliance finds the rule and its limit under Compliance. Other payments work."
        ),
    ),
    Code.CARD_NOT_ACTIVE: Explanation(
        source_text("The card was blocked, expired or not linked to a customer."),
        source_text("Open the card to see its state. A lost or expired card must be replaced."),
    ),
    Code.SUBSCRIBER_BLOCKED: Explanation(
        source_text("The customer's wallet was blocked or closed."),
        source_text("Open the customer to see the reason. Compliance can unblock the wallet."),
    ),
    Code.AGENT_NOT_ACTIVE: Explanation(
        source_text("The agent was suspended or terminated."),
        source_text("The customer goes to another agent. An administrator can activate the agent."),
    ),
    Code.PROCESSOR_SUSPENDED: Explanation(
        source_text("The merchant was suspended, so it could not take or return money."),
        source_text("Open the merchant to see the reason. Compliance can activate it."),
    ),
    Code.PARTNER_SUSPENDED: Explanation(
        source_text("The partner was suspended."),
        source_text("Open the partner to see the reason. An administrator can activate it."),
    ),
}
_OTHER: Final = Explanation(source_text("The ledger declined the transaction."), _TRY_AGAIN)


def explain_decline(translator: Translator, record: Record) -> Explanation:
    """Explain a declined transaction with the amounts that decided it."""
    found = _EXPLANATIONS.get(record["failure_code"] or "", _OTHER)
    details = record.get("failure_details") or {}
    currency, decimals = record["currency"], len(record["amount"].partition(".")[2])
    values = {
        name: translator.numbers.format_amount(_to_text(details.get(name), decimals), currency)
        for name in ("available", "required", "limit", "used", "attempted")
    }
    return Explanation(
        translator.translate(found.why, **values), translator.translate(found.help, **values)
    )


def _to_text(value: Any, decimals: int) -> str | None:
    """Return a decimal string. Details of insufficient funds are numbers."""
    return f"{value:.{decimals}f}" if isinstance(value, int | float) else value
