"""Request context, value validation and error responses for the messenger's endpoints.

Errors name a field but never repeat its value.
"""

import re
from typing import Annotated, Final
from urllib.parse import parse_qsl

import msgspec

from tapgate.core.phone_numbers import normalize_phone_number
from tapgate.http.endpoint import BaseRequestContext
from tapgate.http.http_messages import Response
from tapgate.http.responses import encode_json, render_json
from tapgate.messenger.services import Services
from tapgate_client.errors import ApiError, Code
from tapgate_client.phone_numbers import PhoneNumberError

TEXT_MEDIA_TYPE: Final = "text/plain; charset=utf-8"

_E164_PATTERN: Final = re.compile(r"\+[1-9][0-9]{6,14}", re.ASCII)
_INVALID_PHONE_TEXT: Final = "must be a phone number in E.164 format, such as +23276123456"

#: Types of `status` in response bodies, for the OpenAPI document.
SuccessStatus = Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["success"]})]
ErrorStatus = Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["error"]})]

#: The messenger's messages for bodies that cannot be decoded.
_BODY_MESSAGES: Final = {
    "body must be an object": "The body must be a JSON object",
    "body must be valid JSON": "The body is not JSON",
    "body must be valid UTF-8": "The body is not UTF-8",
    "body is nested too deeply": "The body is nested too deeply",
}


class RequestContext(BaseRequestContext, kw_only=True):
    services: Services
    #: The authenticated caller; None before authentication and for anonymous callers.
    principal: str | None = None
    is_authorized: bool = False

    @property
    def caller_id(self) -> str | None:
        return self.principal


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    error: str
    status: ErrorStatus
    #: In seconds; present when a rate limit is exceeded.
    retryAfter: int | None = None  # noqa: N815 - the name in the API


def render_error(error: ApiError) -> Response:
    message = error.message or error.error
    is_rate_limit = error.code is Code.RATE_LIMITED
    body = ErrorBody(
        error=_BODY_MESSAGES.get(message, message),
        status="error",
        retryAfter=int(error.headers["Retry-After"]) if is_rate_limit else None,
    )
    return render_json(error.status, encode_json(body), error.headers)


def invalid(message: str) -> ApiError:
    """Return a 400. The message never repeats values from the request."""
    return ApiError(Code.INVALID_REQUEST, message)


def require_text(value: str, name: str, *, max_length: int) -> str:
    """Return the text; raise an error if it is blank, too long or contains NUL."""
    if not value.strip():
        raise invalid(f"{name} is required")
    if len(value) > max_length:
        raise invalid(f"{name} must have at most {max_length} characters")
    if "\0" in value:
        raise invalid(f"{name} must not contain NUL")
    return value


def parse_phone(value: str, name: str, *, code: Code = Code.INVALID_REQUEST) -> str:
    """Return the number in E.164 form. Accepts every number that the gateway accepts."""
    if _E164_PATTERN.fullmatch(value) is None:
        raise ApiError(code, f"{name} {_INVALID_PHONE_TEXT}")
    try:
        return normalize_phone_number(value)
    except PhoneNumberError as error:
        raise ApiError(code, f"{name} {error}") from None


def parse_query(raw: bytes) -> dict[str, str]:
    """Return the first value of each parameter; `+` decodes to a space."""
    pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True)
    return dict(reversed(pairs))
