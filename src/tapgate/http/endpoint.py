"""Endpoint declarations for both services.

Routing, decoding, access checks, body limits, the OpenAPI document and the access tests are derived
from these declarations.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import cache
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    TypedDict,
    TypeVar,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from tapgate.core.records import NOT_FOUND_CODES
from tapgate.http.body_limits import KIBIBYTE, compute_body_limit
from tapgate.http.http_messages import BodyStream
from tapgate.http.rate_limits.token_buckets import RateLimitResult
from tapgate_client.errors import Code
from tapgate_client.operation import Effect

T = TypeVar("T")
Handler = Callable[..., Awaitable[Any]]
H = TypeVar("H", bound=Handler)

#: Handler parameters that are not in the path.
_OTHER_PARAMETERS = ("body", "query", "tx", "prepared")

MEBIBYTE = 1024 * KIBIBYTE
JSON_MEDIA_TYPE = "application/json"
#: Any file, for clients that know no more specific type, such as generated ones.
FILE_MEDIA_TYPE = "application/octet-stream"
_EFFECTS: Final[Mapping[str, Effect]] = {"GET": "reads", "PUT": "sets", "DELETE": "sets"}


class BaseContext:
    """First parameter of every handler: the caller's request, with or without HTTP."""

    __slots__ = ()

    services: Any
    path: str
    ip: str
    request_id: str


