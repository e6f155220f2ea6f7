"""Request and response structs that several operations share."""

from typing import Annotated, Any

import msgspec

from tapgate_client.errors import Code
from tapgate_client.schemas.fields import Choice, IntegerRange, ReasonText
from tapgate_client.schemas.values import Id, ShownSecret

#: A string, because any later version can return further codes.
ErrorCode = Annotated[str, Choice(*Code, name="ErrorCode")]


class ErrorBody(msgspec.Struct, omit_defaults=True):
    error: str
    code: ErrorCode
    message: str | None = None
    details: dict[str, Any] | None = None


class Redacted:
    """Base class for records that contain a secret: their `repr` hides all fields."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


class Reason(msgspec.Struct, kw_only=True):
    reason: ReasonText


class OptionalReason(msgspec.Struct, kw_only=True):
    reason: ReasonText | None = None


class Rotation(msgspec.Struct, kw_only=True):
    """Secret rotation. The previous secret remains valid for `grace_seconds`."""

    grace_seconds: Annotated[int, IntegerRange(0, 86_400)] | None = None


class SigningKeyCreated(Redacted, msgspec.Struct, kw_only=True):
    """A new signing key. No other response contains its secret."""

    api_key_id: Id
    hmac_secret: ShownSecret


class SuccessResponse(msgspec.Struct, kw_only=True):
    success: bool = True
    message: str


def build_missing_field_error(field: str) -> ValueError:
    """Return an error for the `__post_init__` of a body that requires one of several fields.

    The client receives it as a missing field (400), before any value is checked.
    """
    return ValueError(f"Object missing required field `{field}`")
