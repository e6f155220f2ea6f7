"""A client's own name for a request that moves money: in the body, or in a header."""

from typing import Any, Final

from tapgate.edge.call import Call
from tapgate.edge.fields import RequestIdRule, Unacceptable
from tapgate.errors import ApiError, Code, invalid_field

_SHOWN: Final = "Idempotency-Key"
_HEADER: Final = _SHOWN.lower().encode()
_rule = RequestIdRule()


def require_one_name(call: Call, body: Any) -> None:
    header, request_id = call.header(_HEADER), body.request_id
    if header is not None and request_id is not None and header != request_id:
        raise _invalid("differs from the header Idempotency-Key")


def require_a_name(call: Call, body: Any) -> None:
    """For operations that must be repeatable."""
    if body.request_id is None and call.header(_HEADER) is None:
        raise _invalid("is required, here or in the header Idempotency-Key")


def given(call: Call, body: Any) -> str | None:
    header = call.header(_HEADER)
    if header is None:
        request_id: str | None = body.request_id
        return request_id
    try:
        return _rule.check(header)
    except Unacceptable as refusal:
        raise invalid_field(_SHOWN, refusal.problems[""]) from None


def _invalid(sentence: str) -> ApiError:
    return ApiError(
        Code.INVALID_REQUEST, f"request_id {sentence}", details={"fields": {"request_id": sentence}}
    )
