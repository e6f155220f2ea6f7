"""Vault for sealed secrets and keyed hashes, protected by the installation's secret key.

The secret key itself is never used directly. Each purpose has a key derived from it, so a value
created for one purpose is useless for another.
"""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_KEY_ID_BYTES = 4
_NONCE_BYTES = 12


class VaultError(Exception):
    """The value was created with a different secret key or context, or has been altered."""


class Vault:
    def __init__(self, secret_key: str) -> None:
        self._secret_key = secret_key.encode()
        self._hashers: dict[str, HMAC] = {}
        self._cipher = AESGCM(self._derive("seal"))
        self._key_id_bytes = self._derive("key id")[:_KEY_ID_BYTES]
        #: Identifies the secret key without revealing it. Stored with values that the key protects.
        self.key_id = self._key_id_bytes.hex()

    def seal(self, plain: bytes, context: bytes) -> bytes:
        """Encrypt a value. It can be opened only with the same context."""
        nonce = os.urandom(_NONCE_BYTES)
        return self._key_id_bytes + nonce + self._cipher.encrypt(nonce, plain, context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        key_id, rest = sealed[:_KEY_ID_BYTES], sealed[_KEY_ID_BYTES:]
        self.require_key(key_id.hex())
        try:
            return self._cipher.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], context)
        except (InvalidTag, ValueError):  # ValueError: truncated within the nonce
            raise VaultError(
                "the value was sealed for another context or has been altered"
            ) from None

    def keyed_hash(self, purpose: str, data: bytes) -> bytes:
        """Return the HMAC-SHA-256 of data. Without the key, guesses cannot be verified."""
        hasher = self._hasher(purpose).copy()
        hasher.update(data)
        return hasher.finalize()

    def derive_key(self, purpose: str, salt: bytes) -> bytes:
        """Derive a 32-byte key for one purpose; a random salt makes it unique to one use."""
        return self._derive(f"derived {purpose}", salt)

    def require_key(self, key_id: str) -> None:
        """Raise VaultError if a value was created with a different secret key.

        Without this check, a changed secret key would look like altered data or incorrect PINs.
        """
        if key_id != self.key_id:
            raise VaultError(
                f"created with secret key {key_id}, but the current key is {self.key_id}"
            )

    def _hasher(self, purpose: str) -> HMAC:
        """Return the keyed HMAC of a purpose, cached because every PIN check needs it."""
        hasher = self._hashers.get(purpose)
        if hasher is None:
            hasher = self._hashers[purpose] = HMAC(self._derive(f"hash {purpose}"), SHA256())
        return hasher

    def _derive(self, purpose: str, salt: bytes | None = None) -> bytes:
        info = f"tapgate {purpose}".encode()
        return HKDF(algorithm=SHA256(), length=32, salt=salt, info=info).derive(self._secret_key)
