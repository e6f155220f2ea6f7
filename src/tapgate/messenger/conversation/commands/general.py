"""General commands: menu, help and language."""

from collections.abc import Iterable
from typing import Final

import msgspec

from tapgate.messenger.conversation.steps import AskStep, ParsedAnswer, Script
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.model import LANGUAGES, Command, Language

#: In menu order, most used first.
_MENU_COMMANDS: Final[tuple[Command, ...]] = (
    "balance",
    "send",
    "history",
    "cards",
    "statement",
    "link",
    "block",
    "unblock",
    "kyc",
    "limits",
    "change_pin",
    "reset_pin",
    "language",
    "help",
    "person",
)
_LANGUAGE_NAMES: Final = {
    "en": {"en", "english", "anglais"},
    "fr": {"fr", "french", "français", "francais"},
}


def _reply_with_menu(turn: Turn, message: str) -> None:
    subscriber = turn.conversation.subscriber
    commands: Iterable[Command] = _MENU_COMMANDS if subscriber else (*_MENU_COMMANDS, "register")
    if subscriber is not None and turn.person.trusted:
        text = turn.translate("menu.named", name=subscriber.first_name)
    else:
        text = turn.translate("menu")
    turn.suggest_commands(text, *commands)


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
    Script(command="menu", steps=(), on_begin=_reply_with_menu),
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
