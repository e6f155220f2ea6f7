"""NTAG 424 DNA chip in software, for development and tests."""

import os
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.algorithms import AES

from tapgate.core.vault import Vault
from tapgate.ledger.card_proofs.issuer_keys import IssuerKeys
from tapgate.ledger.card_proofs.sun import FileReadKey, Tap, diversify_file_read_key
from tapgate.runtime.store.database import Database
from tapgate_client.schemas.card_proofs import CardProof

_PICC_DATA_TAG: Final = b"\xc7"
_PADDING_BYTES: Final = 5


class SoftwareCard:
    """Chip with its keys and its read counter, which every tap raises."""

    def __init__(
        self, uid: bytes, meta_read_key: bytes, file_read_key: bytes, counter: int = 0
    ) -> None:
        self._uid = uid
        self._meta_read_key = meta_read_key
        self._file_read_key = FileReadKey(file_read_key)
        self.counter = counter

    def tap(self) -> CardProof:
        """Raise the counter and return the proof."""
        self.counter += 1
        tap = Tap.create(self._uid, self.counter)
        plain = _PICC_DATA_TAG + tap.encoded + os.urandom(_PADDING_BYTES)
        encryptor = Cipher(AES(self._meta_read_key), modes.CBC(bytes(16))).encryptor()
        return CardProof(
            picc_data=encryptor.update(plain).hex().upper(),
            cmac=self._file_read_key.compute_mac(tap).hex().upper(),
        )


class ChipKeys(NamedTuple):
    """Chip keys, and the counter from the last tap that was consumed."""

    uid: bytes
    meta_read_key: bytes
    file_read_key: bytes
    counter: int


async def load_card(
    database: Database, vault: Vault, serial: str, *, pending: bool
) -> SoftwareCard | None:
    """Return a chip with a card's keys from the database, or None if the card has none.

    `pending` selects the keys that no tap has confirmed yet.
    """
    keys = await load_chip_keys(database, vault, serial, pending=pending)
    return None if keys is None else SoftwareCard(*keys)


async def load_chip_keys(
    database: Database, vault: Vault, serial: str, *, pending: bool = False
) -> ChipKeys | None:
    prefix = "pending_" if pending else ""
    row = await database.fetchrow(
        f"""SELECT uid, {prefix}key_version, last_counter, keyset.id, keyset.keys
            FROM cards JOIN card_keysets keyset ON keyset.id = {prefix}keyset_id
            WHERE serial = $1""",
        serial,
    )
    if row is None:
        return None
    uid, version, last_counter, keyset_id, sealed = row
    keys = IssuerKeys.open(vault, keyset_id, sealed)
    uid_bytes = bytes.fromhex(uid.replace(":", ""))
    file_read_key = diversify_file_read_key(keys.file_read, uid_bytes, version)
    return ChipKeys(uid_bytes, keys.meta_read, file_read_key, 0 if pending else last_counter or 0)
