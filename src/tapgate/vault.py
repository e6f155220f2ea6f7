"""What the installation's secret key protects: sealed secrets and keyed hashes.

The secret key itself is never used; each purpose has a key derived from it, so that what is made
for one purpose is worth nothing for another.
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
    """What was stored cannot be used: another secret key, another context, or it was changed."""


class Vault:
    def __init__(self, secret_key: str) -> None:
        self._secret_key = secret_key.encode()
        self._hashers: dict[str, HMAC] = {}
        self._cipher = AESGCM(self._derive("seal"))
        self._sealed_under = self._derive("key id")[:_KEY_ID_BYTES]
        #: Names the secret key without telling anything about it; stored beside what it made.
        self.key_id = self._sealed_under.hex()

    def seal(self, plain: bytes, context: bytes) -> bytes:
        """Encrypt. The context says what it belongs to: opened as anything else it is refused."""
        nonce = os.urandom(_NONCE_BYTES)
        return self._sealed_under + nonce + self._cipher.encrypt(nonce, plain, context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        key_id, rest = sealed[:_KEY_ID_BYTES], sealed[_KEY_ID_BYTES:]
        self.require_key(key_id.hex())
        try:
            return self._cipher.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], context)
        except (InvalidTag, ValueError):  # ValueError: cut off within the nonce
            raise VaultError("sealed for another context, or changed since") from None

    def keyed_hash(self, purpose: str, data: bytes) -> bytes:
        """HMAC-SHA-256 of data, as strong as the secret key however easily data is guessed."""
        hasher = self._hasher(purpose).copy()
        hasher.update(data)
        return hasher.finalize()

    def derive_key(self, purpose: str, salt: bytes) -> bytes:
        """Return a key of 32 bytes for one purpose; a random salt makes it one for a single use."""
        return self._derive(f"derived {purpose}", salt)

    def require_key(self, key_id: str) -> None:
        """Fail loudly rather than call everything wrong that another secret key made."""
        if key_id != self.key_id:
            raise VaultError(f"made with secret key {key_id}, this is {self.key_id}")

    def _hasher(self, purpose: str) -> HMAC:
        """Prepared once for each purpose: every payment's PIN is hashed with one."""
        hasher = self._hashers.get(purpose)
        if hasher is None:
            hasher = self._hashers[purpose] = HMAC(self._derive(f"hash {purpose}"), SHA256())
        return hasher

    def _derive(self, purpose: str, salt: bytes | None = None) -> bytes:
        info = f"tapgate {purpose}".encode()
        return HKDF(algorithm=SHA256(), length=32, salt=salt, info=info).derive(self._secret_key)
