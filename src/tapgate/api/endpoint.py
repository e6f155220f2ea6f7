"""Endpoint declarations.

Routing, decoding, access checks, body limits, the OpenAPI document and the access tests are derived
from these declarations.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import (
    Any,
    Generic,
    Literal,
    Required,
    TypedDict,
    TypeVar,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from tapgate.api.request_context import RequestContext
from tapgate.errors import Code
from tapgate.http.body_limits import compute_body_limit
from tapgate.schemas.admin import AdminRole

T = TypeVar("T")
Handler = Callable[..., Awaitable[Any]]
H = TypeVar("H", bound=Handler)
Requirement = Callable[[RequestContext, Any], None]

MEBIBYTE = 1024 * 1024

ROLES_BY_LETTER: Mapping[str, str] = {
    "A": AdminRole.SYSTEM_ADMIN,
    "C": AdminRole.COMPLIANCE_USER,
    "S": AdminRole.SUPPORT_USER,
    "F": AdminRole.FINANCE_USER,
}


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """The credentials that an endpoint or field accepts, any one of which grants access.

    A public endpoint requires no credential.
    """

    public: bool = False
    scope: str | None = None
    roles: str = ""
    service: bool = False
    hmac: Literal["pos", "partner"] | None = None

    def __post_init__(self) -> None:
        has_callers = bool(self.scope or self.roles or self.service or self.hmac)
        if self.public == has_callers:
            raise TypeError("an endpoint is either public or declares its callers")
        unknown = set(self.roles) - set(ROLES_BY_LETTER)
        if unknown:
            raise TypeError(f"unknown roles: {unknown}")

    @property
    def role_names(self) -> frozenset[str]:
        return frozenset(ROLES_BY_LETTER[letter] for letter in self.roles)


class Reply(msgspec.Struct, Generic[T]):
    """Response with its own status, headers or content type. A body of bytes is sent unchanged."""

    body: T | bytes
    status: int | None = None
    headers: Mapping[str, str] = {}
    content_type: str = "application/json"


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    path: str
    tag: str
    handler: Handler
    access: Access
    status: int
    other_statuses: tuple[int, ...]
    errors: tuple[Code, ...]
    body_type: Any  # a Struct, `bytes` for the raw body, or None
    query_type: type[msgspec.Struct] | None
    path_parameters: tuple[str, ...]
    response_type: Any  # None: no content
    media: tuple[str, ...]
    body_limit: int
    body_media: tuple[str, ...]
    body_schema: Any  # for a body that the handler parses: a Struct, or content by media type
    operation_id: str
    invalid_is_400: bool
    field_access: Mapping[str, Access]
    moves_money: bool
    requires: tuple[Requirement, ...]
    heavy: bool | str

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

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


class EndpointOptions(TypedDict, total=False):
    """Options of an endpoint declaration, in addition to its method and path.

    - `access`: The credentials that the endpoint accepts.
    - `status`: The success status. Default: 200, or 204 without a response body.
    - `other_statuses`: Further statuses that return the same response type.
    - `errors`: Error codes in addition to those that the declaration implies.
    - `media`: The content types of the response.
    - `body_limit`: The maximum body size in bytes. Default: computed from the body's fields.
    - `body_media`, `body_schema`: Description of a body that the handler receives as bytes.
    - `operation_id`: The OpenAPI operation ID. Default: the handler's name.
    - `invalid_is_400`: Return 400 for an invalid value in the body, instead of 422.
    - `field_access`: The access required to send a body field, in addition to `access`.
    - `moves_money`: The endpoint moves money and accepts an idempotency key.
    - `requires`: Checks for missing or inconsistent input. They run once all types are valid and
      before any value is checked.
    - `heavy`: Requests count toward the limit on concurrent expensive reads. True applies to all
      requests, a string to requests with that query parameter.
    """

    access: Required[Access]
    status: int
    other_statuses: tuple[int, ...]
    errors: tuple[Code, ...]
    media: tuple[str, ...]
    body_limit: int
    body_media: tuple[str, ...]
    body_schema: Any
    operation_id: str
    invalid_is_400: bool
    field_access: Mapping[str, Access]
    moves_money: bool
    requires: tuple[Requirement, ...]
    heavy: bool | str


class Endpoints:
    """The endpoints of one resource, registered with decorators.

    A handler's first parameter is the request context. `body` and `query` receive the decoded body
    and query. Every other parameter receives the path parameter of the same name.
    """

    def __init__(self, tag: str) -> None:
        self.tag = tag
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
            types = get_type_hints(handler, include_extras=True)
            response = types.pop("return", None)
            if get_origin(response) is Reply:
                (response,) = get_args(response)
            has_no_content = response in (None, type(None))
            body_description = options.get("body_schema") or types.get("body")
            self._endpoints.append(
                Endpoint(
                    method=method,
                    path=path,
                    tag=self.tag,
                    handler=handler,
                    access=options["access"],
                    status=options.get("status", 204 if has_no_content else 200),
                    other_statuses=options.get("other_statuses", ()),
                    errors=options.get("errors", ()),
                    body_type=types.get("body"),
                    query_type=types.get("query"),
                    path_parameters=_parse_path_parameters(path, handler, types),
                    response_type=None if has_no_content else response,
                    media=options.get("media", ("application/json",)),
                    body_limit=options.get("body_limit") or compute_body_limit(body_description),
                    body_media=options.get("body_media", ("application/json",)),
                    body_schema=options.get("body_schema"),
                    operation_id=options.get("operation_id", handler.__name__),
                    invalid_is_400=options.get("invalid_is_400", False),
                    field_access=options.get("field_access", {}),
                    moves_money=options.get("moves_money", False),
                    requires=options.get("requires", ()),
                    heavy=options.get("heavy", False),
                )
            )
            return handler

        return add


def _parse_path_parameters(
    path: str, handler: Handler, types: Mapping[str, Any]
) -> tuple[str, ...]:
    names = tuple(part[1:-1] for part in path.split("/") if part.startswith("{"))
    context, *parameters = inspect.signature(handler).parameters
    path_parameters = [name for name in parameters if name not in ("body", "query")]
    wrong_type = [name for name in path_parameters if types[name] is not str]
    if (
        types[context] is not RequestContext
        or sorted(path_parameters) != sorted(names)
        or wrong_type
    ):
        raise TypeError(f"{handler.__qualname__} does not match {path}: {names}")
    return names
