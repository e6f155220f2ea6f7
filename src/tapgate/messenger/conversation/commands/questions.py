"""Everyday questions: cash, agents, fees, declined payments, wrong recipients, support hours."""

from typing import Final

import msgspec

from tapgate.messenger import texts
from tapgate.messenger.agent_requests import AgentSummary, FindAgents
from tapgate.messenger.conversation.commands.common_steps import (
    AMOUNT_ERROR_CODES,
    build_lookup_script,
)
from tapgate.messenger.conversation.steps import AskStep, Next, ParsedAnswer, RequestStep, Script
from tapgate.messenger.conversation.turn import Turn
from tapgate.messenger.gateway_requests import (
    ClientRequest,
    FindSubscriber,
    GetLastDecline,
    GetSupportContact,
    TransactionSummary,
    client_request,
)
from tapgate.messenger.model import Command, Subscriber
from tapgate.messenger.understanding.amounts import parse_amount, parse_amount_in_question
from tapgate.messenger.understanding.places import parse_place, parse_place_in_question
from tapgate_client.errors import Code
from tapgate_client.schemas.chat import UnavailableService
from tapgate_client.schemas.subscribers import SubscriberStatus
from tapgate_client.schemas.transactions import TransactionType
from tapgate_client.schemas.wallets import Quote

_MAX_LISTED_AGENTS: Final = 5
_MAX_NAME_LENGTH: Final = 60


# Agents


def _begin_nearest_agent(turn: Turn, text: str) -> None:
    """Take the place from the opening text, for example "Where is an agent in Bo?"."""
    place = parse_place_in_question(text)
    if place is not None:
        turn.set_facts(place=place)


def _parse_place(turn: Turn, text: str) -> ParsedAnswer:
    place = parse_place_in_question(text) or parse_place(text)
    return None if place is None else {"place": place}


def _reply_with_agents(turn: Turn, agents: list[AgentSummary]) -> Next:
    place = turn.facts["place"]
    if not agents:
        turn.add_reply("agents.none", place=place)
        turn.clear_facts("place")
        return "back"
    lines = [
        f"• *{texts.truncate(agent.name, _MAX_NAME_LENGTH)}* · {agent.address}" for agent in agents
    ]
    text = "\n".join([turn.translate("agents", place=place), *lines])
    return turn.suggest_commands(text, "add_money", "withdraw", "menu")


# Fees


def _begin_fees(turn: Turn, text: str) -> None:
    """Take the amount from the opening text, for example "What does it cost to send 500?"."""
    amount = parse_amount_in_question(text, turn.context.currency)
    if amount is not None:
        turn.set_facts(amount=amount)


def _parse_amount(turn: Turn, text: str) -> ParsedAnswer:
    amount = parse_amount(text, turn.context.currency)
    return None if amount is None else {"amount": amount}


def _handle_fee_subscriber(turn: Turn, found: Subscriber | None) -> Next:
    turn.update(subscriber=found)
    return "on"


def _build_fee_request(turn: Turn) -> ClientRequest:
    """Quote for the subscriber, whose limits are shown only to a trusted person."""
    subscriber = turn.conversation.subscriber
    is_known = (
        subscriber is not None
        and turn.person.trusted
        and subscriber.status.upper() == SubscriberStatus.ACTIVE
    )
    return client_request(
        "wallet.create_quote",
        type=TransactionType.TRANSFER_P2P,
        amount=turn.facts["amount"],
        sender_id=subscriber.id if subscriber is not None and is_known else None,
    )


def _reply_with_fee(turn: Turn, quote: Quote) -> Next:
    names = {"amount": quote.amount, "fee": quote.fee_amount, "total": quote.total}
    amounts = {name: turn.format_money(text, quote.currency) for name, text in names.items()}
    parts = [turn.translate("fees.quote", **amounts)]
    obstacles = _list_obstacles(turn, quote)
    if obstacles:
        parts.append("\n".join(obstacles))
    elif quote.pin_required is not None:
        parts.append(turn.translate("fees.pin" if quote.pin_required else "fees.no_pin"))
    if quote.limits is not None:
        left = {
            "day": turn.format_money(quote.limits.daily_remaining, quote.currency),
            "month": turn.format_money(quote.limits.monthly_remaining, quote.currency),
        }
        parts.append(turn.translate("fees.left", **left))
    commands: list[Command] = ["send", "limits", "menu"]
    if turn.conversation.subscriber is None:
        commands = ["register", "menu"]
    elif obstacles:
        commands[0] = "balance"
    return turn.suggest_commands("\n\n".join(parts), *commands)


