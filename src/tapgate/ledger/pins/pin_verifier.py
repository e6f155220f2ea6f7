"""Salted, keyed PIN hashes, and weak PIN rejection.

Without a key, even a slow hash of a four-digit PIN can be brute-forced. Hashes are protected by
a key that is not in the database.
"""

import hmac
import os
from typing import Protocol

import msgspec

from tapgate.core.vault import Vault
from tapgate.ledger.pins.wrong_pin_limit import WrongPinLimit
from tapgate_client.errors import Code, invalid_field

_SALT_BYTES = 16

_DIGIT_SEQUENCES = "0123456789", "9876543210", "02468", "86420", "13579", "97531"
_BIRTH_CENTURIES = "19", "20"
#: Common PINs that match no other rule, such as a keypad column (2580) and LOVE on a keypad (5683).
_COMMON_PINS = frozenset({"0007", "0852", "1004", "1230", "1236", "1342", "2580", "5683", "7890"})


class PinHash(Protocol):
    """Salted, keyed PIN hash. `key_id` identifies the key."""

    @property
    def key_id(self) -> str: ...
    @property
    def salt(self) -> bytes: ...
    @property
    def verifier(self) -> bytes: ...


class StoredPin(msgspec.Struct, frozen=True):
    key_id: str
    salt: bytes
    verifier: bytes


class PinVerifier:
    def __init__(
        self,
        vault: Vault,
        *,
        refuse_weak: bool = True,
        wrong_pin_limit: WrongPinLimit | None = None,
    ) -> None:
        self._vault = vault
        self._refuse_weak = refuse_weak
        self.wrong_pin_limit = wrong_pin_limit

    def hash(self, pin: str) -> StoredPin:
        salt = os.urandom(_SALT_BYTES)
        key_id = self._vault.key_id
        return StoredPin(key_id, salt, self._compute_verifier(salt, pin, key_id))

    def matches(self, stored: PinHash, pin: str) -> bool | StoredPin:
        """Return whether a PIN is correct, or its new hash if an older secret key was used.

        Raise VaultError if the key is not configured. Otherwise every PIN would count as wrong and
        soon be locked.
        """
        verifier = self._compute_verifier(stored.salt, pin, stored.key_id)
        if not hmac.compare_digest(stored.verifier, verifier):
            return False
        return stored.key_id == self._vault.key_id or self.hash(pin)

    def require_strong(self, field: str, pin: str, *, error: Code = Code.VALIDATION_FAILED) -> None:
        """Reject a new PIN that is easy to guess, unless the installation accepts weak PINs."""
        if self._refuse_weak and is_weak_pin(pin):
            raise invalid_field(field, "is too easy to guess", error)

    def _compute_verifier(self, salt: bytes, pin: str, key_id: str) -> bytes:
        return self._vault.keyed_hash("pin", salt + pin.encode(), key_id=key_id)


def is_weak_pin(pin: str) -> bool:
    """Return whether a PIN is among the first that a thief would try."""
    return (
        pin[:2] == pin[2:]  # 7777 and 1212
        or (pin[0] == pin[1] and pin[2] == pin[3])  # 1122
        or any(pin in sequence for sequence in _DIGIT_SEQUENCES)
        or pin.startswith(_BIRTH_CENTURIES)
        or pin in _COMMON_PINS
    )
