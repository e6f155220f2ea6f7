"""Building blocks of the HTTP API: requests, routes, responses and errors."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import msgspec

from tapgate.http.messages import SECURITY_HEADERS, Response, encode_headers
from tapgate.messenger.services import Services

KIBIBYTE: Final = 1024
MEBIBYTE: Final = 1024 * KIBIBYTE
JSON_MEDIA_TYPE: Final = "application/json"
TEXT_MEDIA_TYPE: Final = "text/plain; charset=utf-8"

_encoder = msgspec.json.Encoder()


@dataclass(kw_only=True, slots=True)
class Request:
    """An HTTP request, with lowercase header names and the path still percent-encoded."""

    services: Services
    method: str
    path: str
    query: bytes
    headers: Mapping[bytes, bytes]
    ip: str
    request_id: str
    body: bytes = b""
    #: The authenticated caller; None before authentication and for anonymous callers.
    principal: str | None = None

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


class HttpError(Exception):
    """An error response. Its message never repeats values from the request."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        retry_after: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status)
        self.status = status
        self.message = message
        self.retry_after = retry_after
        self.headers = headers or {}


#: Types of `status` in response bodies, for the OpenAPI document.
SuccessStatus = Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["success"]})]
ErrorStatus = Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["error"]})]


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    error: str
    status: ErrorStatus
    #: In seconds; present when a rate limit is exceeded.
    retryAfter: int | None = None  # noqa: N815 - the name in the API


@dataclass(frozen=True, kw_only=True)
class Access:
    """Access declaration of a route.

    A check returns the principal, returns None for an anonymous caller, or raises `HttpError`.
    """

    #: Runs before the body is read.
    check: Callable[[Request], str | None]
    #: Runs after the body is read, to check a signature over it.
    check_body: Callable[[Request], str | None] | None = None
    description: str
    #: Alternatives, each a set of OpenAPI security schemes that are required together.
    security: tuple[tuple[str, ...], ...] = ()
    error_statuses: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Parameter:
    name: str
    description: str
    #: `query` or `header`.
    location: str = "query"
    required: bool = True
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})


@dataclass(frozen=True, kw_only=True)
class Route:
    """One row of the route table, used for routing, access checks and the OpenAPI document."""

    method: str
    path: str
    #: Its name becomes the operation ID, and its docstring the summary and description.
    handler: Callable[[Request], Awaitable[Response]]
    access: Access
    #: Response bodies by status: a struct, a schema, `str` for text, or None for `ErrorBody`.
    responses: Mapping[int, Any]
    #: Request body: a struct, or a schema for a format that the provider defines.
    body: Any = None
    body_limit: int = 16 * KIBIBYTE
    parameters: tuple[Parameter, ...] = ()
    in_production: bool = True

    @property
    def operation_id(self) -> str:
        return getattr(self.handler, "__name__", self.path)


def render_json(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Response:
    return render_encoded_json(status, _encoder.encode(body), headers)


def render_encoded_json(
    status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a response with a body that is already encoded as JSON."""
    return _build_response(status, body, JSON_MEDIA_TYPE, headers or {})


def render_text(status: int, text: str) -> Response:
    return _build_response(status, text.encode(), TEXT_MEDIA_TYPE, {})


def render_http_error(error: HttpError) -> Response:
    body = ErrorBody(error=error.message, status="error", retryAfter=error.retry_after)
    headers = dict(error.headers)
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    return render_json(error.status, body, headers)


def _build_response(status: int, body: bytes, media: str, headers: Mapping[str, str]) -> Response:
    all_headers = {
        "content-type": media,
        "content-length": str(len(body)),
        "cache-control": "no-store",
        **SECURITY_HEADERS,
        **headers,
    }
    return Response(status, encode_headers(all_headers), body)
