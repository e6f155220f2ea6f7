"""Wallet commands: balance, history, statement and limits."""

from datetime import date, timedelta
from typing import Final

from tapgate.messenger.conversation import rendering, texts
from tapgate.messenger.conversation.commands.common_steps import SUBSCRIBER_STEPS
from tapgate.messenger.conversation.steps import AskStep, Claimed, Next, RequestStep, Script
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.model.gateway_requests import (
    Balance,
    CreateStatement,
    GetBalance,
    GetLimits,
    Limits,
    ListTransactions,
    Statement,
    TransactionSummary,
)
from tapgate.messenger.model.replies import DocumentReply
from tapgate.messenger.understanding import reading

_MAX_LISTED_TRANSACTIONS: Final = 8
_MAX_NAME_LENGTH: Final = 24
_LAST_90_DAYS_OFFSET: Final = timedelta(days=89)  # today is the 90th day
#: Validity of a statement link, as documented by the gateway.
_LINK_LIFETIME: Final = timedelta(hours=24)
_MAX_KYC_LEVEL: Final = 3


def _reply_with_balance(scene: Turn, read: Balance) -> Next:
    available = scene.format_money(read.available, read.currency)
    if read.available == read.balance:
        text = scene.translate("balance", available=available)
    else:
        text = scene.translate(
            "balance.held",
            available=available,
            balance=scene.format_money(read.balance, read.currency),
            held=scene.format_money(read.held, read.currency),
        )
    scene.suggest_commands(text, "send", "history", "menu")
    return "end"


def _reply_with_history(scene: Turn, movements: list[TransactionSummary]) -> Next:
    if not movements:
        scene.suggest_commands(scene.translate("history.none"), "menu")
        return "end"
    lines = [
        _format_transaction(scene, movement) for movement in movements[:_MAX_LISTED_TRANSACTIONS]
    ]
    scene.suggest_commands("\n".join([scene.translate("history"), *lines]), "statement", "menu")
    return "end"


def _format_transaction(scene: Turn, movement: TransactionSummary) -> str:
    """Format a transaction as `+ 500.00 SLE · Aminata K. · 3 Jan 2026, 14:05`."""
    sign = "+" if movement.direction == "credit" else "−"
    parts = [f"{sign} {scene.format_money(movement.amount, movement.currency)}"]
    parts.append(
        rendering.truncate(movement.counterparty_name or "", _MAX_NAME_LENGTH)
        or _get_type_label(scene, movement.type)
    )
    parts.append(scene.format_datetime(movement.at))
    if texts.has_text(f"status.{movement.status}"):
        parts.append(scene.translate(f"status.{movement.status}"))
    return " · ".join(parts)


def _get_type_label(scene: Turn, kind: str) -> str:
    key = f"type.{kind}"
    return scene.translate(key if texts.has_text(key) else "type.other")


def _reply_with_limits(scene: Turn, limits: Limits) -> Next:
    shown = {
        name: scene.format_money(getattr(limits, name), limits.currency)
        for name in ("max_transaction", "daily_limit", "monthly_limit", "max_balance")
    }
    text = scene.translate("limits", level=limits.kyc_level, **shown)
    if limits.kyc_level < _MAX_KYC_LEVEL:
        scene.suggest_commands(f"{text}\n\n{scene.translate('limits.raise')}", "kyc", "menu")
    else:
        scene.suggest_commands(text, "menu")
    return "end"


def _parse_period_option(scene: Turn, value: str) -> Claimed:
    today = scene.context.now.date()
    first = today.replace(day=1)
    match value:
        case "this_month":
            return _build_period_facts(first, today)
        case "last_month":
            last = first - timedelta(days=1)
            return _build_period_facts(last.replace(day=1), last)
        case "last_90":
            return _build_period_facts(today - _LAST_90_DAYS_OFFSET, today)
    return None


def _parse_period(scene: Turn, text: str) -> Claimed:
    period = reading.parse_period(text, scene.context.now.date())
    return None if period is None else _build_period_facts(*period)


def _begin_statement(scene: Turn, said: str) -> None:
    """Take the period from the opening text, for example "Statement for March 2026"."""
    period = reading.parse_period(said, scene.context.now.date())
    if period is not None:
        scene.set_facts(**_build_period_facts(*period))


def _build_period_facts(first: date, last: date) -> dict[str, str]:
    return {"period": "given", "from_date": first.isoformat(), "to_date": last.isoformat()}


def _reply_with_statement(scene: Turn, made: Statement) -> Next:
    first, last = (
        rendering.format_iso_date(text, scene.language) for text in (made.from_date, made.to_date)
    )
    if scene.context.can_send_documents:
        caption = scene.translate("statement.file", first=first, last=last)
        filename = f"statement-{made.from_date}-{made.to_date}.pdf"
        scene.replies.append(DocumentReply(link=made.link, filename=filename, caption=caption))
    else:
        until = scene.format_datetime(scene.context.now + _LINK_LIFETIME)
        scene.add_reply("statement.link", first=first, last=last, link=made.link, until=until)
    return "end"


SCRIPTS: Final = (
    Script(
        command="balance",
        steps=(
            *SUBSCRIBER_STEPS,
            RequestStep(
                name="balance",
                build_request=lambda scene: GetBalance(subscriber_id=scene.subscriber.id),
                on_success=_reply_with_balance,
            ),
        ),
    ),
    Script(
        command="history",
        steps=(
            *SUBSCRIBER_STEPS,
            RequestStep(
                name="history",
                build_request=lambda scene: ListTransactions(
                    subscriber_id=scene.subscriber.id, limit=_MAX_LISTED_TRANSACTIONS
                ),
                on_success=_reply_with_history,
            ),
        ),
    ),
    Script(
        command="statement",
        on_begin=_begin_statement,
        steps=(
            *SUBSCRIBER_STEPS,
            AskStep(
                name="period",
                prompt=lambda scene: scene.translate("statement.period"),
                choices=lambda scene: [
                    Choice(period, scene.translate(f"period.{period}"))
                    for period in ("this_month", "last_month", "last_90")
                ],
                parse_option=_parse_period_option,
                parse_text=_parse_period,
                not_understood_key="not_understood.period",
            ),
            RequestStep(
                name="statement",
                build_request=lambda scene: CreateStatement(
                    subscriber_id=scene.subscriber.id,
                    from_date=scene.facts["from_date"],
                    to_date=scene.facts["to_date"],
                ),
                on_success=_reply_with_statement,
            ),
        ),
    ),
    Script(
        command="limits",
        steps=(
            *SUBSCRIBER_STEPS,
            RequestStep(
                name="limits",
                build_request=lambda scene: GetLimits(kyc_level=scene.subscriber.kyc_level),
                on_success=_reply_with_limits,
            ),
        ),
    ),
)
