"""The maker's reason for a request that waits for approval, in the header `Approval-Reason`.

It is a header, because every guarded request can have one, and requests without a body too. It is
percent-encoded UTF-8: HTTP headers cannot contain all letters.
"""

from typing import Any, Final
from urllib.parse import quote, unquote

from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.fields import InvalidValueError, TextRule

HEADER_NAME: Final = "Approval-Reason"
_MAX_LENGTH: Final = 500
_MISSING: Final = "is required: the request waits for approval"
_rule = TextRule(_MAX_LENGTH, example="Fees%20of%20the%20new%20price%20list")


def encode(reason: str) -> bytes:
    """Return the value of the header."""
    return quote(reason).encode()


def read(request: GuardedRequest, body: Any) -> str | None:
    """Return the reason in a request that has to wait for approval: the header, or in the body.

    Raise 422 if it is invalid, or missing in a request of a form, whose site then asks for it.
    """
    sent = request if isinstance(request, RequestContext) else None  # None for a schedule
    value = sent.get_header(HEADER_NAME.lower().encode()) if sent else None
    value = (value or "").strip()
    if not value:
        reason: str | None = getattr(body, "reason", None)
        if reason is not None:
            return reason
        if sent and sent.asks_for_reason:
            raise invalid_field(HEADER_NAME, _MISSING)
        return None
    try:
        return _rule.check(unquote(value, errors="strict").strip())
    except UnicodeDecodeError:
        raise invalid_field(HEADER_NAME, "must be percent-encoded UTF-8") from None
    except InvalidValueError as error:
        raise invalid_field(HEADER_NAME, error.problems[""]) from None


def is_missing(error: ApiError) -> bool:
    """Return whether a form's request has to wait for approval and has no valid reason."""
    fields = (error.details or {}).get("fields", {})
    return error.code is Code.VALIDATION_FAILED and HEADER_NAME in fields


def build_parameter() -> dict[str, Any]:
    """Return the header's OpenAPI parameter."""
    return {
        "name": HEADER_NAME,
        "in": "header",
        "description": (
            "Why you make the request, if it waits for approval: percent-encoded UTF-8 of 1 to "
            f"{_MAX_LENGTH} characters. Approvers see it as `reason`. By default the `reason` in "
            "the body, if there is one."
        ),
        "schema": {"type": "string", "examples": [_rule.example]},
    }
