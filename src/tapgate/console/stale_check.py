"""Optimistic concurrency check for prefilled forms.

A prefilled form submits all its values, so it would silently revert changes made by others since
it was rendered. A fingerprint of the rendered values detects that.
"""

from hashlib import sha256
from typing import Any

import msgspec

from tapgate.errors import ApiError, Code


def fingerprint(values: Any) -> str:
    """Return a short hash of the rendered values, sent along with the form."""
    return sha256(msgspec.json.encode(values)).hexdigest()[:32]


def require_unchanged(submitted: str | None, values: Any) -> None:
    if submitted != fingerprint(values):
        raise ApiError(
            Code.INVALID_REQUEST,
            "Someone else changed this record. Close the form, reload and try again.",
        )
