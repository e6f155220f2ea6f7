"""Working state of one engine pass, on which scripts act.

An engine pass processes one event: the incoming one, or a gateway request's outcome in the
same turn. Only the `EngineOutput` outlives the pass.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from tapgate.core.images import EncodedImage
from tapgate.messenger import texts
from tapgate.messenger.conversation.state import Conversation, EngineOutput
from tapgate.messenger.gateway_requests import GatewayRequest
from tapgate.messenger.model import (
    MAX_BUTTON_TITLE_LENGTH,
    MAX_BUTTONS,
    MAX_INTERACTIVE_BODY_LENGTH,
    MAX_ROW_DESCRIPTION_LENGTH,
    MAX_ROW_TITLE_LENGTH,
    Agent,
    Command,
    DocumentReply,
    Language,
    Option,
    OptionList,
    Person,
    Recipient,
    Reply,
    RequestRejected,
    Subscriber,
    TextReply,
    TurnContext,
)
from tapgate_client.errors import Code

#: A longer list would be hard to use in a chat.
MAX_RECIPIENTS = 30


class Choice(NamedTuple):
    """Option before it is attached to a question."""

    value: str
    title: str
    description: str = ""


class Turn:
    """Working state during an engine pass: person, conversation, replies, gateway request."""

    def __init__(self, person: Person, conversation: Conversation, context: TurnContext) -> None:
        self.person = _merge_person(person, conversation)
        self.conversation = conversation
        self.context = context
        self.replies: list[Reply] = []
        self.request: GatewayRequest | None = None
        self.kept_image: EncodedImage | None = None
        self.deletes_kept_images = False
        #: Stays set when the command ends.
        self.last_command = conversation.command
        self.is_canceled = False

    def to_output(self) -> EngineOutput:
        return EngineOutput(
            person=self.person,
            conversation=self.conversation,
            replies=tuple(self.replies),
            request=self.request,
            kept_image=self.kept_image,
            deletes_kept_images=self.deletes_kept_images,
            command=self.last_command,
            is_canceled=self.is_canceled,
        )

    # State

    @property
    def facts(self) -> dict[str, str]:
        return self.conversation.facts

    @property
    def subscriber(self) -> Subscriber:
        """The subscriber. Valid only after the script has loaded it."""
        assert self.conversation.subscriber is not None
        return self.conversation.subscriber

    @property
    def agent(self) -> Agent:
        """The agent. Valid only after the script has loaded it."""
        assert self.conversation.agent is not None
        return self.conversation.agent

    @property
    def phone(self) -> str:
        """The phone number. Valid only in scripts that ask for it when it is unknown."""
        assert self.person.phone is not None
        return self.person.phone

    @property
    def language(self) -> Language:
        return self.person.language or "en"

    def update(self, **fields: Any) -> None:
        self.conversation = replace(self.conversation, **fields)
        self.last_command = self.conversation.command or self.last_command

    def update_person(self, **fields: Any) -> None:
        self.person = replace(self.person, **fields)

    def set_facts(self, **facts: str) -> None:
        self.update(facts={**self.facts, **facts})

    def clear_facts(self, *names: str) -> None:
        self.update(facts={name: fact for name, fact in self.facts.items() if name not in names})

    def end_command(self) -> None:
        """End the command in progress. The options offered last can still be chosen."""
        self.update(
            stage="idle",
            command=None,
            step=None,
            facts={},
            cards=(),
            operation=None,
            uncertain=False,
        )

    def set_language(self, language: Language) -> None:
        self.update(language=language)
        self.update_person(language=language)

    def mark_trusted(self) -> None:
        self.update(trusted=True)
        self.update_person(trusted=True)

    def set_verified_phone(self, phone: str) -> None:
        """Set the phone number that the person has proved possession of."""
        self.update(phone=phone)
        self.update_person(phone=phone, trusted=True)

    def save_recipient(self, recipient: Recipient) -> None:
        self.remove_recipient(recipient.payee)
        recipients = (*self.person.recipients, recipient)
        self.update_person(recipients=recipients[-MAX_RECIPIENTS:])

    def remove_recipient(self, payee: str) -> None:
        recipients = tuple(r for r in self.person.recipients if r.payee != payee)
        self.update_person(recipients=recipients)

    # Replies

    def translate(self, key: str, **values: object) -> str:
        return texts.translate(self.language, key, **values)

    def translate_or(self, key: str, default_key: str) -> str:
        """Return the text of `key`, which may not exist, or else the text of `default_key`."""
        return self.translate(key if texts.has_text(key) else default_key)

    def format_money(self, amount: str, currency: str | None = None) -> str:
        return texts.format_money(amount, currency or self.context.currency, self.language)

    def localize_money(self, text: str | None) -> str:
        return "" if text is None else texts.localize_money(text, self.language)

    def format_datetime(self, at: datetime) -> str:
        return texts.format_datetime(at.astimezone(self.context.now.tzinfo), self.language)

    def render_rejection(self, error: RequestRejected) -> str:
        if error.code == Code.ACCOUNT_LOCKED:
            return self._render_locked(error.details.get("locked_until"))
        if error.details.get("party") == "receiver":
            return self.translate("error.receiver")
        return self.translate_or(f"error.{error.code}", "error.general")

    def _render_locked(self, until: object) -> str:
        try:
            moment = datetime.fromisoformat(str(until))
        except ValueError:
            return self.translate("error.ACCOUNT_LOCKED")
        return self.translate("pin.locked_until", until=self.format_datetime(moment))

    def add_reply(self, key: str, **values: object) -> None:
        self.replies.append(TextReply(text=self.translate(key, **values)))

    def prepend_to_last_reply(self, key: str) -> None:
        """Put a text before the last reply, in the same message if it fits."""
        text, last = self.translate(key), self.replies[-1]
        combined = f"{text}\n\n{'' if isinstance(last, DocumentReply) else last.text}"
        if isinstance(last, DocumentReply) or len(combined) > MAX_INTERACTIVE_BODY_LENGTH:
            self.replies.insert(-1, TextReply(text=text))
        else:
            self.replies[-1] = replace(last, text=combined)

    def ask(self, text: str, choices: Iterable[Choice] = ()) -> None:
        """Ask a question. The previous options expire, unless the same question is repeated."""
        choices = tuple(choices)
        number = self.conversation.question
        options = self._build_option_list(text, choices, number) if choices else None
        previous = self.conversation.offer
        if previous is None or options != replace(previous, start=0):
            # Based on the clock, so it increases even if the stored conversation was deleted.
            number = max(number + 1, int(self.context.now.timestamp()))
            options = None if options is None else _renumber(options, choices, number)
        self.update(question=number, offer=options, suggested=None)
        self.replies.append(options or TextReply(text=text))

    def suggest_commands(
        self, text: str, *commands: Command, yes: Command | None = None
    ) -> Literal["end"]:
        """Reply and offer next commands. `yes` is the command to start if the person answers yes.

        Answering yes never starts a transfer. Returns "end", with which a script ends the command.
        """
        if self.conversation.has_kept_images and self.conversation.command != "kyc":
            self.update(has_kept_images=False)
            text = f"{text}\n\n{self.translate('picture.reminder')}"
            commands = ("kyc", *(name for name in commands if name != "kyc"))
        self.ask(text, map(self.build_command_choice, commands))
        self.update(suggested=None if yes == "send" else yes)
        return "end"

    def finish(
        self, key: str, *commands: Command, yes: Command | None = None, **values: object
    ) -> Literal["end"]:
        """Reply with a catalog text and offer next commands."""
        return self.suggest_commands(self.translate(key, **values), *commands, yes=yes)

    def build_command_choice(self, name: Command) -> Choice:
        """Build an option that starts a command. It belongs to no question, so it never expires."""
        labels = texts.TEXTS[self.language]
        return Choice(f"cmd:{name}", labels[f"title.{name}"], labels[f"description.{name}"])

    def _build_option_list(self, text: str, choices: tuple[Choice, ...], number: int) -> OptionList:
        length = MAX_BUTTON_TITLE_LENGTH if len(choices) <= MAX_BUTTONS else MAX_ROW_TITLE_LENGTH
        labels = texts.TEXTS[self.language]
        return OptionList(
            text=text,
            options=tuple(
                Option(
                    id=_build_option_id(choice.value, number),
                    title=texts.truncate(choice.title, length),
                    description=texts.truncate(choice.description, MAX_ROW_DESCRIPTION_LENGTH),
                )
                for choice in choices
            ),
            button=labels["choose"],
            more=Option(id=_build_option_id("more", number), title=labels["more"]),
        )


def _renumber(options: OptionList, choices: tuple[Choice, ...], number: int) -> OptionList:
    ids = [_build_option_id(choice.value, number) for choice in choices]
    return replace(
        options,
        options=tuple(
            replace(option, id=id) for option, id in zip(options.options, ids, strict=True)
        ),
        more=replace(options.more, id=_build_option_id("more", number)),
    )


def _build_option_id(value: str, number: int) -> str:
    return value if value.startswith("cmd:") else f"{value}#{number}"


def _merge_person(person: Person, conversation: Conversation) -> Person:
    """Return the person updated from the conversation, which may be saved before the person."""
    return replace(
        person,
        language=conversation.language or person.language,
        phone=conversation.phone or person.phone,
        trusted=conversation.trusted or person.trusted,
    )
