"""Vault: sealed data can be opened only if unaltered, and only with the same context and key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapgate.core.vault import Vault, VaultError

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


KEY_TEXTS = [f"{number}:" + str(number) * 32 for number in range(4)]


@given(
    sealing=st.permutations(KEY_TEXTS),
    used=st.integers(1, 4),
    opening=st.permutations(KEY_TEXTS),
    known=st.integers(1, 4),
    plain=st.binary(max_size=40),
)
def test_vault_opens_a_value_exactly_if_it_has_the_key_that_sealed_it(
    sealing: list[str], used: int, opening: list[str], known: int, plain: bytes
) -> None:
    writer, reader = Vault(",".join(sealing[:used])), Vault(",".join(opening[:known]))
    sealed, hashed = writer.seal(plain, b"context"), writer.keyed_hash("purpose", plain)
    has_key = sealing[0] in opening[:known]
    assert reader.matches_hash(hashed, "purpose", plain) == has_key
    assert not reader.matches_hash(hashed, "purpose", plain + b"!")
    if has_key:
        assert reader.open(sealed, b"context") == plain
        assert reader.derive_key("id", b"", key_id=writer.key_id) == writer.derive_key("id", b"")
    else:
        with pytest.raises(VaultError, match=writer.key_id):
            reader.open(sealed, b"context")


def test_order_of_the_keys_decides_which_one_seals() -> None:
    old, new = "a:" + "k" * 32, "b:" + "j" * 32
    before, between, after = Vault(f"{old},{new}"), Vault(f"{new},{old}"), Vault(new)
    assert before.key_id == VAULT.key_id
    assert between.key_id == after.key_id != VAULT.key_id
    assert between.key_names == {after.key_id: "b", VAULT.key_id: "a"}
    assert between.list_keyed_hashes("pin", b"") == [
        after.keyed_hash("pin", b""),
        VAULT.keyed_hash("pin", b""),
    ]


def test_key_without_id_is_the_same_key_as_with_id_0() -> None:
    sealed = VAULT.seal(b"secret", b"")
    for text in ("0:" + "k" * 32, "1:" + "j" * 32 + "," + "k" * 32):
        assert Vault(text).open(sealed, b"") == b"secret"
