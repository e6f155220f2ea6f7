"""General commands: menu, help and language."""

from typing import Final

import msgspec

from tapgate.messenger.agent_requests import FindAgent
from tapgate.messenger.conversation.commands.agents import reply_with_menu as reply_with_agent_menu
from tapgate.messenger.conversation.steps import AskStep, Next, ParsedAnswer, RequestStep, Script
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.gateway_requests import FindSubscriber
from tapgate.messenger.model import LANGUAGES, Agent, Command, Language, Subscriber

#: In menu order, most used first.
_MENU_COMMANDS: Final[tuple[Command, ...]] = (
    "balance",
    "send",
    "history",
    "add_money",
    "withdraw",
    "nearest_agent",
    "fees",
    "limits",
    "cards",
    "statement",
    "proof",
    "link",
    "block",
    "unblock",
    "kyc",
    "declined",
    "not_arrived",
    "wrong_recipient",
    "dispute",
    "change_pin",
    "reset_pin",
    "change_number",
    "pin_safety",
    "language",
    "help",
    "contact",
    "person",
)
#: Menu of a number without a wallet.
_STRANGER_COMMANDS: Final[tuple[Command, ...]] = (
    "register",
    "fees",
    "nearest_agent",
    "language",
    "person",
)
#: Menu of a person who hides the number, and may or may not have a wallet.
_HIDDEN_NUMBER_COMMANDS: Final[tuple[Command, ...]] = (
    "register",
    "balance",
    "send",
    "nearest_agent",
    "person",
)
_LANGUAGE_NAMES: Final = {
    "en": {"en", "english", "anglais"},
    "fr": {"fr", "french", "français", "francais"},
}


def _reply_with_menu(turn: Turn, found: Subscriber | None) -> Next:
    turn.update(subscriber=found)
    commands = _MENU_COMMANDS
    if found is None:
        has_number = turn.person.phone is not None
        commands = _STRANGER_COMMANDS if has_number else _HIDDEN_NUMBER_COMMANDS
    if turn.person.role == "wallet":
        commands = (*commands, "agent_menu")
    if found is not None and turn.person.trusted:
        text = turn.translate("menu.named", name=found.first_name)
    else:
        text = turn.translate("menu")
    return turn.suggest_commands(text, *commands)


def _handle_agent(turn: Turn, found: Agent | None) -> Next:
    """Show an agent the agent's menu, unless the agent has switched to a wallet."""
    turn.update(agent=found)
    role = None if found is None else turn.person.role or "agent"
    turn.update_person(role=role)
    if role == "agent" and turn.person.trusted:
        return reply_with_agent_menu(turn)
    return _reply_with_menu(turn, turn.conversation.subscriber)


def _keep_subscriber(turn: Turn, found: Subscriber | None) -> Next:
    turn.update(subscriber=found)
    return "on"


def _begin_menu(turn: Turn, text: str) -> None:
    """Show the menu now, unless only the gateway knows whether the person is registered."""
    if not _is_registration_unknown(turn):
        _reply_with_menu(turn, turn.conversation.subscriber)


def _is_registration_unknown(turn: Turn) -> bool:
    is_unknown = turn.conversation.subscriber is None or turn.person.role is not None
    return is_unknown and turn.person.phone is not None


def _set_language(turn: Turn, value: str) -> ParsedAnswer:
    turn.set_language(msgspec.convert(value, Language))
    return turn.finish("language.set", "menu", "help")


def _parse_language(turn: Turn, text: str) -> ParsedAnswer:
    words = set(text.casefold().split())
    return next(
        (_set_language(turn, key) for key, names in _LANGUAGE_NAMES.items() if words & names), None
    )


def _begin_language(turn: Turn, text: str) -> None:
    """Take the language from the opening text, for example "Speak French"."""
    if _parse_language(turn, text) is not None:
        turn.set_facts(language=turn.language)


SCRIPTS: Final = (
    Script(
        command="menu",
        on_begin=_begin_menu,
        steps=(
            RequestStep(
                name="subscriber",
                is_needed=_is_registration_unknown,
                build_request=lambda turn: FindSubscriber(phone=turn.phone),
                on_success=_keep_subscriber,
                on_unreachable=lambda turn: turn.suggest_commands(
                    turn.translate("menu"), *_MENU_COMMANDS
                ),
            ),
            RequestStep(
                name="agent",
                is_needed=lambda turn: turn.person.phone is not None,
                build_request=lambda turn: FindAgent(phone=turn.phone),
                on_success=_handle_agent,
                on_unreachable=lambda turn: _reply_with_menu(turn, turn.conversation.subscriber),
            ),
        ),
    ),
    Script(
        command="help", steps=(), on_begin=lambda turn, text: turn.finish("help", "menu", "person")
    ),
    Script(
        command="language",
        on_begin=_begin_language,
        steps=(
            AskStep(
                name="language",
                prompt=lambda turn: turn.translate("language.ask"),
                choices=lambda turn: [
                    Choice(name, turn.translate(f"language.{name}")) for name in LANGUAGES
                ],
                parse_option=_set_language,
                parse_text=_parse_language,
            ),
        ),
    ),
)
