"""Secure Unique NFC: the proof that an NTAG 424 DNA chip adds to its URL at every tap.

The proof consists of `picc_data`, the UID and the read counter encrypted with the meta read key,
and `cmac`, a MAC under the file read key (NXP AN12196). The file read key differs per card: it is
diversified from the issuer's key (NXP AN10922). The MAC input is empty, so the MAC covers only the
UID and the counter.
"""

import hmac
from typing import Final, Self

import msgspec
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.cmac import CMAC

KEY_BYTES: Final = 16
UID_BYTES: Final = 7
PICC_DATA_BYTES: Final = 16
MAC_BYTES: Final = 8
MAX_KEY_VERSION: Final = 255

_COUNTER_BYTES: Final = 3
MAX_COUNTER: Final = 256**_COUNTER_BYTES - 1
#: First byte of the decrypted PICC data: UID and counter are mirrored, and the UID has 7 bytes.
_PICC_DATA_TAG: Final = 0xC7
_TAP_END: Final = 1 + UID_BYTES + _COUNTER_BYTES
#: Start of the input from which the session key for MACs (SV2) is derived.
_SESSION_LABEL: Final = bytes.fromhex("3CC300010080")

_ZERO_BLOCK: Final = bytes(16)
_DIVERSIFICATION_BYTES: Final = 32
_DIVERSIFICATION_LABEL: Final = b"\x01"
#: Reduction polynomial for CMAC subkeys.
_CMAC_POLYNOMIAL: Final = 0x87
_KCV_BYTES: Final = 3


class Tap(msgspec.Struct, frozen=True, gc=False):
    """UID and read counter that a chip reports. Only a valid MAC proves them."""

    encoded: bytes

    @classmethod
    def create(cls, uid: bytes, counter: int) -> Self:
        return cls(uid + counter.to_bytes(_COUNTER_BYTES, "little"))

    @property
    def uid(self) -> bytes:
        return self.encoded[:UID_BYTES]

    @property
    def counter(self) -> int:
        return int.from_bytes(self.encoded[UID_BYTES:], "little")


class MetaReadKey:
    """Key that decrypts the PICC data. All cards in a keyset share it."""

    def __init__(self, key: bytes) -> None:
        # The PICC data is one block with a zero IV, for which CBC and ECB are the same. An ECB
        # context has no state, so that it can be reused.
        self._decryptor = Cipher(AES(key), modes.ECB()).decryptor()  # noqa: S305

    def decrypt(self, picc_data: bytes) -> Tap | None:
        """Return the tap, or None if the data was not encrypted with this key.

        One in 256 random inputs passes, so the MAC must be checked too.
        """
        plain = self._decryptor.update(picc_data)
        if plain[0] != _PICC_DATA_TAG:
            return None
        return Tap(plain[1:_TAP_END])


class FileReadKey:
    """A card's key, from which each tap's session key is derived."""

    def __init__(self, key: bytes) -> None:
        self._cmac = CMAC(AES(key))
        self._cmac.update(_SESSION_LABEL)

    def compute_mac(self, tap: Tap) -> bytes:
        """Return a tap's MAC: the odd bytes of an empty message's CMAC."""
        cmac = self._cmac.copy()
        cmac.update(tap.encoded)
        return CMAC(AES(cmac.finalize())).finalize()[1::2]

    def is_valid(self, tap: Tap, mac: bytes) -> bool:
        return hmac.compare_digest(self.compute_mac(tap), mac)


def diversify_file_read_key(issuer_key: bytes, uid: bytes, version: int) -> bytes:
    """Return a card's file read key for one key version."""
    return diversify(issuer_key, uid + bytes([version]))


def diversify(key: bytes, data: bytes) -> bytes:
    """Return the AES-128 key that AN10922 derives from a key and 1 to 31 bytes of data.

    The input is always padded to two blocks. A CMAC pads shorter inputs to one, so this computes
    the CMAC from its subkeys.
    """
    if not 1 <= len(data) < _DIVERSIFICATION_BYTES:
        raise ValueError("diversification data must have 1 to 31 bytes")
    message = _DIVERSIFICATION_LABEL + data
    subkey = _double(_encrypt(key, _ZERO_BLOCK))
    if len(message) < _DIVERSIFICATION_BYTES:
        message = (message + b"\x80").ljust(_DIVERSIFICATION_BYTES, b"\x00")
        subkey = _double(subkey)
    masked = int.from_bytes(message) ^ int.from_bytes(subkey)
    return _encrypt(key, masked.to_bytes(_DIVERSIFICATION_BYTES))[-KEY_BYTES:]


def compute_kcv(key: bytes) -> str:
    """Return the key check value, by which two parties can compare a key without showing it."""
    return _encrypt(key, _ZERO_BLOCK)[:_KCV_BYTES].hex().upper()


def _encrypt(key: bytes, data: bytes) -> bytes:
    return Cipher(AES(key), modes.CBC(_ZERO_BLOCK)).encryptor().update(data)


def _double(block: bytes) -> bytes:
    """Multiply by x in the CMAC subkey field."""
    shifted = int.from_bytes(block) << 1
    if block[0] & 0x80:
        shifted ^= _CMAC_POLYNOMIAL
    return (shifted & (1 << 128) - 1).to_bytes(len(block))
