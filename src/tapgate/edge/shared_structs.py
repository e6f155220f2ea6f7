"""Bodies and answers that many operations share."""

from typing import Annotated

import msgspec

from tapgate.edge.fields import FreeText, IntegerRange


class Reason(msgspec.Struct, kw_only=True):
    reason: FreeText


class OptionalReason(msgspec.Struct, kw_only=True):
    reason: FreeText | None = None


class Rotation(msgspec.Struct, kw_only=True):
    """How long the secret before stays valid."""

    grace_seconds: Annotated[int, IntegerRange(0, 86_400)] | None = None


class SigningKeyCreated(msgspec.Struct, kw_only=True):
    """The only response that contains the secret."""

    api_key_id: str
    hmac_secret: str


class SuccessResponse(msgspec.Struct, kw_only=True):
    success: bool = True
    message: str


def build_missing_field_error(field: str) -> ValueError:
    """For the `__post_init__` of a body that needs one field or another: answered as a missing
    field is, before any value is looked at."""
    return ValueError(f"Object missing required field `{field}`")
