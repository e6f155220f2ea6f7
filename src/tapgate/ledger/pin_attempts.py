"""The rule of wrong PINs: three in a row lock it for half an hour."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from tapgate.clock import format_rfc3339
from tapgate.errors import Code

MAX_PIN_FAILURES = 3
LOCK_DURATION = timedelta(minutes=30)


class PinState(msgspec.Struct, frozen=True, gc=False):
    """A stored PIN and the tries made at it."""

    holder_id: int
    key_id: str
    salt: bytes
    verifier: bytes
    failures: int
    locked_until: datetime | None


class PinVerdict(msgspec.Struct, frozen=True, gc=False):
    """`state` is what to store afterwards; `code` is None when the PIN was right."""

    state: PinState
    code: Code | None = None
    details: dict[str, Any] | None = None


#: Whether a PIN is the stored one; knows the key that the stored one was made with.
PinMatcher = Callable[[PinState, str], bool]


def evaluate_pin(state: PinState, pin: str, is_right: PinMatcher, now: datetime) -> PinVerdict:
    """Judge one try. A locked PIN is not even looked at."""
    if state.locked_until is not None and now < state.locked_until:
        return PinVerdict(
            state, Code.ACCOUNT_LOCKED, {"locked_until": format_rfc3339(state.locked_until)}
        )
    if is_right(state, pin):
        return PinVerdict(msgspec.structs.replace(state, failures=0, locked_until=None))
    failures = 1 if state.locked_until is not None else state.failures + 1
    locked_until = now + LOCK_DURATION if failures >= MAX_PIN_FAILURES else None
    return PinVerdict(
        msgspec.structs.replace(state, failures=failures, locked_until=locked_until),
        Code.INVALID_PIN,
        {"attempts_remaining": MAX_PIN_FAILURES - failures},
    )
