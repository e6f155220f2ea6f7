"""Issuer keys of a keyset: generated or imported, sealed by the vault, and never returned."""

import secrets
from typing import Final, NamedTuple, Self

from tapgate.card_proofs import sun
from tapgate.vault import Vault

#: Purpose of the keys that each card has for itself. They depend on the installation's secret key
#: and the card only, so that a card can be encoded again with the same key 0.
_CARD_KEY_PURPOSE: Final = "card key"
#: Key numbers of the chip that are not issuer keys: the master key and two unused keys.
_OWN_KEY_NUMBERS: Final = (0, 3, 4)


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
        plain = vault.open(sealed, _build_vault_context(keyset_id))
        return cls(plain[: sun.KEY_BYTES], plain[sun.KEY_BYTES :])

    def seal(self, vault: Vault, keyset_id: int) -> bytes:
        return vault.seal(self.meta_read + self.file_read, _build_vault_context(keyset_id))

    def compute_kcv(self) -> str:
        return sun.compute_kcv(self.meta_read) + sun.compute_kcv(self.file_read)

    def derive_card_keys(
        self, vault: Vault, card_id: int, uid: bytes, version: int
    ) -> dict[str, str]:
        """Return the five keys of a card's chip, as hex digits: `k0` to `k4`."""
        keys = {
            number: vault.derive_key(_CARD_KEY_PURPOSE, b"%d %d" % (card_id, number))
            for number in _OWN_KEY_NUMBERS
        }
        keys[1] = sun.diversify_file_read_key(self.file_read, uid, version)
        keys[2] = self.meta_read
        return {f"k{number}": keys[number][: sun.KEY_BYTES].hex().upper() for number in range(5)}


def _build_vault_context(keyset_id: int) -> bytes:
    return b"card_keyset %d" % keyset_id
