"""Request context and error responses of the messenger's endpoints."""

from typing import Annotated, Final

import msgspec

from tapgate.http.endpoint import BaseRequestContext
from tapgate.http.messages import Response
from tapgate.http.responses import encode_json, render_json
from tapgate.messenger.services import Services
from tapgate_client.errors import ApiError, Code

TEXT_MEDIA_TYPE: Final = "text/plain; charset=utf-8"

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
