"""Moves: what the interpreter does next.

Reading an event returns a move and changes nothing. A gateway response and a chosen option are
moves themselves. A text may be a PIN, so a move's repr hides its fields.
"""

from tapgate.core.images import EncodedImage
from tapgate.messenger.conversation.steps import PinInput
from tapgate.messenger.model import Command, OptionChosen, RequestOutcome, SecretStruct


class Begin(SecretStruct, frozen=True):
    """Cancel the command in progress and start another one. `text` may contain its first facts.

    `later` starts when the command ends. `subject_id` is the record that the tapped button names.
    """

    command: Command
    text: str = ""
    later: "Begin | None" = None
    subject_id: str | None = None


class Cancel(SecretStruct, frozen=True):
    """Cancel the command in progress at the person's request."""


class Repeat(SecretStruct, frozen=True):
    """Repeat the open question, or offer to retry a failed request; otherwise, suggest commands.

    `key` is a text to send before, with `joined` in the same message if it fits.
    """

    key: str | None = None
    joined: bool = False


class Confirm(SecretStruct, frozen=True):
    """Confirm the open confirmation."""


class AnswerText(SecretStruct, frozen=True):
    """Answer the open question with a text, or make another move if it is not understood."""

    text: str
    otherwise: "Move"


class Correct(SecretStruct, frozen=True):
    """Correct an earlier answer, or make another move if the text corrects none."""

    text: str
    otherwise: "Move"


class AnswerImage(SecretStruct, frozen=True):
    """Answer the open question with an image."""

    image: EncodedImage


class SubmitPin(SecretStruct, frozen=True):
    """Send the open PIN step's request."""

    pins: PinInput


class PassOn(SecretStruct, frozen=True):
    """Pass a text on to support staff."""

    text: str


class Say(SecretStruct, frozen=True):
    """Reply. With `declines_suggestion`, a later "yes" no longer starts the suggested command."""

    key: str
    declines_suggestion: bool = False


class Suggest(SecretStruct, frozen=True):
    """Reply and offer commands. `yes` is the command to start if the person answers yes."""

    key: str
    commands: tuple[Command, ...]
    yes: Command | None = None


class ListOptions(SecretStruct, frozen=True):
    """Show the last options again, because the person named a number that is not listed."""


Move = (
    Begin
    | Cancel
    | Repeat
    | Confirm
    | AnswerText
    | Correct
    | AnswerImage
    | SubmitPin
    | PassOn
    | Say
    | Suggest
    | ListOptions
    | OptionChosen
    | RequestOutcome
)
