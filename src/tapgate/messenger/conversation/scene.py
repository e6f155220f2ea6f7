"""One step in the making: who speaks with whom, what is said and what is remembered.

Everything that a script does, it does to a scene. Nothing of it outlives the step but the `Step`.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from tapgate.messenger.conversation import showing, texts
from tapgate.messenger.conversation.state import Conversation, Step
from tapgate.messenger.model.calls import Call, Subscriber
from tapgate.messenger.model.kinds import Command, Language
from tapgate.messenger.model.people import (
    Effect,
    ForgetRecipient,
    Person,
    ProvePhone,
    Setting,
    SpeakLanguage,
    Trust,
)
from tapgate.messenger.model.replies import File, Offer, Option, Reply, Say

#: What the channel shows of an option: the fewer there are, the shorter the buttons.
BUTTONS = 3
_LONGEST = 1024
_BUTTON_LENGTH, _ROW_LENGTH, _DESCRIPTION_LENGTH = 20, 24, 72


class Choice(NamedTuple):
    """Something to choose, before it belongs to a question."""

    value: str
    title: str
    description: str = ""


class Scene:
    def __init__(self, person: Person, conversation: Conversation, setting: Setting) -> None:
        self.person = _known(person, conversation)
        self.conversation = conversation
        self.setting = setting
        self.replies: list[Reply] = []
        self.effects: list[Effect] = []
        self.call: Call | None = None

    def step(self) -> Step:
        return Step(
            conversation=self.conversation,
            replies=tuple(self.replies),
            call=self.call,
            effects=tuple(self.effects),
        )

    # What is remembered

    @property
    def facts(self) -> dict[str, str]:
        return self.conversation.facts

    @property
    def subscriber(self) -> Subscriber:
        """Of a script that has looked them up."""
        assert self.conversation.subscriber is not None
        return self.conversation.subscriber

    @property
    def phone(self) -> str:
        """Of a script that has asked for it where it was not known."""
        assert self.person.phone is not None
        return self.person.phone

    @property
    def language(self) -> Language:
        return self.person.language or "en"

    def change(self, **fields: Any) -> None:
        self.conversation = msgspec.structs.replace(self.conversation, **fields)

    def know(self, **facts: str) -> None:
        self.change(facts={**self.facts, **facts})

    def forget(self, *names: str) -> None:
        self.change(facts={name: fact for name, fact in self.facts.items() if name not in names})

    def rest(self) -> None:
        """Nothing is going on any more. What was offered last may still be chosen by number."""
        self.change(
            stage="idle",
            command=None,
            piece=None,
            facts={},
            cards=(),
            operation=None,
            uncertain=False,
        )

    def speak(self, language: Language) -> None:
        self.effects.append(SpeakLanguage(language=language))
        self.change(language=language)
        self.person = msgspec.structs.replace(self.person, language=language)

    def trust(self) -> None:
        self.effects.append(Trust(trusted=True))
        self.change(trusted=True)
        self.person = msgspec.structs.replace(self.person, trusted=True)

    def prove_phone(self, phone: str) -> None:
        self.effects.append(ProvePhone(phone=phone))
        self.change(phone=phone)
        self.person = msgspec.structs.replace(self.person, phone=phone)

    def forget_recipient(self, card_serial: str) -> None:
        self.effects.append(ForgetRecipient(card_serial=card_serial))
        recipients = tuple(r for r in self.person.recipients if r.card_serial != card_serial)
        self.person = msgspec.structs.replace(self.person, recipients=recipients)

    # What is said

    def text(self, key: str, **values: object) -> str:
        return texts.text(self.language, key, **values)

    def money(self, amount: str, currency: str | None = None) -> str:
        return showing.money_shown(amount, currency or self.setting.currency)

    def moment(self, at: datetime) -> str:
        return showing.moment(at.astimezone(self.setting.now.tzinfo), self.language)

    def say(self, key: str, **values: object) -> None:
        self.replies.append(Say(text=self.text(key, **values)))

    def say_before_last(self, key: str) -> None:
        """In one message with the last, where it fits."""
        said, last = self.text(key), self.replies[-1]
        together = f"{said}\n\n{'' if isinstance(last, File) else last.text}"
        if isinstance(last, File) or len(together) > _LONGEST:
            self.replies.insert(-1, Say(text=said))
        else:
            self.replies[-1] = msgspec.structs.replace(last, text=together)

    def ask(self, text: str, choices: Iterable[Choice] = ()) -> None:
        """Puts a question; the options of the one before have expired, unless it is the same."""
        choices = tuple(choices)
        number = self.conversation.question
        offer = self._offer(text, choices, number)
        before = self.conversation.offer
        if before is None or offer != msgspec.structs.replace(before, start=0):
            # By the clock, so that it grows even where the conversation before is forgotten.
            number = max(number + 1, int(self.setting.now.timestamp()))
            offer = self._offer(text, choices, number)
        self.change(question=number, offer=offer, suggested=None)
        self.replies.append(offer or Say(text=text))

    def suggest(self, text: str, *commands: Command, yes: Command | None = None) -> None:
        """Says something, and what could be done next; where it is a question, what a yes means."""
        self.ask(text, [self.command(name) for name in commands])
        self.change(suggested=None if yes == "send" else yes)

    def command(self, name: Command) -> Choice:
        """A way to a command. It never expires, so it belongs to no question."""
        return Choice(f"cmd:{name}", self.text(f"title.{name}"), self.text(f"about.{name}"))

    def _offer(self, text: str, choices: tuple[Choice, ...], number: int) -> Offer | None:
        if not choices:
            return None
        length = _BUTTON_LENGTH if len(choices) <= BUTTONS else _ROW_LENGTH
        return Offer(
            text=text,
            options=tuple(
                Option(
                    id=_id(choice.value, number),
                    title=showing.cut(choice.title, length),
                    description=showing.cut(choice.description, _DESCRIPTION_LENGTH),
                )
                for choice in choices
            ),
            button=self.text("choose"),
            more=Option(id=_id("more", number), title=self.text("more")),
        )


def _id(value: str, number: int) -> str:
    return value if value.startswith("cmd:") else f"{value}#{number}"


def _known(person: Person, conversation: Conversation) -> Person:
    """The person, with what this conversation has taught: an effect may not be seen to yet."""
    return msgspec.structs.replace(
        person,
        language=conversation.language or person.language,
        phone=conversation.phone or person.phone,
        trusted=conversation.trusted or person.trusted,
    )
