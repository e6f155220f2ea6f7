"""PIN lockout: three consecutive wrong PINs lock the PIN for 30 minutes."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tapgate.errors import Code
from tapgate.pins.lockout import PinState, PinVerdict, evaluate_pin

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
