"""What the other words are made of."""

from typing import Literal, get_args

import msgspec

Language = Literal["en", "fr"]
LANGUAGES: tuple[Language, ...] = ("en", "fr")
#: What a person may want; also the words that work in any state.
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

#: How long a person may think before the conversation ends and money in progress is cancelled.
CONVERSATION_TIMEOUT_SECONDS = 5 * 60


class TaggedStruct(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Kept as JSON, so it says what it is."""


class SecretStruct(msgspec.Struct, frozen=True, kw_only=True):
    """Holds a PIN: never kept, never shown."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"
