"""Decoding of HTTP responses into records and exceptions."""

from typing import Any, TypeVar, cast

import httpx2
import msgspec

from tapgate_client.exceptions import (
    ApiConnectionError,
    ApprovalRequiredError,
    TapgateError,
    UnexpectedResponseError,
    build_api_error,
)
from tapgate_client.operation import Operation
from tapgate_client.schemas.approvals import ApprovalResponse
from tapgate_client.schemas.common import ErrorBody
from tapgate_client.schemas.open_enums import is_unknown_value, open_enums
from tapgate_client.schemas.transactions import Receipt

T = TypeVar("T")

_HELD_STATUS = 202
_REPLAYED_HEADER = "Idempotent-Replayed"
#: Unless the body is a gateway error, they come from a proxy that got no response from the gateway.
_PROXY_ERROR_STATUSES = (502, 503, 504)


class File(msgspec.Struct, frozen=True, kw_only=True):
    """Downloaded file.

    `next_cursor` identifies an export's next file and is None on the last file. `masked` is true if
    personal data of restricted subscribers is omitted.
    """

    content: bytes
    media_type: str
    next_cursor: str | None = None
    masked: bool = False

    def __repr__(self) -> str:
        return f"File({self.media_type}, {len(self.content)} bytes)"


def is_success(operation: Operation[Any], response: httpx2.Response) -> bool:
    return response.is_success or response.status_code in operation.extra_success_statuses


def decode(operation: Operation[T], response: httpx2.Response) -> T:
    return cast(T, _decode(operation, response))


def _decode(operation: Operation[Any], response: httpx2.Response) -> Any:
    response_type = operation.response_type
    if response.status_code == _HELD_STATUS and (held := _find_approval(response)) is not None:
        raise ApprovalRequiredError(operation.request_id, held.approval)
    if response_type is type(None):
        return None
    if response_type is File:
        return File(
            content=response.content,
            media_type=response.headers.get("Content-Type", ""),
            next_cursor=response.headers.get("X-Next-Cursor"),
            masked=response.headers.get("X-Masked") == "true",
        )
    result = _decode_json(operation, response, response_type)
    if isinstance(result, Receipt):
        vars(result).update(request_id=operation.request_id, replayed=_is_replayed(response))
    return result


def _find_approval(response: httpx2.Response) -> ApprovalResponse | None:
    """Return the approval that the request waits for, or None if it was accepted."""
    try:
        held: ApprovalResponse = decode_json_content(response.content, ApprovalResponse)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return held


def _decode_json(operation: Operation[Any], response: httpx2.Response, kind: Any) -> Any:
    try:
        return decode_json_content(response.content, kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # Not chained: the decoder's message may quote the response body.
        raise UnexpectedResponseError(operation.request_id, response.status_code) from None


def decode_json_content(content: bytes, kind: Any) -> Any:
    """Decode JSON. A value that an enum does not have remains a string.

    A newer gateway may return values that this client does not know.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        if not is_unknown_value(error):
            raise
    return msgspec.json.decode(content, type=open_enums(kind))


def _is_replayed(response: httpx2.Response) -> bool:
    return response.headers.get(_REPLAYED_HEADER) == "true"


def decode_error(operation: Operation[Any], response: httpx2.Response) -> TapgateError:
    try:
        body = msgspec.json.decode(response.content, type=ErrorBody)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        if response.status_code in _PROXY_ERROR_STATUSES:
            return ApiConnectionError(operation.request_id)
        return UnexpectedResponseError(operation.request_id, response.status_code)
    error = build_api_error(
        body, response.status_code, operation.request_id, parse_retry_after(response)
    )
    error.replayed = _is_replayed(response)
    return error


def parse_retry_after(response: httpx2.Response) -> float | None:
    """Return the delay in seconds, or None. A date is ignored: it requires synchronized clocks."""
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isascii() and value.isdigit() else None
