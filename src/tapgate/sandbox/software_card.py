"""NTAG 424 DNA chip in software, for development and tests."""

import os
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.algorithms import AES

from tapgate.card_proofs.sun import FileReadKey, Tap
from tapgate.schemas.card_proofs import CardProof

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
        tap = Tap(self._uid, self.counter)
        plain = _PICC_DATA_TAG + tap.encode() + os.urandom(_PADDING_BYTES)
        encryptor = Cipher(AES(self._meta_read_key), modes.CBC(bytes(16))).encryptor()
        return CardProof(
            picc_data=encryptor.update(plain).hex().upper(),
            cmac=self._file_read_key.compute_mac(tap).hex().upper(),
        )
