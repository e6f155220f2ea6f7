"""Chat turns, as reported by the messenger."""

import re
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from tapgate_client import ids
from tapgate_client.schemas.fields import (
    IdRule,
    IntegerRange,
    InvalidValueError,
    ListLength,
    Phone,
    Rule,
)

MAX_TURNS: Final = 100
MAX_REPLIES: Final = 1_000


class ChatChannel(StrEnum):
    MESSAGING = "messaging"  # the messaging provider
    BRIDGE = "bridge"  # the compatibility endpoint


class ChatInput(StrEnum):
    """What the customer sent."""

    TEXT = "text"
    OPTION = "option"  # a tap on a button or list row
    FORM = "form"  # a form for a PIN
    IMAGE = "image"
    OTHER = "other"  # a message that the chat does not support


class ChatOutcome(StrEnum):
    ANSWERED = "answered"
    IN_PROGRESS = "in_progress"  # the chat waits for the customer's answer
    CANCELLED = "cancelled"
    DECLINED = "declined"  # the gateway rejected the last request
    FAILED = "failed"  # the gateway did not respond, or the message could not be processed


class UnavailableService(StrEnum):
    """Service that customers ask for in the chat although it is not offered."""

    AIRTIME = "airtime"
    BILLS = "bills"
    LOANS = "loans"


class SymbolRule(Rule):
    """Command or error name. Digits and spaces are rejected, so it cannot be a chat text."""

    max_json_bytes = 6 * 40

    def __init__(self, letters: str, *, example: str) -> None:
        self._pattern = f"^[{letters}_]{{1,40}}$"
        self.example = example

    def check(self, value: str) -> str:
        if re.fullmatch(self._pattern, value, re.ASCII) is None:
            raise InvalidValueError("must have 1 to 40 letters and underscores")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"pattern": self._pattern}


class ChatTurn(msgspec.Struct, kw_only=True):
    """Chat turn. `turn_id` contains the time at which it ended.

    `command` is null if the message named none. `error_code` is a declined request's code.
    `replies` is the number of replies.
    """

    turn_id: Annotated[str, IdRule(ids.CHAT_TURN)]
    phone_number: Phone
    channel: ChatChannel
    input: ChatInput
    outcome: ChatOutcome
    command: Annotated[str, SymbolRule("a-z", example="balance")] | None = None
    error_code: Annotated[str, SymbolRule("A-Z", example="INSUFFICIENT_FUNDS")] | None = None
    replies: Annotated[int, IntegerRange(0, MAX_REPLIES)] = 0


class ChatTurns(msgspec.Struct, kw_only=True):
    data: Annotated[list[ChatTurn], ListLength(1, MAX_TURNS)]


class ReportChatTurnsResponse(msgspec.Struct, kw_only=True):
    stored: int
