"""Transcript: a conversation's last messages, for a support request.

It is sealed by the vault and stored with the conversation. Customer texts that may contain a PIN
or a one-time code are left out, and long numbers in the remaining ones are masked. Links are
masked too, because the link to a statement is a credential.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from tapgate.core.vault import Vault, VaultError
from tapgate.messenger.conversation.state import Conversation
from tapgate.messenger.model import DocumentReply, Event, OptionChosen, Reply, TextMessage
from tapgate.messenger.understanding.secret_detection import may_contain_pin

MAX_LINES: Final = 8
_MAX_LINE_LENGTH: Final = 300
_LONG_NUMBER_PATTERN: Final = re.compile(r"[0-9]{4,}")

_LINK_PATTERN: Final = re.compile(r"https?://\S+")

Transcript = tuple[str, ...]


def seal(vault: Vault, address: str, transcript: Transcript) -> bytes:
    return vault.seal(msgspec.json.encode(transcript), get_sealing_context(address))


def open_sealed(vault: Vault, address: str, sealed: bytes | None) -> Transcript:
    """Return the transcript; an unreadable one is empty, because it is only additional context."""
    if sealed is None:
        return ()
    try:
        content = vault.open(sealed, get_sealing_context(address))
        return msgspec.json.decode(content, type=Transcript)
    except (VaultError, msgspec.DecodeError):
        return ()


def add_turn(
    transcript: Transcript, before: Conversation, event: Event, replies: Sequence[Reply]
) -> Transcript:
    """Return the transcript with the messages of one turn. `before` is the conversation before."""
    lines = [*transcript]
    text = _get_customer_text(before, event)
    if text is not None:
        lines.append(f"Customer: {_shorten(text)}")
    lines += [
        f"Chat: {_shorten(reply.text)}" for reply in replies if not isinstance(reply, DocumentReply)
    ]
    return tuple(lines[-MAX_LINES:])


def _get_customer_text(before: Conversation, event: Event) -> str | None:
    """Return what the customer wrote or chose, or None if it must not be stored."""
    match event:
        case OptionChosen(id=option_id):
            options = () if before.offer is None else before.offer.options
            return next((option.title for option in options if option.id == option_id), None)
        case TextMessage(text=str(text)) if not (
            before.is_awaiting_pin or may_contain_pin(text) or not _has_letter(text)
        ):
            return _LONG_NUMBER_PATTERN.sub("…", text)
    return None


def _has_letter(text: str) -> bool:
    return any(char.isalpha() for char in text)


def _shorten(text: str) -> str:
    line = " ".join(_LINK_PATTERN.sub("…", text).split())
    return line if len(line) <= _MAX_LINE_LENGTH else f"{line[: _MAX_LINE_LENGTH - 1]}…"


def get_sealing_context(address: str) -> bytes:
    return b"transcript " + address.encode()
