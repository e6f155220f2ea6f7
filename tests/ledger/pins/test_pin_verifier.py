"""PIN verification and lockout."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cases import each
from tapgate.core.vault import Vault, VaultError
from tapgate.ledger.pins.pin_lockout import PinState, PinVerdict, evaluate_pin
from tapgate.ledger.pins.pin_verifier import PinVerifier, StoredPin, is_weak_pin
from tapgate_client.errors import Code

PINS = PinVerifier(Vault("k" * 32))


def test_only_the_exact_pin_matches() -> None:
    stored = PINS.hash("4831")
    pins = map("{:04}".format, range(10_000))
    assert [pin for pin in pins if PINS.matches(stored, pin)] == ["4831"]


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


NOW = datetime(2026, 1, 31, tzinfo=UTC)


def attempt(state: PinState, pin: str, *, minutes: int = 0) -> PinVerdict:
    """Enter a PIN some minutes from now. The correct PIN is 4831."""
    now = NOW + timedelta(minutes=minutes)
    return evaluate_pin(state, pin, lambda _, entered: entered == "4831", now)


def build_state(**fields: Any) -> PinState:
    values = {"failures": 0, "locked_until": None, **fields}
    return PinState(holder_id=1, key_id="k", salt=b"s", verifier=b"v", **values)


def test_third_wrong_pin_locks_the_pin() -> None:
    state = build_state()
    for remaining in (2, 1, 0):
        verdict = attempt(state, "0000")
        assert (verdict.code, verdict.details) == (
            Code.INVALID_PIN,
            {"attempts_remaining": remaining},
        )
        state = verdict.state
    assert state == build_state(failures=3, locked_until=NOW + timedelta(minutes=30))


def test_locked_pin_rejects_every_attempt_without_counting_it() -> None:
    state = build_state(failures=3, locked_until=NOW + timedelta(minutes=30))
    for pin in ("4831", "0000"):
        verdict = attempt(state, pin, minutes=29)
        assert (verdict.state, verdict.code) == (state, Code.ACCOUNT_LOCKED)
        assert verdict.details == {"locked_until": "2026-01-31T00:30:00.000Z"}


def test_correct_pin_resets_the_count_and_an_expired_lock() -> None:
    for state in (build_state(failures=2), build_state(failures=3, locked_until=NOW)):
        verdict = attempt(state, "4831")
        assert (verdict.state, verdict.error) == (build_state(), None)


def test_wrong_pin_after_an_expired_lock_starts_a_new_count() -> None:
    verdict = attempt(build_state(failures=3, locked_until=NOW), "0000")
    assert verdict.state == build_state(failures=1)
    assert verdict.error is not None
    assert verdict.error.details == {"attempts_remaining": 2}
