"""Form client that encrypts requests with our public key, as the provider's client does.

Used by tests, which have no account at the provider.
"""

import base64
import os
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from tapgate.messenger.flows.cipher import (
    AES_KEY_BYTES,
    IV_BYTES,
    OAEP_PADDING,
    Envelope,
    flip_bits,
)


class FlowClient:
    """Client for a single request and its response."""

    def __init__(self, public_pem: str) -> None:
        key = load_pem_public_key(public_pem.encode())
        if not isinstance(key, RSAPublicKey):
            raise ValueError("the public key must be an RSA key")
        self._key = key
        self._aes_key = os.urandom(AES_KEY_BYTES)
        self._vector = os.urandom(IV_BYTES)

    def encrypt(self, request: dict[str, Any]) -> bytes:
        """Return the encrypted body of a request."""
        plain = msgspec.json.encode(request)
        return msgspec.json.encode(
            Envelope(
                encrypted_aes_key=_encode_base64(self._key.encrypt(self._aes_key, OAEP_PADDING)),
                encrypted_flow_data=_encode_base64(
                    AESGCM(self._aes_key).encrypt(self._vector, plain, None)
                ),
                initial_vector=_encode_base64(self._vector),
            )
        )

    def decrypt(self, body: str) -> dict[str, Any]:
        sealed = base64.b64decode(body, validate=True)
        plain = AESGCM(self._aes_key).decrypt(flip_bits(self._vector), sealed, None)
        return msgspec.json.decode(plain, type=dict[str, Any])


def _encode_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
