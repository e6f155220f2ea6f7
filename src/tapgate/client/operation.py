"""Description of API operations, shared by the synchronous and the asynchronous client.

A method of a group only builds an `Operation`. `@operation` turns it into a plain method or a
coroutine, depending on the group's mode, with the same parameters and the same result.
"""

import functools
from collections.abc import Callable, Coroutine, Mapping
from typing import (
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    overload,
)
from urllib.parse import quote, urlencode
from uuid import uuid4

import msgspec

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M")

#: Effect of sending an operation twice, which determines when it may be retried.
#: `reads`: none. `sets`: the same final state. `moves`: money moves once per idempotency key.
#: `acts`: an additional effect, so the operation is retried only if it cannot have been executed.
Effect = Literal["reads", "sets", "moves", "acts"]

#: Coroutine that returns the response. It avoids `Any`, with which mypy cannot infer the result
#: of `asyncio.gather`.
ResponseCoroutine = Coroutine[object, None, T]

_JSON_MEDIA_TYPE = "application/json"


class Operation(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One API request. `repr` hides its content: the body may hold a PIN, the path a token."""

    method: str
    path_template: str
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
    def name(self) -> str:
        return f"{self.method} {self.path_template}"

    @property
    def is_repeatable(self) -> bool:
        return self.effect != "acts"


class ListOperation(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """Description of a paginated list: its path and its filters."""

    path_template: str
    path_parameters: Mapping[str, str]
    query: Mapping[str, Any]
    item_type: type[T]


def build_operation(
    effect: Effect,
    method: str,
    template: str,
    response_type: type[T],
    *,
    path: Mapping[str, str] | None = None,
    query: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | None = None,
    content: bytes | None = None,
    content_type: str = _JSON_MEDIA_TYPE,
    headers: Mapping[str, str] | None = None,
    request_id: str | None = None,
    public: bool = False,
    extra_success_statuses: tuple[int, ...] = (),
) -> Operation[T]:
    """Build an operation.

    The body is encoded once, so every attempt signs and sends identical bytes.
    """
    if body is not None:
        content = msgspec.json.encode(body)
    content_headers = {} if content is None else {"Content-Type": content_type}
    return Operation(
        method=method,
        path_template=template,
        target=_build_target(template, path or {}, query or {}),
        effect=effect,
        response_type=response_type,
        request_id=generate_request_id() if request_id is None else request_id,
        body=content or b"",
        headers=content_headers | dict(headers or {}),
        is_public=public,
        extra_success_statuses=extra_success_statuses,
    )


def build_get(
    template: str, response_type: type[T], *, query: Mapping[str, Any] | None = None, **path: str
) -> Operation[T]:
    return build_operation("reads", "GET", template, response_type, path=path, query=query)


def build_safe_post(template: str, response_type: type[T], body: Mapping[str, Any]) -> Operation[T]:
    """Build a POST that has no side effects."""
    return build_operation("reads", "POST", template, response_type, body=body)


def build_idempotent_post(
    template: str,
    response_type: type[T],
    request_id: str | None,
    body: Mapping[str, Any],
    **path: str,
) -> Operation[T]:
    """Build a POST with an idempotency key, which stays the same for all attempts.

    The key is the caller's `request_id`. If this is None, a key is generated.
    """
    key = generate_request_id() if request_id is None else request_id
    body_with_key = {**body, "request_id": key}
    return build_operation(
        "moves", "POST", template, response_type, path=path, body=body_with_key, request_id=key
    )


def build_post(
    template: str,
    response_type: type[T],
    body: Mapping[str, Any] | None = None,
    **path: str,
) -> Operation[T]:
    return build_operation("acts", "POST", template, response_type, path=path, body=body)


def build_put(
    template: str, response_type: type[T], body: Mapping[str, Any], **path: str
) -> Operation[T]:
    return build_operation("sets", "PUT", template, response_type, path=path, body=body)


def build_delete(template: str, **path: str) -> Operation[None]:
    return build_operation("sets", "DELETE", template, type(None), path=path)


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


class SyncMode:
    """Mode of a client whose methods return the response."""


class AsyncMode:
    """Mode of a client whose methods return an awaitable."""


class Transport(Protocol):
    """Sends operations to the gateway, in one of the two modes."""

    def send(self, operation: Operation[Any], /) -> Any: ...
    def paginate(self, listing: ListOperation[Any], /) -> Any: ...


class OperationGroup(Generic[M]):
    """Related operations, in one mode."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport


class operation(Generic[P, T]):  # noqa: N801 - a decorator
    """Decorator that turns a method returning an `Operation` into one that sends it."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Operation[T]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...
    @overload
    def __get__(self, group: OperationGroup[SyncMode], owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(
        self, group: OperationGroup[AsyncMode], owner: type
    ) -> Callable[P, ResponseCoroutine[T]]: ...
    def __get__(self, group: OperationGroup[Any] | None, owner: type) -> Any:
        if group is None:
            return self
        describe, transport = self.describe, group._transport

        @functools.wraps(describe)
        def send(*args: P.args, **kwargs: P.kwargs) -> Any:
            return transport.send(describe(group, *args, **kwargs))

        return send