def _list_obstacles(turn: Turn, quote: Quote) -> list[str]:
    """Return why the amount cannot be sent now. A decision of compliance gets no advice."""
    reasons = quote.reasons or []
    if Code.COMPLIANCE_REJECTED in reasons:
        return []
    return [
        turn.translate(f"error.{reason}")
        for reason in reasons
        if reason in AMOUNT_ERROR_CODES and texts.has_text(f"error.{reason}")
    ]


# Declined payments


def _reply_with_decline(turn: Turn, decline: TransactionSummary | None) -> Next:
    if decline is None:
        return turn.finish("declined.none", "history", "person", "menu")
    code = decline.failure_code or ""
    reason = turn.translate_or(f"declined.reason.{code}", "declined.reason.other")
    amount = turn.format_money(decline.amount, decline.currency)
    text = turn.translate("declined", amount=amount, at=turn.format_datetime(decline.at))
    if decline.counterparty_name:
        name = texts.truncate(decline.counterparty_name, _MAX_NAME_LENGTH)
        text = turn.translate(
            "declined.to", amount=amount, name=name, at=turn.format_datetime(decline.at)
        )
    command: Command = next(
        (c for c, codes in _COMMANDS_BY_CODE.items() if code in codes), "history"
    )
    return turn.suggest_commands(f"{text}\n\n{reason}", command, "person", "menu")


#: The command that helps after a decline.
_COMMANDS_BY_CODE: Final[dict[Command, set[str]]] = {
    "balance": {"INSUFFICIENT_FUNDS"},
    "limits": {
        "TRANSACTION_LIMIT_EXCEEDED",
        "DAILY_LIMIT_EXCEEDED",
        "MONTHLY_LIMIT_EXCEEDED",
        "CARD_LIMIT_EXCEEDED",
    },
    "cards": {"CARD_NOT_ACTIVE", "CARD_NOT_LINKED"},
    "change_pin": {"INVALID_PIN"},
}


# Support


def _reply_with_contact(turn: Turn, contact: str | None) -> Next:
    hours, contact = turn.context.support_hours, contact or turn.context.support_contact
    lines = [
        turn.translate(key, text=value)
        for key, value in (("contact.hours", hours), ("contact.address", contact))
        if value is not None
    ]
    lines.append(turn.translate("contact.chat"))
    return turn.suggest_commands("\n".join(lines), "person", "nearest_agent", "menu")


#: Services that customers ask for although they are not offered. The turn reports count them.
UNAVAILABLE_SERVICES: Final = tuple(
    msgspec.convert(service.value, Command) for service in UnavailableService
)


def _build_unavailable_script(service: Command) -> Script:
    return Script(
        command=service,
        steps=(),
        on_begin=lambda turn, text: turn.finish(f"unavailable.{service}", "menu", "person"),
    )


SCRIPTS: Final = (
    *map(_build_unavailable_script, UNAVAILABLE_SERVICES),
    Script(
        command="pin_safety",
        steps=(),
        on_begin=lambda turn, text: turn.finish("pin_safety", "change_pin", "person", "menu"),
    ),
    Script(
        command="add_money",
        steps=(),
        on_begin=lambda turn, text: turn.finish("add_money", "nearest_agent", "limits", "menu"),
    ),
    Script(
        command="withdraw",
        steps=(),
        on_begin=lambda turn, text: turn.finish("withdraw", "nearest_agent", "balance", "menu"),
    ),
    Script(
        command="contact",
        steps=(
            RequestStep(
                name="contact",
                build_request=lambda turn: GetSupportContact(),
                on_success=_reply_with_contact,
            ),
        ),
    ),
    Script(
        command="nearest_agent",
        on_begin=_begin_nearest_agent,
        steps=(
            AskStep(
                name="place",
                prompt=lambda turn: turn.translate("agents.place"),
                parse_text=_parse_place,
                asks_for="place",
                not_understood_key="not_understood.place",
            ),
            RequestStep(
                name="agents",
                build_request=lambda turn: FindAgents(
                    place=turn.facts["place"], limit=_MAX_LISTED_AGENTS
                ),
                on_success=_reply_with_agents,
            ),
        ),
    ),
    Script(
        command="fees",
        on_begin=_begin_fees,
        steps=(
            AskStep(
                name="amount",
                prompt=lambda turn: turn.translate("fees"),
                parse_text=_parse_amount,
                not_understood_key="not_understood.amount",
            ),
            RequestStep(
                name="subscriber",
                is_needed=lambda turn: turn.person.phone is not None,
                build_request=lambda turn: FindSubscriber(phone=turn.phone),
                on_success=_handle_fee_subscriber,
            ),
            RequestStep(name="quote", build_request=_build_fee_request, on_success=_reply_with_fee),
        ),
    ),
    build_lookup_script(
        "declined",
        lambda turn: GetLastDecline(subscriber_id=turn.subscriber.id),
        _reply_with_decline,
    ),
)
