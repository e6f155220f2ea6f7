"""Keyset keys: generated or imported, sealed by the vault, and never returned."""

import secrets
from typing import Final, NamedTuple, Self

from tapgate.core.vault import Vault
from tapgate.ledger.card_proofs import sun

#: Chip key numbers that are not issuer keys: the chip's master key and two unused keys.
_OWN_KEY_NUMBERS: Final = (0, 3, 4)
#: Purpose of per-card keys for cards encoded before keysets had a master key.
_LEGACY_PURPOSE: Final = "card key"


class IssuerKeys(NamedTuple):
    meta_read: bytes
    file_read: bytes

    @classmethod
    def create(cls, meta_read: str | None, file_read: str | None) -> Self:
        """Return the imported keys. A key that is None is generated."""
        return cls(
            *(
                secrets.token_bytes(sun.KEY_BYTES) if key is None else bytes.fromhex(key)
                for key in (meta_read, file_read)
            )
        )

    @classmethod
    def open(cls, vault: Vault, keyset_id: int, sealed: bytes) -> Self:
        plain = vault.open(sealed, build_vault_context(keyset_id))
        return cls(plain[: sun.KEY_BYTES], plain[sun.KEY_BYTES :])

    def seal(self, vault: Vault, keyset_id: int) -> bytes:
        return vault.seal(self.meta_read + self.file_read, build_vault_context(keyset_id))

    def compute_kcv(self) -> str:
        return sun.compute_kcv(self.meta_read) + sun.compute_kcv(self.file_read)

    def build_card_keys(self, uid: bytes, version: int, own_keys: dict[int, bytes]) -> list[bytes]:
        """Return a card's five chip keys, by key number."""
        file_read_key = sun.diversify_file_read_key(self.file_read, uid, version)
        keys = own_keys | {1: file_read_key, 2: self.meta_read}
        return [keys[number] for number in range(5)]


def generate_master_key(vault: Vault, keyset_id: int) -> bytes:
    """Return a random key, sealed, from which the keyset's per-card keys are derived."""
    return vault.seal(secrets.token_bytes(sun.KEY_BYTES), build_master_context(keyset_id))


def derive_own_keys(vault: Vault, keyset_id: int, sealed: bytes, uid: bytes) -> dict[int, bytes]:
    """Return this card's per-card keys, by key number."""
    master_key = vault.open(sealed, build_master_context(keyset_id))
    return {number: sun.diversify(master_key, uid + bytes([number])) for number in _OWN_KEY_NUMBERS}


def derive_legacy_own_keys(vault: Vault, card_id: int, key_id: str) -> bytes:
    """Return per-card keys for a card encoded before keysets had a master key.

    They are derived from the secret key with this fingerprint, and `tapgate rekey` stores them.
    """
    keys = [
        vault.derive_key(_LEGACY_PURPOSE, b"%d %d" % (card_id, number), key_id=key_id)
        for number in _OWN_KEY_NUMBERS
    ]
    return b"".join(key[: sun.KEY_BYTES] for key in keys)


def split_own_keys(keys: bytes) -> dict[int, bytes]:
    """Return per-card keys by key number."""
    size = sun.KEY_BYTES
    return {
        number: keys[size * index : size * (index + 1)]
        for index, number in enumerate(_OWN_KEY_NUMBERS)
    }


def build_vault_context(keyset_id: int) -> bytes:
    return b"card_keyset %d" % keyset_id


def build_master_context(keyset_id: int) -> bytes:
    return b"card_keyset master %d" % keyset_id


def build_own_keys_context(card_id: int) -> bytes:
    return b"card own keys %d" % card_id
