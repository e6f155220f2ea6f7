"""Interfaces between the application and sites, which serve HTML pages on the same server.

Except for sessions, a site reads and changes data only through the endpoints of the API.
"""

from typing import Any, Protocol

from tapgate.api.endpoint import Reply
from tapgate.api.request_context import RequestContext
from tapgate.auth.principals import Principal
from tapgate.errors import ApiError


class InternalApi(Protocol):
    """The application's interface for a site that acts on behalf of an authenticated admin."""

    async def dispatch(self, request: RequestContext) -> Any:
        """Run the endpoint of the request as its principal, without a rate limit charge.

        Return the handler's result, or raise the ApiError of a check or of the handler.
        """

    def can_call(self, principal: Principal, endpoint: str, field: str | None = None) -> bool:
        """Return whether a principal may call an endpoint and, if given, send a restricted field.

        `endpoint` is a method and path template, such as `POST /api/v1/agents/{id}/fund`.
        """

    async def require_access(
        self, request: RequestContext, endpoint: str, field: str | None, message: str
    ) -> None:
        """Record and raise a denial with this message if the principal lacks access."""

    async def enforce_rate_limit(self, context: RequestContext, key: str) -> None:
        """Take a token from a bucket, or raise 429 if none is left."""


class Site(Protocol):
    #: Path prefix of the site's pages.
    prefix: str

    async def authorize(self, api: InternalApi, request: RequestContext) -> int:
        """Authenticate the caller, charge its rate limit and return the body limit in bytes.

        For an authenticated caller whose body was incomplete, this is called again once the body
        has arrived, and must not charge again.
        """

    async def respond(self, api: InternalApi, request: RequestContext) -> Reply[bytes]:
        """Return the page for a request. Errors are reported as pages too."""

    def render_error(
        self, api: InternalApi, request: RequestContext, error: ApiError
    ) -> Reply[bytes]:
        """Return the error page for a request that is rejected before `respond` is called."""
