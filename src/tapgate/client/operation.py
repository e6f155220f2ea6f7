"""An operation of the gateway, described once and called both ways.

A method of a group only describes: it returns an `Operation`. `@operation` turns it into what the
group's mode says, a plain call or a coroutine, with the same parameters and the same answer.
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

#: What a second time does, which decides when one may try again.
#: `reads`: nothing. `sets`: leaves the same. `moves`: money, once under its request id.
#: `acts`: something more, so only when the first time certainly did nothing.
Effect = Literal["reads", "sets", "moves", "acts"]

#: What is awaited. Without `Any`, in whose place mypy would not know what `asyncio.gather` gives.
Answering = Coroutine[object, None, T]

_JSON = "application/json"


class Operation(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One call. It is not shown: its body may hold a PIN, its path a token."""

    method: str
    template: str
    target: str
    effect: Effect
    answer: type[T]
    request_id: str
    body: bytes = b""
    headers: Mapping[str, str] = {}
    #: Without any credential.
    public: bool = False
    #: Statuses beside 2xx that answer all the same.
    also_answers: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"Operation({self.name})"

    @property
    def name(self) -> str:
        return f"{self.method} {self.template}"

    @property
    def repeatable(self) -> bool:
        return self.effect != "acts"


class Listing(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A list, described: where it is, and which of its items are asked for."""

    template: str
    path: Mapping[str, str]
    query: Mapping[str, Any]
    answer: type[T]


def described(
    effect: Effect,
    method: str,
    template: str,
    answer: type[T],
    *,
    path: Mapping[str, str] | None = None,
    query: Mapping[str, Any] | None = None,
    body: Mapping[str, Any] | None = None,
    content: bytes | None = None,
    content_type: str = _JSON,
    headers: Mapping[str, str] | None = None,
    request_id: str | None = None,
    public: bool = False,
    also_answers: tuple[int, ...] = (),
) -> Operation[T]:
    """The bytes are written here, once: what is signed, sent and sent again is the same."""
    if body is not None:
        content = msgspec.json.encode(body)
    shown = {} if content is None else {"Content-Type": content_type}
    return Operation(
        method=method,
        template=template,
        target=_target(template, path or {}, query or {}),
        effect=effect,
        answer=answer,
        request_id=new_request_id() if request_id is None else request_id,
        body=content or b"",
        headers=shown | dict(headers or {}),
        public=public,
        also_answers=also_answers,
    )


def read(
    template: str, answer: type[T], *, query: Mapping[str, Any] | None = None, **path: str
) -> Operation[T]:
    return described("reads", "GET", template, answer, path=path, query=query)


def ask(template: str, answer: type[T], body: Mapping[str, Any]) -> Operation[T]:
    """A POST that changes nothing."""
    return described("reads", "POST", template, answer, body=body)


def move(
    template: str,
    answer: type[T],
    request_id: str | None,
    body: Mapping[str, Any],
    **path: str,
) -> Operation[T]:
    """The request id is the caller's, or made here: once for all tries."""
    name = new_request_id() if request_id is None else request_id
    named = {**body, "request_id": name}
    return described("moves", "POST", template, answer, path=path, body=named, request_id=name)


def act(
    template: str,
    answer: type[T],
    body: Mapping[str, Any] | None = None,
    **path: str,
) -> Operation[T]:
    return described("acts", "POST", template, answer, path=path, body=body)


def put(template: str, answer: type[T], body: Mapping[str, Any], **path: str) -> Operation[T]:
    return described("sets", "PUT", template, answer, path=path, body=body)


def delete(template: str, **path: str) -> Operation[None]:
    return described("sets", "DELETE", template, type(None), path=path)


def new_request_id() -> str:
    return str(uuid4())


def _target(template: str, path: Mapping[str, str], query: Mapping[str, Any]) -> str:
    parts = [path[part[1:-1]] if part.startswith("{") else None for part in template.split("/")]
    written = (
        part if value is None else _segment(value)
        for part, value in zip(template.split("/"), parts, strict=True)
    )
    asked = urlencode({name: str(value) for name, value in query.items()}, quote_via=quote)
    return "/".join(written) + (f"?{asked}" if asked else "")


def _segment(value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"an identifier is a str, not {type(value).__name__}")
    if value in ("", ".", ".."):
        raise ValueError("an identifier must not be empty, nor a dot or two")  # another path
    return quote(value, safe="")


class Sync:
    """The mode of a gateway that answers at once."""


class Async:
    """The mode of a gateway whose answers are awaited."""


class Line(Protocol):
    """What carries operations to the gateway, in one mode or the other."""

    def call(self, operation: Operation[Any], /) -> Any: ...
    def walk(self, listing: Listing[Any], /) -> Any: ...


class Group(Generic[M]):
    """Operations that belong together, in one mode."""

    def __init__(self, line: Line) -> None:
        self._line = line


class operation(Generic[P, T]):  # noqa: N801 - a decorator
    """Makes a method that describes into one that calls."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Operation[T]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...
    @overload
    def __get__(self, group: Group[Sync], owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, group: Group[Async], owner: type) -> Callable[P, Answering[T]]: ...
    def __get__(self, group: Group[Any] | None, owner: type) -> Any:
        if group is None:
            return self
        describe, line = self.describe, group._line

        @functools.wraps(describe)
        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return line.call(describe(group, *args, **kwargs))

        return call
