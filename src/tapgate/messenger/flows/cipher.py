"""Decrypts form client requests and encrypts the responses.

Each request carries its own AES key, encrypted with our RSA public key. The response uses the same
AES key, with every bit of the initialization vector flipped, so that no vector is used twice with
one key.
"""

import base64
import binascii
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from tapgate.core.settings.declaration import SettingsError

OAEP_PADDING: Final = OAEP(mgf=MGF1(SHA256()), algorithm=SHA256(), label=None)
AES_KEY_BYTES: Final = 16
IV_BYTES: Final = 16

_SETTING_NAME = "TAPGATE_MESSENGER_FLOW_PRIVATE_KEY"
_MIN_RSA_BITS = 2048


class DecryptionError(Exception):
    """The request is malformed, encrypted for another key, or was modified in transit.

    On status 421, the provider's client fetches our public key again and retries once.
    """

    status = 421


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """Encrypted request in base64. The last 16 bytes of `encrypted_flow_data` are the GCM tag."""

    encrypted_aes_key: str
    encrypted_flow_data: str
    initial_vector: str


class DecryptedRequest(NamedTuple):
    request: dict[str, Any]
    encrypt_response: Callable[[dict[str, Any]], str]

    def __repr__(self) -> str:
        return "DecryptedRequest(...)"  # the request may hold a PIN


class FlowKey:
    """RSA private key that decrypts form requests."""

    def __init__(self, pem: str) -> None:
        self._key = _load_rsa_key(pem)

    @property
    def public_pem(self) -> str:
        """Public key in PEM format, with which the form client encrypts its AES key."""
        encoded = self._key.public_key().public_bytes(
            Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
        )
        return encoded.decode()

    def decrypt(self, body: bytes) -> DecryptedRequest:
        try:
            envelope = msgspec.json.decode(body, type=Envelope)
            vector = _decode_base64(envelope.initial_vector)
            aes_key = self._key.decrypt(_decode_base64(envelope.encrypted_aes_key), OAEP_PADDING)
            if len(aes_key) != AES_KEY_BYTES or len(vector) != IV_BYTES:
                raise DecryptionError
            plain = AESGCM(aes_key).decrypt(
                vector, _decode_base64(envelope.encrypted_flow_data), None
            )
            request = msgspec.json.decode(plain, type=dict[str, Any])
        except (InvalidTag, ValueError, RecursionError):
            # Not chained: the exception's message may contain decrypted data.
            raise DecryptionError from None
        return DecryptedRequest(request, lambda response: _encrypt(aes_key, vector, response))


def flip_bits(vector: bytes) -> bytes:
    return bytes(byte ^ 0xFF for byte in vector)


def _encrypt(aes_key: bytes, vector: bytes, response: dict[str, Any]) -> str:
    plain = msgspec.json.encode(response)
    return base64.b64encode(AESGCM(aes_key).encrypt(flip_bits(vector), plain, None)).decode()


def _decode_base64(encoded: str) -> bytes:
    content = base64.b64decode(encoded, validate=True)
    if base64.b64encode(content).decode() != encoded:
        # Reject nonzero trailing bits, so that each value has only one valid encoding.
        raise binascii.Error("not canonical")
    return content


@lru_cache(maxsize=1)
def _load_rsa_key(pem: str) -> RSAPrivateKey:
    """Load the RSA key. Cached, because the primality check takes over a tenth of a second."""
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except TypeError:
        raise SettingsError(f"{_SETTING_NAME} must not be protected by a password") from None
    except (ValueError, UnsupportedAlgorithm):
        raise SettingsError(f"{_SETTING_NAME} must be an RSA private key in PEM format") from None
    if not isinstance(key, RSAPrivateKey):
        raise SettingsError(f"{_SETTING_NAME} must be an RSA private key in PEM format")
    if key.key_size < _MIN_RSA_BITS:
        raise SettingsError(f"{_SETTING_NAME} must have at least {_MIN_RSA_BITS} bits")
    return key