class BaseRequestContext(msgspec.Struct, BaseContext, kw_only=True):
    """Request as handlers see it. Each service adds its services and the authenticated caller."""

    services: Any
    method: str
    #: Percent-encoded, as the client sent and signed it.
    path: str
    query: bytes
    headers: Mapping[bytes, bytes]
    ip: str
    request_id: str
    body: bytes = b""
    #: The latest rate limit check result, or None before the first.
    rate_limit_result: RateLimitResult | None = None

    @property
    def caller_id(self) -> str | None:
        """The authenticated caller's ID, for the request log."""
        raise NotImplementedError

    def get_header(self, name: bytes) -> str | None:
        """Return a header by its lowercase name, or None."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    def negotiate_file_type(self, media_type: str) -> str:
        """Return the type of a file, or `FILE_MEDIA_TYPE` if the client accepts only that."""
        accepted = {
            part.partition(";")[0].strip().lower()
            for part in (self.get_header(b"accept") or "").split(",")
        }
        return FILE_MEDIA_TYPE if accepted == {FILE_MEDIA_TYPE} else media_type


class Reply(msgspec.Struct, Generic[T]):
    """Response with its own status, headers or content type. A bytes body is sent unchanged."""

    body: T | bytes
    status: int | None = None
    headers: Mapping[str, str] = {}
    content_type: str = JSON_MEDIA_TYPE
    #: Whether a site's page may be compressed; see `http.compression`.
    is_compressible: bool = False


class RelayedReply(msgspec.Struct, kw_only=True):
    """Response that another process rendered. A large body is relayed while it is received."""

    status: int
    headers: Mapping[str, str]
    content_type: str
    size: int  # of the whole body, in bytes
    #: Whether the handler rendered the body itself. Otherwise it is a JSON record.
    is_file: bool
    body: bytes = b""
    stream: BodyStream | None = None


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """Query parameter or header that the handler parses, described for the OpenAPI document."""

    name: str
    description: str
    location: str = "query"
    required: bool = True
    schema: Mapping[str, Any] = msgspec.field(default_factory=lambda: {"type": "string"})


class EndpointOptions(TypedDict, total=False):
    """Endpoint declaration options, in addition to the method and path.

    - `access`: The callers that the endpoint accepts. Required, here or for the whole group.
    - `objects`: The check on the objects that a request names, in addition to `access`.
    - `owners`: How the users and API keys of a processor, partner or agent reach the endpoint.
    - `status`: The success status. Default: 200, or 204 without a response body.
    - `other_statuses`: Further statuses that return the same response type.
    - `errors`: Error codes in addition to those that the declaration implies.
    - `error_types`: Structs for error responses that do not have the service's error body.
    - `media`: The content types of the response.
    - `body_limit`: The maximum body size in bytes. Default: computed from the body's fields.
    - `body_media`, `body_schema`: Describe a body that the handler receives as bytes.
    - `parameters`: Query parameters and headers that the handler parses.
    - `any_query`: Why undeclared query parameters are ignored. Without a reason, they get 422.
    - `operation_id`: The OpenAPI operation ID. Default: the handler's name.
    - `in_production`: Whether the endpoint exists in production.
    - `invalid_is_400`: Return 400 for an invalid value in the body, instead of 422.
    - `field_access`: The access required to send a body field, in addition to `access`.
    - `moves_money`: The endpoint moves money and accepts an idempotency key.
    - `effect`: What a repeated request does, for clients that retry: `reads` (nothing), `sets` (the
      same state) or `acts` (an additional effect). Default: by the method; a POST acts.
    - `requires`: Checks for missing or inconsistent input. They run once all types are valid and
      before any value is checked.
    - `unlimited`: Public requests count toward a higher limit per node instead of their
      address's rate limit. For cheap endpoints that load balancers call.
    - `heavy`: Requests count toward the limit on concurrent expensive reads. True applies to all
      requests, a string to requests with that query parameter.
    - `guard`: How approval rules can require that other admins approve requests.
    - `unguarded`: Why approval rules never apply, if admins can change something with the endpoint.
    - `notices`: The notices that the affected person gets, if the endpoint changes something that a
      subscriber or an agent has.
    - `unnoticed`: Why no notice is needed for such an endpoint.
    - `step_up`: An admin who has a second factor must have verified it in the last 15 minutes. True
      applies to all requests. Names of body fields apply to requests that set one of them in a way
      that approval rules can guard.
    - `enrolls`: Also accepts sessions that may only enroll a second factor.
    - `compresses`: Whether responses may be compressed; see `http.compression`. Default: if a GET
      request returns JSON. False for responses that may contain a secret, and for terminals.
    - `report`: The gateway runs requests in a report worker, because they use much CPU time, and
      cancels them if the client disconnects.
    - `prepare`: Slow work that must not keep a database transaction open, such as hashing a
      password. It takes the same arguments as the handler and runs before the transaction. A
      handler with the parameter `prepared` receives its result.
    """

    access: Any
    objects: Any
    owners: Any
    status: int
    other_statuses: tuple[int, ...]
    errors: tuple[Code, ...]
    error_types: Mapping[int, type[msgspec.Struct]]
    media: tuple[str, ...]
    body_limit: int
    body_media: tuple[str, ...]
    body_schema: Any
    parameters: tuple[Parameter, ...]
    any_query: str
    operation_id: str
    in_production: bool
    invalid_is_400: bool
    field_access: Mapping[str, Any]
    moves_money: bool
    effect: Effect
    requires: tuple[Callable[[Any, Any], None], ...]
    unlimited: bool
    heavy: bool | str
    guard: Any
    unguarded: str
    notices: tuple[str, ...]
    unnoticed: str
    step_up: bool | tuple[str, ...]
    enrolls: bool
    compresses: bool
    report: bool
    prepare: Handler


@cache  # every app in the process builds routes for the same endpoints
def _list_field_names(struct: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(field.encode_name for field in msgspec.structs.fields(struct))


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Declared endpoint; see `EndpointOptions`."""

    method: str
    path: str
    tag: str
    handler: Handler
    access: Any  # the service's declaration, with the attribute `public`
    objects: Any = None  # the service's object check declaration
    owners: Any = None  # the service's declaration for owners
    status: int
    other_statuses: tuple[int, ...] = ()
    errors: tuple[Code, ...] = ()
    error_types: Mapping[int, type[msgspec.Struct]] = {}
    body_type: Any  # a Struct, `bytes` for the raw body, or None
    query_type: type[msgspec.Struct] | None
    path_parameters: tuple[str, ...]
    id_prefixes: Mapping[str, str]  # by path parameter, for IDs that the route decodes
    response_type: Any  # None: no content
    media: tuple[str, ...] = (JSON_MEDIA_TYPE,)
    body_limit: int
    body_media: tuple[str, ...] = (JSON_MEDIA_TYPE,)
    body_schema: Any = (
        None  # for a body that the handler parses: a Struct, or content by media type
    )
    parameters: tuple[Parameter, ...] = ()
    any_query: str = ""
    operation_id: str
    in_production: bool = True
    invalid_is_400: bool = False
    field_access: Mapping[str, Any] = {}
    moves_money: bool = False
    effect: Effect
    requires: tuple[Callable[[Any, Any], None], ...] = ()
    unlimited: bool = False
    heavy: bool | str = False
    guard: Any = None  # the service's declaration, with the attribute `describe`
    unguarded: str | None = None
    notices: tuple[str, ...] = ()
    unnoticed: str | None = None
    step_up: bool | tuple[str, ...] = False
    enrolls: bool = False
    compresses: bool
    report: bool = False
    takes_tx: bool
    takes_prepared: bool
    prepare: Handler | None = None

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_payment(self) -> bool:
        """Whether requests count in payment latency: they move money, but not a file's amounts."""
        return self.moves_money and self.body_type is not bytes

    @property
    def query_names(self) -> frozenset[str]:
        """The declared query parameter names."""
        names = frozenset() if self.query_type is None else _list_field_names(self.query_type)
        return names.union(item.name for item in self.parameters if item.location == "query")

    @property
    def body_struct(self) -> type[msgspec.Struct] | None:
        """The struct that describes the body, or None for files and requests without a body."""
        kind = self.body_schema or self.body_type
        return None if kind is bytes or isinstance(kind, Mapping) else kind

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.handler) or "").partition("\n")[0].rstrip(".")

    @property
    def description(self) -> str:
        return (inspect.getdoc(self.handler) or "").partition("\n")[2].strip()

    async def run_preparation(self, request: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Do the slow work before the database transaction; return more handler arguments."""
        if self.prepare is None:
            return {}
        result = await self.prepare(request, **arguments)
        return {"prepared": result} if self.takes_prepared else {}


class Endpoints:
    """One resource's endpoints, registered with decorators.

    All paths start with `prefix`. `shared` are options for all endpoints, which an endpoint can
    override, except that it adds to `errors`.

    A handler's first parameter is the request context. `body` and `query` receive the decoded body
    and query. Every other parameter receives the path parameter with the same name. If its type is
    an ID in `core.records`, such as `PartnerId`, the ID is decoded, and an invalid ID fails as not
    found.

    A handler with the parameter `tx` runs in a database transaction. It commits before the response
    is sent, and rolls back if the handler raises an exception. The handler must read through `tx`
    too: a second connection could wait for the first one forever. Slow work goes into `prepare`.
    """

    def __init__(self, tag: str, prefix: str = "", **shared: Unpack[EndpointOptions]) -> None:
        self.tag = tag
        self._prefix = prefix
        self._shared = shared
        self._endpoints: list[Endpoint] = []

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(self._endpoints)

    def get(self, path: str, **options: Unpack[EndpointOptions]) -> Callable[[H], H]:
        return self.declare("GET", path, **options)

    def post(self, path: str, **options: Unpack[EndpointOptions]) -> Callable[[H], H]:
        return self.declare("POST", path, **options)

    def put(self, path: str, **options: Unpack[EndpointOptions]) -> Callable[[H], H]:
        return self.declare("PUT", path, **options)

    def delete(self, path: str, **options: Unpack[EndpointOptions]) -> Callable[[H], H]:
        return self.declare("DELETE", path, **options)

    def declare(
        self, method: str, path: str, **options: Unpack[EndpointOptions]
    ) -> Callable[[H], H]:
        def add(handler: H) -> H:
            full_path = self._prefix + path
            types = get_type_hints(handler, include_extras=True)
            parameters = _parse_path_parameters(full_path, handler, types)
            _require_consistent(handler, options, types)
            id_prefixes = {
                name: types[name].__metadata__[0] for name in parameters if types[name] is not str
            }
            response = types.pop("return", None)
            if get_origin(response) is Reply:
                (response,) = get_args(response)
            has_no_content = response in (None, type(None))
            defaults: EndpointOptions = {
                "status": 204 if has_no_content else 200,
                "body_limit": options.get("body_limit")
                or compute_body_limit(options.get("body_schema") or types.get("body")),
                "operation_id": handler.__name__,
                "effect": _get_effect(method, self._shared | options),
                "compresses": method == "GET" and "media" not in (self._shared | options),
            }
            errors = (
                *(NOT_FOUND_CODES.get(prefix, Code.NOT_FOUND) for prefix in id_prefixes.values()),
                *self._shared.get("errors", ()),
                *options.get("errors", ()),
            )
            self._endpoints.append(
                Endpoint(
                    method=method,
                    path=full_path,
                    tag=self.tag,
                    handler=handler,
                    body_type=types.get("body"),
                    query_type=types.get("query"),
                    path_parameters=parameters,
                    id_prefixes=id_prefixes,
                    takes_tx="tx" in types,
                    takes_prepared="prepared" in types,
                    response_type=None if has_no_content else response,
                    **(defaults | self._shared | options | {"errors": errors}),
                )
            )
            return handler

        return add


def _get_effect(method: str, options: EndpointOptions) -> Effect:
    return "moves" if options.get("moves_money") else _EFFECTS.get(method, "acts")


def _require_consistent(
    handler: Handler, options: EndpointOptions, types: Mapping[str, Any]
) -> None:
    context = next(iter(types.values()))
    if "guard" in options and issubclass(context, BaseRequestContext):
        raise TypeError(f"{handler.__qualname__} cannot be called without an HTTP request")
    if "prepare" in options and "tx" not in types:
        raise TypeError(f"{handler.__qualname__} has no transaction to prepare for")
    if "prepared" in types and "prepare" not in options:
        raise TypeError(f"{handler.__qualname__} has nothing prepared")


def _parse_path_parameters(
    path: str, handler: Handler, types: Mapping[str, Any]
) -> tuple[str, ...]:
    names = tuple(part[1:-1] for part in path.split("/") if part.startswith("{"))
    context, *parameters = inspect.signature(handler).parameters
    path_parameters = [name for name in parameters if name not in _OTHER_PARAMETERS]
    if (
        not issubclass(types[context], BaseContext)
        or sorted(path_parameters) != sorted(names)
        or any(
            types[name] is not str and get_origin(types[name]) is not Annotated
            for name in path_parameters
        )
    ):
        raise TypeError(f"{handler.__qualname__} does not match {path}: {names}")
    return names
