import base64
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_public_key,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.messenger import FLOW_KEY, PUBLIC_PEM, TEST_VECTOR
from cases import each
from drivers.messenger import FlowClient
from tapgate.core.settings.declaration import SettingsError
from tapgate.messenger.flows.cipher import OAEP_PADDING, DecryptionError, FlowKey

BODY = FlowClient(PUBLIC_PEM).encrypt({"action": "data_exchange", "data": {"pin": "4821"}})

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
json_objects = st.dictionaries(st.text(), json_values, max_size=5)


def encode_pem(key: Any, encryption: KeySerializationEncryption | None = None) -> str:
    encryption = encryption or NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


def encode_envelope(**changes: object) -> bytes:
    return json.dumps(json.loads(BODY) | changes).encode()


def test_independent_test_vector_is_decrypted_and_its_response_encrypted() -> None:
    decrypted = FLOW_KEY.decrypt(json.dumps(TEST_VECTOR["body"]).encode())
    assert decrypted.request == TEST_VECTOR["request"]
    assert decrypted.encrypt_response(TEST_VECTOR["answer"]) == TEST_VECTOR["sealed_answer"]


@settings(max_examples=30)
@given(json_objects, json_objects)
def test_request_and_response_round_trip(request: dict[str, Any], response: dict[str, Any]) -> None:
    client = FlowClient(PUBLIC_PEM)
    decrypted = FLOW_KEY.decrypt(client.encrypt(request))
    assert decrypted.request == request
    assert client.decrypt(decrypted.encrypt_response(response)) == response


@settings(max_examples=150)
@given(st.integers(0, len(BODY) - 1), st.integers(1, 255))
def test_any_modified_byte_is_detected(position: int, flip: int) -> None:
    body = bytearray(BODY)
    body[position] ^= flip
    with pytest.raises(DecryptionError):
        FLOW_KEY.decrypt(bytes(body))


@settings(max_examples=100)
@given(st.binary(max_size=300) | json_values.map(lambda value: json.dumps(value).encode()))
def test_arbitrary_body_cannot_be_decrypted(body: bytes) -> None:
    with pytest.raises(DecryptionError):
        FLOW_KEY.decrypt(body)


def test_non_canonical_base64_is_rejected() -> None:
    vector = json.loads(BODY)["initial_vector"]
    last = vector[-3]
    for other in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/":
        non_canonical = vector[:-3] + other + vector[-2:]
        if other != last and base64.b64decode(non_canonical) == base64.b64decode(vector):
            with pytest.raises(DecryptionError):
                FLOW_KEY.decrypt(encode_envelope(initial_vector=non_canonical))
            break
    else:
        pytest.fail("no second base64 encoding of the same bytes was found")


@each("vector", [b"", b"x" * 12, b"x" * 17])
def test_initial_vector_of_the_wrong_length_is_rejected(vector: bytes) -> None:
    with pytest.raises(DecryptionError):
        FLOW_KEY.decrypt(encode_envelope(initial_vector=base64.b64encode(vector).decode()))


@each("size", [24, 32])
def test_aes_key_that_is_too_long_is_rejected(size: int) -> None:
    client = FlowClient(PUBLIC_PEM)
    client.aes_key = b"k" * size
    with pytest.raises(DecryptionError):
        FLOW_KEY.decrypt(client.encrypt({"action": "ping"}))


@each("size", [0, 15])
def test_aes_key_that_is_too_short_is_rejected(size: int) -> None:
    encrypted = load_pem_public_key(PUBLIC_PEM.encode()).encrypt(b"k" * size, OAEP_PADDING)
    with pytest.raises(DecryptionError):
        FLOW_KEY.decrypt(encode_envelope(encrypted_aes_key=base64.b64encode(encrypted).decode()))


@each("plain", [b"", b"[]", b'"text"', b"{", b"\xff", b'{"a":' * 50_000])
def test_plaintext_that_is_not_a_json_object_is_rejected(plain: bytes) -> None:
    body = FlowClient(PUBLIC_PEM).encrypt(msgspec.Raw(plain))
    with pytest.raises(DecryptionError):
        FLOW_KEY.decrypt(body)


def test_another_private_key_cannot_decrypt() -> None:
    other = FlowKey(encode_pem(rsa.generate_private_key(65537, 2048)))
    with pytest.raises(DecryptionError):
        other.decrypt(BODY)


def test_decrypted_request_is_not_in_the_repr() -> None:
    assert "4821" not in repr(FLOW_KEY.decrypt(BODY))


@each(
    "build_key, message",
    [
        (
            lambda: "-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----",
            "must be an RSA",
        ),
        (lambda: PUBLIC_PEM, "must be an RSA"),
        (lambda: encode_pem(ec.generate_private_key(ec.SECP256R1())), "must be an RSA"),
        (lambda: encode_pem(rsa.generate_private_key(65537, 1024)), "must have at least 2048 bits"),
        (
            lambda: encode_pem(
                rsa.generate_private_key(65537, 2048), BestAvailableEncryption(b"open sesame")
            ),
            "must not be protected",
        ),
    ],
)
def test_error_about_an_unusable_private_key_names_the_setting(
    build_key: Callable[[], str], message: str
) -> None:
    with pytest.raises(SettingsError, match="TAPGATE_MESSENGER_FLOW_PRIVATE_KEY " + message):
        FlowKey(build_key())
