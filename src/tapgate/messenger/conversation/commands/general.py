"""General commands: menu, help, language and contact with support."""

from collections.abc import Iterable
from typing import Final

import msgspec

from tapgate.messenger.conversation import keywords
from tapgate.messenger.conversation.steps import (
    AskStep,
    Claimed,
    ConfirmStep,
    Next,
    RequestStep,
    Script,
)
from tapgate.messenger.conversation.turn import Choice, Turn
from tapgate.messenger.model.common import LANGUAGES, Command, Language
from tapgate.messenger.model.gateway_requests import RequestSupport

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
    "language",
    "help",
    "person",
)
_LANGUAGE_NAMES: Final = {
    "en": {"en", "english", "anglais"},
    "fr": {"fr", "french", "français", "francais"},
}


def _reply_with_menu(scene: Turn, said: str) -> None:
    subscriber = scene.conversation.subscriber
    commands: Iterable[Command] = _MENU_COMMANDS if subscriber else (*_MENU_COMMANDS, "register")
    if subscriber is not None and scene.person.trusted:
        text = scene.translate("menu.named", name=subscriber.first_name)
    else:
        text = scene.translate("menu")
    scene.suggest_commands(text, *commands)


def _reply_with_help(scene: Turn, said: str) -> None:
    scene.suggest_commands(scene.translate("help"), "menu", "person")


def _list_language_choices(scene: Turn) -> list[Choice]:
    return [Choice(language, scene.translate(f"language.{language}")) for language in LANGUAGES]


def _set_language(scene: Turn, value: str) -> Claimed:
    scene.set_language(msgspec.convert(value, Language))
    scene.suggest_commands(scene.translate("language.set"), "menu", "help")
    return "end"


def _parse_language(scene: Turn, text: str) -> Claimed:
    spoken = set(text.casefold().split())
    return next(
        (_set_language(scene, key) for key, names in _LANGUAGE_NAMES.items() if spoken & names),
        None,
    )


def _begin_language(scene: Turn, said: str) -> None:
    """Take the language from the opening text, for example "Speak French"."""
    if _parse_language(scene, said) is not None:
        scene.set_facts(language=scene.language)


def _begin_support(scene: Turn, said: str) -> None:
    """Require confirmation for a guessed intent, so support is not contacted by mistake."""
    if said and keywords.match_command(said) != "person":
        scene.set_facts(guessed="yes")


def _build_support_request(scene: Turn) -> RequestSupport:
    subscriber = scene.conversation.subscriber
    return RequestSupport(
        phone=scene.person.phone,
        address=scene.person.address,
        subscriber_id=None if subscriber is None else subscriber.id,
    )


def _handle_support_requested(scene: Turn, result: object) -> Next:
    scene.suggest_commands(scene.translate("support.requested"), "menu")
    return "end"


SCRIPTS: Final = (
    Script(command="menu", steps=(), on_begin=_reply_with_menu),
    Script(command="help", steps=(), on_begin=_reply_with_help),
    Script(
        command="language",
        on_begin=_begin_language,
        steps=(
            AskStep(
                name="language",
                prompt=lambda scene: scene.translate("language.ask"),
                choices=_list_language_choices,
                parse_option=_set_language,
                parse_text=_parse_language,
            ),
        ),
    ),
    Script(
        command="person",
        on_begin=_begin_support,
        steps=(
            ConfirmStep(
                name="confirmed",
                is_needed=lambda scene: "guessed" in scene.facts,
                prompt=lambda scene: scene.translate("support.confirm"),
            ),
            RequestStep(
                name="person",
                build_request=_build_support_request,
                on_success=_handle_support_requested,
            ),
        ),
    ),
)
