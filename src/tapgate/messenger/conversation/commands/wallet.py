"""What a wallet holds, what went through it, what it may do."""

from datetime import date, timedelta
from typing import Final

from tapgate.messenger.conversation import showing, texts
from tapgate.messenger.conversation.commands.who import SUBSCRIBER
from tapgate.messenger.conversation.pieces import Ask, Fetch, Go, Script, Taken
from tapgate.messenger.conversation.scene import Choice, Scene
from tapgate.messenger.model.calls import (
    Balance,
    Limits,
    MakeStatement,
    Movement,
    ReadBalance,
    ReadHistory,
    ReadLimits,
    Statement,
)
from tapgate.messenger.model.replies import File
from tapgate.messenger.understanding import reading

_MOVEMENTS_SHOWN: Final = 8
_NAME_SHOWN: Final = 24
_LONG_STATEMENT: Final = timedelta(days=89)  # and today
#: The gateway's promise for a statement's link.
_LINK_LIVES: Final = timedelta(hours=24)
_HIGHEST_KYC_LEVEL: Final = 3


def _tell_balance(scene: Scene, read: Balance) -> Go:
    available = scene.money(read.available, read.currency)
    if read.available == read.balance:
        text = scene.text("balance", available=available)
    else:
        text = scene.text(
            "balance.held",
            available=available,
            balance=scene.money(read.balance, read.currency),
            held=scene.money(read.held, read.currency),
        )
    scene.suggest(text, "send", "history", "menu")
    return "end"


def _tell_history(scene: Scene, movements: list[Movement]) -> Go:
    if not movements:
        scene.suggest(scene.text("history.none"), "menu")
        return "end"
    lines = [_movement(scene, movement) for movement in movements[:_MOVEMENTS_SHOWN]]
    scene.suggest("\n".join([scene.text("history"), *lines]), "statement", "menu")
    return "end"


def _movement(scene: Scene, movement: Movement) -> str:
    """`+ 500.00 SLE · Aminata K. · 3 Jan 2026, 14:05`"""
    sign = "+" if movement.direction == "credit" else "−"
    parts = [f"{sign} {scene.money(movement.amount, movement.currency)}"]
    parts.append(showing.cut(movement.other or "", _NAME_SHOWN) or _kind(scene, movement.type))
    parts.append(scene.moment(movement.at))
    if texts.has(f"status.{movement.status}"):
        parts.append(scene.text(f"status.{movement.status}"))
    return " · ".join(parts)


def _kind(scene: Scene, kind: str) -> str:
    key = f"kind.{kind}"
    return scene.text(key if texts.has(key) else "kind.other")


def _tell_limits(scene: Scene, limits: Limits) -> Go:
    shown = {
        name: scene.money(getattr(limits, name), limits.currency)
        for name in ("max_transaction", "daily_limit", "monthly_limit", "max_balance")
    }
    text = scene.text("limits", level=limits.kyc_level, **shown)
    if limits.kyc_level < _HIGHEST_KYC_LEVEL:
        scene.suggest(f"{text}\n\n{scene.text('limits.raise')}", "kyc", "menu")
    else:
        scene.suggest(text, "menu")
    return "end"


def _period(scene: Scene, value: str) -> Taken:
    today = scene.setting.now.date()
    first = today.replace(day=1)
    match value:
        case "this_month":
            return _between(first, today)
        case "last_month":
            last = first - timedelta(days=1)
            return _between(last.replace(day=1), last)
        case "last_90":
            return _between(today - _LONG_STATEMENT, today)
    return None


def _read_period(scene: Scene, text: str) -> Taken:
    period = reading.period(text, scene.setting.now.date())
    return None if period is None else _between(*period)


def _begin_statement(scene: Scene, said: str) -> None:
    """ "Statement for March 2026" has said it all."""
    period = reading.period(said, scene.setting.now.date())
    if period is not None:
        scene.know(**_between(*period))


def _between(first: date, last: date) -> dict[str, str]:
    return {"period": "given", "from_date": first.isoformat(), "to_date": last.isoformat()}


def _tell_statement(scene: Scene, made: Statement) -> Go:
    first, last = (showing.iso_day(text, scene.language) for text in (made.from_date, made.to_date))
    if scene.setting.documents:
        caption = scene.text("statement.file", first=first, last=last)
        filename = f"statement-{made.from_date}-{made.to_date}.pdf"
        scene.replies.append(File(link=made.link, filename=filename, caption=caption))
    else:
        until = scene.moment(scene.setting.now + _LINK_LIVES)
        scene.say("statement.link", first=first, last=last, link=made.link, until=until)
    return "end"


SCRIPTS: Final = (
    Script(
        command="balance",
        pieces=(
            *SUBSCRIBER,
            Fetch(
                name="balance",
                call=lambda scene: ReadBalance(subscriber_id=scene.subscriber.id),
                told=_tell_balance,
            ),
        ),
    ),
    Script(
        command="history",
        pieces=(
            *SUBSCRIBER,
            Fetch(
                name="history",
                call=lambda scene: ReadHistory(
                    subscriber_id=scene.subscriber.id, limit=_MOVEMENTS_SHOWN
                ),
                told=_tell_history,
            ),
        ),
    ),
    Script(
        command="statement",
        begin=_begin_statement,
        pieces=(
            *SUBSCRIBER,
            Ask(
                name="period",
                prompt=lambda scene: scene.text("statement.period"),
                choices=lambda scene: [
                    Choice(period, scene.text(f"period.{period}"))
                    for period in ("this_month", "last_month", "last_90")
                ],
                chose=_period,
                read=_read_period,
                unread="unread.period",
            ),
            Fetch(
                name="statement",
                call=lambda scene: MakeStatement(
                    subscriber_id=scene.subscriber.id,
                    from_date=scene.facts["from_date"],
                    to_date=scene.facts["to_date"],
                ),
                told=_tell_statement,
            ),
        ),
    ),
    Script(
        command="limits",
        pieces=(
            *SUBSCRIBER,
            Fetch(
                name="limits",
                call=lambda scene: ReadLimits(kyc_level=scene.subscriber.kyc_level),
                told=_tell_limits,
            ),
        ),
    ),
)
