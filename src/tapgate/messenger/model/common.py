"""Base types of the messenger's data model."""

from typing import Literal, get_args

import msgspec

Language = Literal["en", "fr"]
LANGUAGES: tuple[Language, ...] = ("en", "fr")
#: Commands that a text can name. All except yes, no and cancel have a script.
Command = Literal[
    "menu",
    "help",
    "balance",
    "send",
    "history",
    "statement",
    "cards",
    "link",
    "block",
    "unblock",
    "change_pin",
    "kyc",
    "limits",
    "language",
    "person",
    "register",
    "yes",
    "no",
    "cancel",
]
COMMANDS: tuple[Command, ...] = get_args(Command)

#: Inactivity after which the conversation expires and the command in progress is discarded.
CONVERSATION_TIMEOUT_SECONDS = 5 * 60


class TaggedStruct(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Struct whose JSON has a tag for its type."""


class SecretStruct(msgspec.Struct, frozen=True, kw_only=True):
    """Struct that may hold a PIN or one-time code. Never stored; its repr hides all fields."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"
