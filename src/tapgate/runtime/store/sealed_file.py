"""File stream that is encrypted and authenticated with a key derived from the secret key.

After a header (magic, the secret key's fingerprint, a random salt) the file is a sequence of
AES-256-GCM chunks. A chunk's nonce encodes its index and a last-chunk flag, and the header is its
associated data. Decryption therefore fails if a chunk was changed, moved, repeated, dropped or
appended. All chunks but the last have the same size, so the file contains no lengths that would be
used before they are authenticated.
"""

import os
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tapgate.core.vault import Vault
from tapgate.runtime.store import StoreError

CHUNK_BYTES: Final = 1 << 20
_KEY_ID_BYTES = 4
_SALT_BYTES = 32
_TAG_BYTES = 16


class SealedFormat(NamedTuple):
    """Kind of file. Each kind has its own keys, so one cannot pass for another."""

    magic: bytes
    key_purpose: str


BACKUP: Final = SealedFormat(b"tapgate-backup 2\n", "backup")
ARCHIVE: Final = SealedFormat(b"tapgate-archive 2\n", "archive")


class SealedWriter:
    def __init__(self, file: BinaryIO, vault: Vault, kind: SealedFormat) -> None:
        salt = os.urandom(_SALT_BYTES)
        self._file = file
        self._header = kind.magic + bytes.fromhex(vault.key_id) + salt
        self._cipher = _create_cipher(vault, kind, salt, vault.key_id)
        self._chunk_count = 0
        self._buffer = bytearray()
        self.bytes_written = file.write(self._header)

    def write(self, data: bytes) -> None:
        self._buffer += data
        # Keep up to one full chunk in the buffer, because it may be the last one.
        while len(self._buffer) > CHUNK_BYTES:
            self._write_chunk(bytes(self._buffer[:CHUNK_BYTES]), is_last=False)
            del self._buffer[:CHUNK_BYTES]

    def finish(self) -> None:
        self._write_chunk(bytes(self._buffer), is_last=True)
        self._file.flush()

    def _write_chunk(self, data: bytes, *, is_last: bool) -> None:
        nonce = _build_nonce(self._chunk_count, is_last=is_last)
        self._chunk_count += 1
        self.bytes_written += self._file.write(self._cipher.encrypt(nonce, data, self._header))


def is_sealed(file: BinaryIO, kind: SealedFormat) -> bool:
    file.seek(0)
    return file.read(len(kind.magic)) == kind.magic


def read_sealed(file: BinaryIO, vault: Vault, kind: SealedFormat) -> Iterator[bytes]:
    """Yield the decrypted chunks; raise `StoreError` if the file is altered or truncated.

    Also raise `StoreError` if the file was sealed with a different secret key.
    """
    file.seek(0)
    header_bytes = len(kind.magic) + _KEY_ID_BYTES + _SALT_BYTES
    header = file.read(header_bytes)
    if len(header) < header_bytes or not header.startswith(kind.magic):
        raise _build_altered_error()
    key_id, salt = header[len(kind.magic) : -_SALT_BYTES].hex(), header[-_SALT_BYTES:]
    if key_id not in vault.key_names:
        raise StoreError(
            f"it was created with secret key {key_id}, but the configured key is"
            f" {vault.describe_keys()}."
            " Set TAPGATE_SECRET_KEY to its key, or copy the original secrets.json to the data"
            " folder"
        )
    cipher = _create_cipher(vault, kind, salt, key_id)
    chunk, number = file.read(CHUNK_BYTES + _TAG_BYTES), 0
    while True:
        next_chunk = file.read(CHUNK_BYTES + _TAG_BYTES)
        try:
            yield cipher.decrypt(_build_nonce(number, is_last=not next_chunk), chunk, header)
        except (InvalidTag, ValueError):  # ValueError: shorter than a tag
            raise _build_altered_error() from None
        if not next_chunk:
            return
        chunk, number = next_chunk, number + 1


def _create_cipher(vault: Vault, kind: SealedFormat, salt: bytes, key_id: str) -> AESGCM:
    return AESGCM(vault.derive_key(kind.key_purpose, salt, key_id=key_id))


def _build_nonce(number: int, *, is_last: bool) -> bytes:
    """Return a chunk's nonce. It is unique within the file, and every file has its own key."""
    return number.to_bytes(11, "big") + bytes([is_last])


def _build_altered_error() -> StoreError:
    return StoreError("it is damaged, incomplete or altered: authentication failed")
