"""PIN lockout policy: three consecutive failures lock the PIN for 30 minutes.

Besides the lockout per PIN, wrong PINs are limited per credential: see `wrong_pin_limit.py`.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from tapgate.ledger.pins.pin_verifier import PinHash
from tapgate.ledger.pins.wrong_pin_limit import WrongPinLimit
from tapgate_client.clock import format_rfc3339
from tapgate_client.errors import ApiError, Code

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
    """Verdict on one attempt: the `state` to store, and a `code` that is None for a correct PIN.

    `counts` is whether a wrong PIN counts toward the credential's limit.
    """

    state: PinState
    code: Code | None = None
    details: dict[str, Any] | None = None
    counts: bool = False

    @property
    def error(self) -> ApiError | None:
        return None if self.code is None else build_pin_error(self.code, self.details)


def build_pin_error(code: Code, details: dict[str, Any] | None) -> ApiError:
    """Return the error for a PIN that is wrong, locked, or not compared (`RATE_LIMITED`)."""
    if code != Code.RATE_LIMITED or details is None:
        return ApiError(code, details=details)
    return ApiError(
        code,
        "Too many wrong PINs. Requests without a PIN are accepted.",
        details={"limit": "wrong_pins", **details},
        headers={"Retry-After": str(details["retry_after"])},
    )


#: Returns whether a PIN matches a stored PIN, using the key with which the stored PIN was hashed.
#: For a correct PIN hashed with an older key, returns the replacement hash with the newest key.
PinMatcher = Callable[[PinState, str], bool | PinHash]


def evaluate_pin(
    state: PinState,
    pin: str,
    is_correct_pin: PinMatcher,
    now: datetime,
    credential: str = "",
    limit: WrongPinLimit | None = None,
) -> PinVerdict:
    """Evaluate one attempt, and count it toward the credential's limit on wrong PINs.

    After a credential has reached the limit, or while the PIN is locked, attempts are neither
    compared nor counted. Nothing is awaited between checking the limit and counting.
    """
    if limit is not None:
        retry_after = limit.get_retry_seconds(credential, now)
        if retry_after:
            return PinVerdict(state, Code.RATE_LIMITED, {"retry_after": retry_after})
    if state.locked_until is not None and now < state.locked_until:
        return PinVerdict(
            state, Code.ACCOUNT_LOCKED, {"locked_until": format_rfc3339(state.locked_until)}
        )
    match = is_correct_pin(state, pin)
    counts = limit is not None and limit.count(credential, state.holder_id, now, is_wrong=not match)
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
        counts,
    )
