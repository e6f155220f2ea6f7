"""Operation declarations, shared by the synchronous and the asynchronous client.

A group's method declares an operation by its signature alone. The decorator (`reads`, `sets`,
`moves`, `acts` or `lists`) names the endpoint and turns the method into one that sends the request:
arguments named in the path go into the path, all others into a GET query or into the body. The
group's mode determines whether the method returns the response or a coroutine.
"""

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from tapgate_client.encoding import get_encoder
from tapgate_client.operation import Effect, Operation, build_operation, generate_request_id
from tapgate_client.pagination import AsyncPaginator, Paginator
from tapgate_client.schemas.pagination import Page

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M")

#: A declared method's signature.
Signature = Callable[Concatenate[Any, P], T]
#: Coroutine that returns the response. It avoids `Any`, with which mypy cannot infer the result
#: of `asyncio.gather`.
ResponseCoroutine = Coroutine[object, None, T]


class SyncMode:
    """Mode for a client whose methods return the response."""


class AsyncMode:
    """Mode for a client whose methods return an awaitable."""


class Transport(Protocol):
    """Sends operations to the gateway, in one of the two modes."""

    def send(self, operation: Operation[Any], /) -> Any: ...
    def paginate(self, operation: Operation[Any], /) -> Any: ...


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
        return self if group is None else _bind(self.describe, group, group._transport.send)


class list_operation(Generic[P, T]):  # noqa: N801 - a decorator
    """Decorator that turns a method returning the `Operation` of a page into a paginated list."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Operation[Page[T]]]) -> None:
        self.describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self, group: OperationGroup[SyncMode], owner: type
    ) -> Callable[P, Paginator[T]]: ...
    @overload
    def __get__(
        self, group: OperationGroup[AsyncMode], owner: type
    ) -> Callable[P, AsyncPaginator[T]]: ...
    def __get__(self, group: OperationGroup[Any] | None, owner: type) -> Any:
        return self if group is None else _bind(self.describe, group, group._transport.paginate)


def _bind(
    describe: Callable[..., Operation[Any]],
    group: OperationGroup[Any],
    send: Callable[[Operation[Any]], Any],
) -> Callable[..., Any]:
    @functools.wraps(describe)
    def method(*args: Any, **kwargs: Any) -> Any:
        return send(describe(group, *args, **kwargs))

    return method


def reads(
    name: str, *, public: bool = False, extra_success_statuses: tuple[int, ...] = ()
) -> Callable[[Signature[P, T]], operation[P, T]]:
    """Declare an operation without side effects."""
    return lambda method: operation(
        _describe(
            "reads", name, method, public=public, extra_success_statuses=extra_success_statuses
        )
    )


def sets(
    name: str, *, media_type: str | None = None
) -> Callable[[Signature[P, T]], operation[P, T]]:
    """Declare an operation that leads to the same state if it is repeated.

    With `media_type`, the body is the argument `file`, and all others are in the query.
    """
    return lambda method: operation(_describe("sets", name, method, media_type=media_type))


def moves(
    name: str, *, media_type: str | None = None
) -> Callable[[Signature[P, T]], operation[P, T]]:
    """Declare an operation that moves money once per idempotency key, the field `request_id`.

    The key is the caller's `request_id`, or generated, and stays the same for all attempts. With
    `media_type`, the body is the argument `file`, and the key is in a header.
    """
    return lambda method: operation(_describe("moves", name, method, media_type=media_type))


def acts(name: str, *, public: bool = False) -> Callable[[Signature[P, T]], operation[P, T]]:
    """Declare an operation that has an additional effect if it is repeated."""
    return lambda method: operation(_describe("acts", name, method, public=public))


def lists(name: str) -> Callable[[Signature[P, Page[T]]], list_operation[P, T]]:
    """Declare a paginated list."""
    return lambda method: list_operation(_describe("reads", name, method))


def _describe(
    effect: Effect,
    name: str,
    method: Signature[P, T],
    *,
    media_type: str | None = None,
    **options: Any,
) -> Callable[Concatenate[Any, P], Operation[T]]:
    """Return a function that builds the operation from the declared method's arguments."""
    signature = inspect.signature(method)
    _self, *parameters = signature.parameters.values()
    encoders = {parameter.name: get_encoder(parameter.annotation) for parameter in parameters}
    required = {parameter.name for parameter in parameters if parameter.default is parameter.empty}
    positional = [item.name for item in parameters if item.kind is not item.KEYWORD_ONLY]
    path_names = [parameter.name for parameter in parameters if f"{{{parameter.name}}}" in name]
    response_type = signature.return_annotation or type(None)
    has_body = not name.startswith("GET ") and len(path_names) < len(parameters)

    @functools.wraps(method)
    def describe(group: Any, /, *args: P.args, **kwargs: P.kwargs) -> Operation[T]:
        arguments: dict[str, Any] = dict(zip(positional, args, strict=False)) | kwargs
        if len(arguments) < len(args) + len(kwargs) or not (
            required <= arguments.keys() <= encoders.keys()
        ):
            signature.bind(group, *args, **kwargs)  # raises TypeError; too slow for every call
        fields: dict[str, Any] = {}
        for argument, value in arguments.items():
            if value is not None:
                encode = encoders[argument]
                # Names that are Python keywords have a trailing `_`.
                field = argument.removesuffix("_")
                fields[field] = value if encode is None else encode(value)
            elif argument in required:
                raise TypeError(f"{argument} must not be None")
        path = {argument: fields.pop(argument) for argument in path_names}
        request_id = None
        if effect == "moves":
            request_id = fields.setdefault("request_id", generate_request_id())
        file, headers = None, {}
        if media_type is not None:
            file, headers["Content-Type"] = fields.pop("file"), media_type
            if request_id is not None:
                headers["Idempotency-Key"] = fields.pop("request_id")
        # An incorrect PIN counts toward the PIN lock, so a request with a PIN is not repeatable.
        has_pin = effect == "reads" and "pin" in fields
        return build_operation(
            "acts" if has_pin else effect,
            name,
            response_type,
            path=path,
            query=None if has_body and media_type is None else fields,
            body=file if media_type is not None else fields if has_body else None,
            headers=headers,
            request_id=request_id,
            **options,
        )

    return describe
