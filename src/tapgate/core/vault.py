"""Vault for sealed secrets and keyed hashes, protected by the installation's secret keys.

A secret key itself is never used directly. Each purpose has a key derived from it, so a value
created for one purpose is useless for another.

The newest secret key seals and hashes. Values of the older keys stay readable until `tapgate rekey`
has moved them: a sealed value names its key by the key's fingerprint, and a keyed hash is compared
with the hashes of all keys.
"""

import hmac
import os
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tapgate.core.secret_keys import SecretKey, parse_secret_keys

#: A sealed value starts with the fingerprint of its key.
KEY_ID_BYTES = 4
_NONCE_BYTES = 12


class VaultError(Exception):
    """The value was created with a different secret key or context, or has been altered."""


class _Key:
    """Keys derived from one secret key."""

    def __init__(self, secret_key: SecretKey) -> None:
        self.name = secret_key.name
        self._secret_key = secret_key.key.encode()
        self._hashers: dict[str, HMAC] = {}
        self.cipher = AESGCM(self.derive("seal"))
        self.id = self.derive("key id")[:KEY_ID_BYTES].hex()

    def hash(self, purpose: str, data: bytes) -> bytes:
        hasher = self._hashers.get(purpose)
        if hasher is None:  # cached because every PIN check needs it
            hasher = self._hashers[purpose] = HMAC(self.derive(f"hash {purpose}"), SHA256())
        hasher = hasher.copy()
        hasher.update(data)
        return hasher.finalize()

    def derive(self, purpose: str, salt: bytes | None = None) -> bytes:
        info = f"tapgate {purpose}".encode()
        return HKDF(algorithm=SHA256(), length=32, salt=salt, info=info).derive(self._secret_key)


class Vault:
    def __init__(self, secret_key: str) -> None:
        """Create a vault with one key, or with a list of keys such as `2:key,1:key`."""
        keys = [_Key(key) for key in parse_secret_keys(secret_key)]
        self._newest = keys[0]
        self._keys = {key.id: key for key in keys}
        #: Identifies the newest key without revealing it.
        self.key_id = self._newest.id
        #: Fingerprints of all keys, newest first, with the IDs that the operator chose.
        self.key_names = {key.id: key.name for key in keys}

    def seal(self, plain: bytes, context: bytes) -> bytes:
        """Encrypt a value with the newest key. It can be opened only with the same context."""
        nonce = os.urandom(_NONCE_BYTES)
        cipher = self._newest.cipher
        return bytes.fromhex(self.key_id) + nonce + cipher.encrypt(nonce, plain, context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        key_id, rest = sealed[:KEY_ID_BYTES].hex(), sealed[KEY_ID_BYTES:]
        self.require_key(key_id)
        try:
            cipher = self._keys[key_id].cipher
            return cipher.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], context)
        except (InvalidTag, ValueError):  # ValueError: truncated within the nonce
            raise VaultError(
                "the value was sealed for another context or has been altered"
            ) from None

    def keyed_hash(self, purpose: str, data: bytes, *, key_id: str | None = None) -> bytes:
        """Return the HMAC-SHA-256 of data, with the newest key or the one with this fingerprint.

        Without the key, guesses cannot be verified.
        """
        key = self._newest if key_id is None else self._get_key(key_id)
        return key.hash(purpose, data)

    def list_keyed_hashes(self, purpose: str, data: bytes) -> list[bytes]:
        """Return the hashes of data with all keys, newest first, to find a stored hash."""
        return [key.hash(purpose, data) for key in self._keys.values()]

    def matches_hash(self, stored: bytes, purpose: str, data: bytes) -> bool:
        """Return whether a stored hash matches the data under one of the keys."""
        return matches_any(stored, self.list_keyed_hashes(purpose, data))

    def derive_key(self, purpose: str, salt: bytes, *, key_id: str | None = None) -> bytes:
        """Derive a 32-byte key for one purpose; a random salt makes it unique to one use."""
        key = self._newest if key_id is None else self._get_key(key_id)
        return key.derive(f"derived {purpose}", salt)

    def require_key(self, key_id: str) -> None:
        """Raise VaultError if a value was created with a secret key that is not configured.

        Without this check, a changed secret key would look like altered data or incorrect PINs.
        """
        if key_id not in self._keys:
            noun = "the current key is" if len(self._keys) == 1 else "the current keys are"
            raise VaultError(f"created with secret key {key_id}, but {noun} {self.describe_keys()}")

    def describe_keys(self) -> str:
        return ", ".join(self._keys)

    def _get_key(self, key_id: str) -> _Key:
        self.require_key(key_id)
        return self._keys[key_id]


def matches_any(stored: bytes, candidates: Sequence[bytes]) -> bool:
    """Return whether a stored hash equals one of the candidates."""
    return any(hmac.compare_digest(stored, candidate) for candidate in candidates)
