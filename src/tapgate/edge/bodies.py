"""Bodies and answers that many operations share."""

import msgspec

from tapgate.edge.fields import FreeText


class Reason(msgspec.Struct, kw_only=True):
    reason: FreeText


class OptionalReason(msgspec.Struct, kw_only=True):
    reason: FreeText | None = None


class Done(msgspec.Struct, kw_only=True):
    success: bool = True
    message: str


def missing(field: str) -> ValueError:
    """For the `__post_init__` of a body that needs one field or another: answered as a missing
    field is, before any value is looked at."""
    return ValueError(f"Object missing required field `{field}`")
