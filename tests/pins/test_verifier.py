"""PIN storage and weak PINs."""

import pytest

from cases import each
from tapgate.pins.verifier import PinVerifier, StoredPin, is_weak_pin
from tapgate.vault import Vault, VaultError

PINS = PinVerifier(Vault("k" * 32))


def test_only_the_exact_pin_matches() -> None:
    stored = PINS.hash("4831")
    assert [pin for pin in map("{:04}".format, range(10_000)) if PINS.matches(stored, pin)] == [
        "4831"
    ]


def test_same_pin_is_stored_differently_each_time() -> None:
    assert PINS.hash("4831").verifier != PINS.hash("4831").verifier


def test_stored_pin_does_not_contain_the_pin() -> None:
    stored = PINS.hash("4831")
    assert b"4831" not in stored.salt + stored.verifier


def test_pin_verifier_with_another_salt_does_not_match() -> None:
    one, other = PINS.hash("4831"), PINS.hash("4831")
    mixed = StoredPin(one.key_id, other.salt, one.verifier)
    assert not PINS.matches(mixed, "4831")


def test_pin_hashed_with_another_secret_key_raises_an_error() -> None:
    stored = PinVerifier(Vault("j" * 32)).hash("4831")
    with pytest.raises(VaultError):
        PINS.matches(stored, "4831")


@each("pin", ["0000", "7777", "1212", "9090", "1122", "9900"])
def test_pins_with_repeated_digits_are_weak(pin: str) -> None:
    assert is_weak_pin(pin)


@each("pin", ["0123", "1234", "6789", "9876", "3210", "1357", "8642"])
def test_digit_sequences_are_weak(pin: str) -> None:
    assert is_weak_pin(pin)


@each("pin", ["1900", "1962", "2004", "2099", "2580", "0007"])
def test_years_and_well_known_pins_are_weak(pin: str) -> None:
    assert is_weak_pin(pin)


@each("pin", ["4831", "0913", "7294", "1243", "1221", "9012", "1820", "2150"])
def test_pins_without_a_pattern_are_not_weak(pin: str) -> None:
    assert not is_weak_pin(pin)


def test_between_three_and_five_percent_of_pins_are_weak() -> None:
    weak = sum(is_weak_pin(f"{pin:04}") for pin in range(10_000))
    assert 300 < weak < 500
