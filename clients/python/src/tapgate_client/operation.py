"""API operations: everything that both clients need to know about one request."""

from collections.abc import Mapping
from typing import Any, Generic, Literal, Self, TypeVar
from urllib.parse import quote, urlencode
from uuid import uuid4

import msgspec

T = TypeVar("T")

#: Effect of sending an operation twice, which determines when it may be retried.
#: `reads`: none. `sets`: the same final state. `moves`: money moves once per idempotency key.
#: `acts`: an additional effect, so the operation is retried only if it cannot have been executed.
Effect = Literal["reads", "sets", "moves", "acts"]


class Operation(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One API request. `repr` hides its content: the body may hold a PIN, the path a token."""

    #: Method and path template, such as `GET /api/v1/cards/{serial}`.
    name: str
    method: str
    target: str
    effect: Effect
    response_type: type[T]
    request_id: str
    body: bytes = b""
    headers: Mapping[str, str] = {}
    #: Sent without a credential.
    is_public: bool = False
    #: Statuses other than 2xx whose body is a regular response.
    extra_success_statuses: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"Operation({self.name})"

    @property
    def is_repeatable(self) -> bool:
        return self.effect != "acts"

    def at_cursor(self, cursor: str | None) -> Self:
        """Return the operation that gets another page of the list, as a new request."""
        separator = "&" if "?" in self.target else "?"
        suffix = "" if cursor is None else f"{separator}cursor={quote(cursor)}"
        return msgspec.structs.replace(
            self, target=self.target + suffix, request_id=generate_request_id()
        )


def build_operation(
    effect: Effect,
    name: str,
    response_type: type[T],
    *,
    path: Mapping[str, str] | None = None,
    query: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | bytes | None = None,
    headers: Mapping[str, str] | None = None,
    request_id: str | None = None,
    public: bool = False,
    extra_success_statuses: tuple[int, ...] = (),
) -> Operation[T]:
    """Build an operation.

    The body is encoded once, so every attempt signs and sends identical bytes.
    """
    method, template = name.split(" ")
    content_type = {} if body is None else {"Content-Type": "application/json"}
    if body is None or not isinstance(body, bytes):
        body = b"" if body is None else msgspec.json.encode(body)
    return Operation(
        name=name,
        method=method,
        target=_build_target(template, path or {}, query or {}),
        effect=effect,
        response_type=response_type,
        request_id=generate_request_id() if request_id is None else request_id,
        body=body,
        headers=content_type | dict(headers or {}),
        is_public=public,
        extra_success_statuses=extra_success_statuses,
    )


def generate_request_id() -> str:
    return str(uuid4())


def _build_target(template: str, path: Mapping[str, str], query: Mapping[str, Any]) -> str:
    segments = (
        _encode_path_segment(path[segment[1:-1]]) if segment.startswith("{") else segment
        for segment in template.split("/")
    )
    query_string = urlencode({name: str(value) for name, value in query.items()}, quote_via=quote)
    return "/".join(segments) + (f"?{query_string}" if query_string else "")


def _encode_path_segment(value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"an ID must be a str, not {type(value).__name__}")
    if value in ("", ".", ".."):
        raise ValueError("an ID must not be empty, '.' or '..'")  # it would change the path
    return quote(value, safe="")
