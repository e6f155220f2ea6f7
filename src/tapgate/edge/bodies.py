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
