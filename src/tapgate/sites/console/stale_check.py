"""Optimistic concurrency check for prefilled forms.

A prefilled form submits all its values, so it would silently revert changes made since it was
rendered. A fingerprint of the rendered values detects such changes.
"""

from hashlib import sha256
from typing import Any

import msgspec

from tapgate_client.errors import ApiError, Code


def fingerprint(values: Any) -> str:
    """Return a short hash of the rendered values, sent along with the form."""
    return sha256(msgspec.json.encode(values)).hexdigest()[:32]


def require_unchanged(submitted: str | None, values: Any) -> None:
    if submitted != fingerprint(values):
        raise ApiError(
            Code.INVALID_REQUEST,
            "This record has changed since you opened the form. Reload the page and try again.",
        )
