"""PIN lockout policy: three consecutive failures lock the PIN for 30 minutes."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from tapgate.clock import format_rfc3339
from tapgate.errors import ApiError, Code
from tapgate.pins.verifier import PinHash

MAX_PIN_FAILURES = 3
LOCK_DURATION = timedelta(minutes=30)


class PinState(msgspec.Struct, frozen=True, gc=False):
    """A stored PIN with its failure count and lock."""

    holder_id: int
    key_id: str
    salt: bytes
    verifier: bytes
    failures: int
    locked_until: datetime | None


class PinVerdict(msgspec.Struct, frozen=True, gc=False):
    """Verdict on one attempt: the `state` to store, and a `code` that is None for a correct PIN."""

    state: PinState
    code: Code | None = None
    details: dict[str, Any] | None = None

    @property
    def error(self) -> ApiError | None:
        return None if self.code is None else ApiError(self.code, details=self.details)


#: Returns whether a PIN matches a stored PIN, using the key with which the stored PIN was hashed.
#: For a correct PIN of an older key, returns its hash with the newest key, which replaces it.
PinMatcher = Callable[[PinState, str], bool | PinHash]


def evaluate_pin(
    state: PinState, pin: str, is_correct_pin: PinMatcher, now: datetime
) -> PinVerdict:
    """Evaluate one attempt. While the PIN is locked, attempts are neither compared nor counted."""
    if state.locked_until is not None and now < state.locked_until:
        return PinVerdict(
            state, Code.ACCOUNT_LOCKED, {"locked_until": format_rfc3339(state.locked_until)}
        )
    match = is_correct_pin(state, pin)
    if match:
        stored = state if match is True else match
        return PinVerdict(
            PinState(state.holder_id, stored.key_id, stored.salt, stored.verifier, 0, None)
        )
    failures = 1 if state.locked_until is not None else state.failures + 1
    locked_until = now + LOCK_DURATION if failures >= MAX_PIN_FAILURES else None
    return PinVerdict(
        msgspec.structs.replace(state, failures=failures, locked_until=locked_until),
        Code.INVALID_PIN,
        {"attempts_remaining": MAX_PIN_FAILURES - failures},
    )
