"""Idempotency keys of requests that move money, from the body or the header."""

from typing import Any, Final

from tapgate.api.request_context import RequestContext
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.fields import IdempotencyKeyRule, InvalidValueError

_HEADER_NAME: Final = "Idempotency-Key"
_HEADER: Final = _HEADER_NAME.lower().encode()
_rule = IdempotencyKeyRule()


def require_consistent_idempotency_key(request: RequestContext, body: Any) -> None:
    header, request_id = request.get_header(_HEADER), body.request_id
    if header is not None and request_id is not None and header != request_id:
        raise _build_invalid_key_error("must equal the Idempotency-Key header")


def require_idempotency_key(request: RequestContext, body: Any) -> None:
    """Raise an error if the request has no idempotency key."""
    if body.request_id is None and request.get_header(_HEADER) is None:
        raise _build_invalid_key_error("is required in the body or in the Idempotency-Key header")


def get_idempotency_key(request: RequestContext, body: Any) -> str | None:
    header = request.get_header(_HEADER)
    if header is None:
        request_id: str | None = body.request_id
        return request_id
    try:
        return _rule.check(header)
    except InvalidValueError as error:
        raise invalid_field(_HEADER_NAME, error.problems[""]) from None


def _build_invalid_key_error(message: str) -> ApiError:
    return invalid_field("request_id", message, Code.INVALID_REQUEST)
