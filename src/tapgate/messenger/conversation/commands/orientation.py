"""What can be done here, in which language, and who else can be asked."""

from collections.abc import Iterable
from typing import Final

import msgspec

from tapgate.messenger.conversation import words
from tapgate.messenger.conversation.pieces import Ask, Confirm, Fetch, Go, Script, Taken
from tapgate.messenger.conversation.scene import Choice, Scene
from tapgate.messenger.model.calls import AskForPerson
from tapgate.messenger.model.kinds import LANGUAGES, Command, Language

#: In the order of the menu, the most used first.
_MENU: Final[tuple[Command, ...]] = (
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
_NAMES: Final = {
    "en": {"en", "english", "anglais"},
    "fr": {"fr", "french", "français", "francais"},
}


def _menu(scene: Scene, said: str) -> None:
    subscriber = scene.conversation.subscriber
    commands: Iterable[Command] = _MENU if subscriber else (*_MENU, "register")
    if subscriber is not None and scene.person.trusted:
        text = scene.text("menu.named", name=subscriber.first_name)
    else:
        text = scene.text("menu")
    scene.suggest(text, *commands)


def _help(scene: Scene, said: str) -> None:
    scene.suggest(scene.text("help"), "menu", "person")


def _languages(scene: Scene) -> list[Choice]:
    return [Choice(language, scene.text(f"language.{language}")) for language in LANGUAGES]


def _speak(scene: Scene, value: str) -> Taken:
    scene.speak(msgspec.convert(value, Language))
    scene.suggest(scene.text("language.set"), "menu", "help")
    return "end"


def _read_language(scene: Scene, text: str) -> Taken:
    spoken = set(text.casefold().split())
    return next((_speak(scene, key) for key, names in _NAMES.items() if spoken & names), None)


def _begin_language(scene: Scene, said: str) -> None:
    """ "Speak French" has said it all."""
    if _read_language(scene, said) is not None:
        scene.know(language=scene.language)


def _begin_person(scene: Scene, said: str) -> None:
    """People are not called upon by mistake: a guess is asked about."""
    if said and words.command(said) != "person":
        scene.know(guessed="yes")


def _ask_for_person(scene: Scene) -> AskForPerson:
    subscriber = scene.conversation.subscriber
    return AskForPerson(
        phone=scene.person.phone,
        address=scene.person.address,
        subscriber_id=None if subscriber is None else subscriber.id,
    )


def _asked_for(scene: Scene, result: object) -> Go:
    scene.suggest(scene.text("person.asked"), "menu")
    return "end"


SCRIPTS: Final = (
    Script(command="menu", pieces=(), begin=_menu),
    Script(command="help", pieces=(), begin=_help),
    Script(
        command="language",
        begin=_begin_language,
        pieces=(
            Ask(
                name="language",
                prompt=lambda scene: scene.text("language.ask"),
                choices=_languages,
                chose=_speak,
                read=_read_language,
            ),
        ),
    ),
    Script(
        command="person",
        begin=_begin_person,
        pieces=(
            Confirm(
                name="confirmed",
                needed=lambda scene: "guessed" in scene.facts,
                prompt=lambda scene: scene.text("person.confirm"),
            ),
            Fetch(name="person", call=_ask_for_person, told=_asked_for),
        ),
    ),
)
