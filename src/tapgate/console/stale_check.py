"""Forms that show what is there send it again with what was typed; so whatever somebody else has
changed meanwhile would be undone, unless it is known what was seen."""

from hashlib import sha256
from typing import Any

import msgspec

from tapgate.errors import ApiError, Code


def fingerprint(values: Any) -> str:
    """What was seen, in a few characters that go with the form."""
    return sha256(msgspec.json.encode(values)).hexdigest()[:32]


def require_unchanged(seen: str | None, values: Any) -> None:
    if seen != fingerprint(values):
        raise ApiError(
            Code.INVALID_REQUEST,
            "Somebody else has changed this meanwhile. Close this form and look again",
        )
