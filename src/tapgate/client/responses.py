"""Decoding of HTTP responses into records and exceptions."""

from typing import Any, TypeVar, cast

import httpx2
import msgspec

from tapgate.client.exceptions.base import (
    ApiConnectionError,
    ErrorResponse,
    TapgateError,
    UnexpectedResponseError,
    build_api_error,
)
from tapgate.client.operation import Operation
from tapgate.client.records.base import File, Receipt

T = TypeVar("T")

_REPLAYED_HEADER = "Idempotent-Replayed"
#: Unless the body is a gateway error, they come from a proxy that got no response from the gateway.
_PROXY_ERROR_STATUSES = (502, 503, 504)


class _ErrorBody(msgspec.Struct):
    """Body of an error response."""

    error: str
    code: str
    message: str | None = None
    details: dict[str, Any] | None = None


def is_success(operation: Operation[Any], response: httpx2.Response) -> bool:
    return response.is_success or response.status_code in operation.extra_success_statuses


def decode(operation: Operation[T], response: httpx2.Response) -> T:
    return cast(T, _decode(operation, response))


def _decode(operation: Operation[Any], response: httpx2.Response) -> Any:
    response_type = operation.response_type
    if response_type is type(None):
        return None
    if response_type is File:
        return File(
            content=response.content,
            media_type=response.headers.get("Content-Type", ""),
            next_cursor=response.headers.get("X-Next-Cursor"),
            masked=response.headers.get("X-Masked") == "true",
        )
    try:
        result = msgspec.json.decode(response.content, type=response_type)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # Not chained: the decoder's message may quote the response body.
        raise UnexpectedResponseError(operation.request_id, response.status_code) from None
    if isinstance(result, Receipt):
        replayed = response.headers.get(_REPLAYED_HEADER) == "true"
        result = msgspec.structs.replace(result, request_id=operation.request_id, replayed=replayed)
    return result


def decode_error(operation: Operation[Any], response: httpx2.Response) -> TapgateError:
    try:
        body = msgspec.json.decode(response.content, type=_ErrorBody)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        if response.status_code in _PROXY_ERROR_STATUSES:
            return ApiConnectionError(operation.request_id)
        return UnexpectedResponseError(operation.request_id, response.status_code)
    return build_api_error(
        ErrorResponse(
            status=response.status_code,
            code=body.code,
            error=body.error,
            message=body.message,
            details=body.details or {},
            request_id=operation.request_id,
            retry_after=parse_retry_after(response),
        )
    )


def parse_retry_after(response: httpx2.Response) -> float | None:
    """Return the delay in seconds, or None. A date is ignored: it requires synchronized clocks."""
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isascii() and value.isdigit() else None
