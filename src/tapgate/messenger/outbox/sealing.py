"""Encryption of stored messages, which contain balances, names and one-time codes."""

import msgspec

from tapgate.messenger.model import OutgoingMessage
from tapgate.vault import Vault, VaultError

_decoder: msgspec.json.Decoder[OutgoingMessage] = msgspec.json.Decoder(OutgoingMessage)


class UnreadableError(Exception):
    """The content is missing, sealed with a different secret key, or in an unknown format."""


def seal_message(vault: Vault, row_id: int, message: OutgoingMessage) -> bytes:
    return vault.seal(msgspec.json.encode(message), _get_sealing_context(row_id))


def open_message(vault: Vault, row_id: int, content: bytes) -> OutgoingMessage:
    try:
        return _decoder.decode(vault.open(content, _get_sealing_context(row_id)))
    except (VaultError, msgspec.DecodeError) as error:
        raise UnreadableError(type(error).__name__) from None


def _get_sealing_context(row_id: int) -> bytes:
    """Return the sealing context, which binds the content to its row."""
    return b"outbox %d" % row_id
