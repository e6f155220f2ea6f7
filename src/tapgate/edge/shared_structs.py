"""Request and response structs that several operations share."""

from typing import Annotated

import msgspec

from tapgate.edge.fields import FreeText, IntegerRange


class Reason(msgspec.Struct, kw_only=True):
    reason: FreeText


class OptionalReason(msgspec.Struct, kw_only=True):
    reason: FreeText | None = None


class Rotation(msgspec.Struct, kw_only=True):
    """How long the previous secret remains valid."""

    grace_seconds: Annotated[int, IntegerRange(0, 86_400)] | None = None


class SigningKeyCreated(msgspec.Struct, kw_only=True):
    """The only response that contains the secret."""

    api_key_id: str
    hmac_secret: str


class SuccessResponse(msgspec.Struct, kw_only=True):
    success: bool = True
    message: str


def build_missing_field_error(field: str) -> ValueError:
    """Return an error for the `__post_init__` of a body that requires one of several fields.

    It is reported like a missing field, before any value is checked.
    """
    return ValueError(f"Object missing required field `{field}`")
