"""Secure Unique NFC: published vectors, and rejection of every altered proof."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from examples import limit_examples
from tapgate.ledger.card_proofs.sun import (
    MAX_COUNTER,
    FileReadKey,
    MetaReadKey,
    Tap,
    compute_kcv,
    diversify,
    diversify_file_read_key,
)
from tapgate_sandbox.software_card import SoftwareCard

ZERO_KEY = bytes(16)
#: Example key in AN10922.
DIVERSIFIED_KEY = bytes.fromhex("00112233445566778899AABBCCDDEEFF")

#: AN12196: personalization example with factory keys.
PICC_DATA = bytes.fromhex("EF963FF7828658A599F3041510671E88")
MAC = bytes.fromhex("94EED9EE65337086")
TAP = Tap.create(bytes.fromhex("04DE5F1EACC040"), 61)


def test_published_tap_is_decrypted_and_its_mac_is_valid() -> None:
    assert MetaReadKey(ZERO_KEY).decrypt(PICC_DATA) == TAP
    assert FileReadKey(ZERO_KEY).compute_mac(TAP) == MAC
    assert FileReadKey(ZERO_KEY).is_valid(TAP, MAC)


@each(
    "uid, counter, mac",
    [
        # Examples from an open-source SDM backend, with factory keys.
        ("041E3C8A2D6B80", 6, "4B00064004B0B3D3"),
        ("04DE5F1EACC040", 61, "94EED9EE65337086"),
    ],
)
def test_published_macs(uid: str, counter: int, mac: str) -> None:
    tap = Tap.create(bytes.fromhex(uid), counter)
    assert FileReadKey(ZERO_KEY).compute_mac(tap).hex().upper() == mac


def test_published_tap_without_file_data_is_decrypted() -> None:
    picc_data = bytes.fromhex("FD91EC264309878BE6345CBE53BADF40")
    expected = Tap.create(bytes.fromhex("04958CAA5C5E80"), 8)
    assert MetaReadKey(ZERO_KEY).decrypt(picc_data) == expected


def test_keys_are_diversified_as_in_the_published_example() -> None:
    data = bytes.fromhex("04782E21801D803042F54E585020416275")
    assert diversify(DIVERSIFIED_KEY, data).hex().upper() == "A8DD63A3B89D54B37CA802473FDA9175"


@each(
    "length, expected",
    [
        (1, "281049D52ECBC8F60961993D34DE3D54"),
        (7, "E8B7F67C78C34AF1446E331EF7E6D3FF"),
        (15, "5A3C7F6F0687F24F82DEE7EDA0970D08"),
        (16, "FEED9FBD36CDB16819A72D30BCF9240B"),
        (31, "21C28CD89BB3147F66C7DBD4851CAB20"),
    ],
)
def test_short_and_full_inputs_are_diversified_over_two_blocks(length: int, expected: str) -> None:
    assert diversify(DIVERSIFIED_KEY, bytes(range(length))).hex().upper() == expected


@each("length", [0, 32])
def test_diversification_data_of_another_length_is_rejected(length: int) -> None:
    with pytest.raises(ValueError, match="1 to 31 bytes"):
        diversify(DIVERSIFIED_KEY, bytes(length))


def test_file_read_key_depends_on_the_uid_and_the_version() -> None:
    keys = {
        diversify_file_read_key(DIVERSIFIED_KEY, uid, version)
        for uid in (TAP.uid, bytes(7))
        for version in (1, 2)
    }
    assert len(keys) == 4
    expected = diversify(DIVERSIFIED_KEY, TAP.uid + b"\x02")
    assert diversify_file_read_key(DIVERSIFIED_KEY, TAP.uid, 2) == expected


def test_key_check_value_is_the_start_of_the_encrypted_zero_block() -> None:
    assert compute_kcv(ZERO_KEY) == "66E94B"


def test_every_altered_bit_is_rejected() -> None:
    meta_read_key, file_read_key = MetaReadKey(ZERO_KEY), FileReadKey(ZERO_KEY)
    for picc_data in flip_each_bit(PICC_DATA):
        tap = meta_read_key.decrypt(picc_data)
        assert tap is None or not file_read_key.is_valid(tap, MAC)
    for mac in flip_each_bit(MAC):
        assert not file_read_key.is_valid(TAP, mac)


@settings(max_examples=limit_examples(200))
@given(
    keys=st.tuples(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16)),
    uid=st.binary(min_size=7, max_size=7),
    counter=st.integers(0, MAX_COUNTER - 1),
    bits=st.sets(st.integers(0, 191), min_size=1, max_size=4),
)
def test_altered_proof_of_any_card_is_rejected(
    keys: tuple[bytes, bytes], uid: bytes, counter: int, bits: set[int]
) -> None:
    meta_read_key, file_read_key = MetaReadKey(keys[0]), FileReadKey(keys[1])
    picc_data, mac = SoftwareCard(uid, *keys, counter).tap().decode()
    tap = meta_read_key.decrypt(picc_data)
    assert tap == Tap.create(uid, counter + 1)
    assert file_read_key.is_valid(tap, mac)
    mask = sum(1 << bit for bit in bits)
    altered = (int.from_bytes(picc_data + mac) ^ mask).to_bytes(24)
    tap = meta_read_key.decrypt(altered[:16])
    assert tap is None or not file_read_key.is_valid(tap, altered[16:])


def flip_each_bit(data: bytes) -> list[bytes]:
    number = int.from_bytes(data)
    return [(number ^ 1 << bit).to_bytes(len(data)) for bit in range(8 * len(data))]


def test_mac_of_another_length_is_rejected() -> None:
    assert not FileReadKey(ZERO_KEY).is_valid(TAP, MAC[:-1])
    assert not FileReadKey(ZERO_KEY).is_valid(TAP, MAC + b"\x00")


def test_proof_under_another_key_is_rejected() -> None:
    tap = MetaReadKey(DIVERSIFIED_KEY).decrypt(PICC_DATA)
    assert tap != TAP
    assert not FileReadKey(DIVERSIFIED_KEY).is_valid(TAP, MAC)
