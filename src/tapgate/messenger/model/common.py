"""Base types of the messenger's data model."""

from typing import Literal, get_args

import msgspec

Language = Literal["en", "fr"]
LANGUAGES: tuple[Language, ...] = ("en", "fr")
#: Commands a user can give, including the ones that work in any state.
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
DocumentType = Literal["id_front", "id_back", "selfie", "proof_of_address"]

#: Inactivity after which the conversation ends and a payment in progress is canceled.
CONVERSATION_TIMEOUT_SECONDS = 5 * 60


class TaggedStruct(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Struct stored as JSON with a tag for its type."""


class SecretStruct(msgspec.Struct, frozen=True, kw_only=True):
    """Struct that holds a PIN or code. It is never stored, and its repr hides all fields."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"
