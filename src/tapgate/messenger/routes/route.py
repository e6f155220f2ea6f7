"""What the HTTP side is made of: a request, a route that takes it, an answer or a refusal."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import msgspec

from tapgate.messenger.services import Services
from tapgate.service.http import SECURITY_HEADERS, Response, encode_headers

KIBIBYTE: Final = 1024
MEBIBYTE: Final = 1024 * KIBIBYTE
JSON_MEDIA_TYPE: Final = "application/json"
TEXT_MEDIA_TYPE: Final = "text/plain; charset=utf-8"

_encoder = msgspec.json.Encoder()


@dataclass(kw_only=True, slots=True)
class Request:
    """Header names are lower case; the path is as called, still encoded."""

    services: Services
    method: str
    path: str
    query: bytes
    headers: Mapping[bytes, bytes]
    ip: str
    request_id: str
    body: bytes = b""
    #: Who made it, once that is known.
    principal: str | None = None

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


class HttpError(Exception):
    """A request that is not carried out. The sentence never repeats what was sent."""

    def __init__(
        self,
        status: int,
        sentence: str,
        *,
        retry_after: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status)
        self.status = status
        self.message = sentence
        self.retry_after = retry_after
        self.headers = headers or {}


#: `status` in a response, as the OpenAPI document describes it.
SuccessStatus = Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["success"]})]
ErrorStatus = Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["error"]})]


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    error: str
    status: ErrorStatus
    #: Seconds; where the rate is used up.
    retryAfter: int | None = None  # noqa: N815 - its name outside


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who may call. A check returns the caller's name, None for an anonymous caller, or refuses."""

    #: Runs before the body is read.
    check: Callable[[Request], str | None]
    #: Runs once the body is read: for a signature over it.
    check_body: Callable[[Request], str | None] | None = None
    description: str
    #: Any one of these, all parts of it together; names of the description's security schemes.
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
    """One row of the table that serving, refusing and describing are made of."""

    method: str
    path: str
    #: Its name and docstring describe it.
    handler: Callable[[Request], Awaitable[Response]]
    access: Access
    #: What it answers by itself: a struct, or `str` for text, or None for a refusal.
    responses: Mapping[int, Any]
    #: What it takes: a struct, or a schema where others say what is sent.
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
    """The body is JSON already."""
    return _build_response(status, body, JSON_MEDIA_TYPE, headers or {})


def render_text(status: int, text: str) -> Response:
    return _build_response(status, text.encode(), TEXT_MEDIA_TYPE, {})


def render_http_error(refusal: HttpError) -> Response:
    body = ErrorBody(error=refusal.message, status="error", retryAfter=refusal.retry_after)
    headers = dict(refusal.headers)
    if refusal.retry_after is not None:
        headers["Retry-After"] = str(refusal.retry_after)
    return render_json(refusal.status, body, headers)


def _build_response(status: int, body: bytes, media: str, headers: Mapping[str, str]) -> Response:
    sent = {
        "content-type": media,
        "content-length": str(len(body)),
        "cache-control": "no-store",
        **SECURITY_HEADERS,
        **headers,
    }
    return Response(status, encode_headers(sent), body)
