"""Vault: sealed data can be opened only if unaltered, and only with the same context and key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapgate.vault import Vault, VaultError

VAULT = Vault("k" * 32)


@given(plain=st.binary(), context=st.binary())
def test_sealed_data_can_be_opened(plain: bytes, context: bytes) -> None:
    assert VAULT.open(VAULT.seal(plain, context), context) == plain


def test_sealing_twice_gives_different_results() -> None:
    assert VAULT.seal(b"secret", b"") != VAULT.seal(b"secret", b"")


def test_wrong_context_is_rejected() -> None:
    with pytest.raises(VaultError):
        VAULT.open(VAULT.seal(b"secret", b"key 1"), b"key 2")


@given(position=st.integers(0, 37), change=st.integers(1, 255))
def test_changed_byte_is_rejected(position: int, change: int) -> None:
    sealed = bytearray(VAULT.seal(b"secret", b"context"))
    sealed[position] ^= change
    with pytest.raises(VaultError):
        VAULT.open(bytes(sealed), b"context")


@given(length=st.integers(0, 37))
def test_truncated_data_is_rejected(length: int) -> None:
    with pytest.raises(VaultError):
        VAULT.open(VAULT.seal(b"secret", b"context")[:length], b"context")


def test_error_for_another_secret_key_names_the_key_id() -> None:
    other = Vault("j" * 32)
    with pytest.raises(VaultError, match=VAULT.key_id):
        other.open(VAULT.seal(b"secret", b""), b"")
    assert "k" * 4 not in VAULT.key_id


def test_keyed_hashes_are_deterministic_and_differ_by_key_purpose_and_data() -> None:
    hashes = {
        VAULT.keyed_hash("pin", b"data"),
        VAULT.keyed_hash("pin", b"other"),
        VAULT.keyed_hash("api_key", b"data"),
        Vault("j" * 32).keyed_hash("pin", b"data"),
    }
    assert len(hashes) == 4
    assert VAULT.keyed_hash("pin", b"data") == Vault("k" * 32).keyed_hash("pin", b"data")


def test_derived_keys_differ_by_secret_key_purpose_and_salt() -> None:
    keys = {
        vault.derive_key(purpose, salt)
        for vault in (VAULT, Vault("another" * 5))
        for purpose in ("backup", "id")
        for salt in (b"", b"salt")
    }
    assert len(keys) == 8
    assert {len(key) for key in keys} == {32}
    assert VAULT.derive_key("backup", b"salt") == Vault("k" * 32).derive_key("backup", b"salt")
    assert all(bytes.fromhex(VAULT.key_id) != key[:4] for key in keys)
