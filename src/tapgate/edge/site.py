"""Interfaces between the application and sites, which serve HTML pages on the same server.

A site uses only the operations of the API and nothing beneath them.
"""

from typing import Any, Protocol

from tapgate.credentials.principals import Principal
from tapgate.edge.endpoint import Reply
from tapgate.edge.request_context import RequestContext
from tapgate.errors import ApiError


class InternalApi(Protocol):
    """The application, as a site uses it on behalf of an admin that the site has authenticated."""

    async def dispatch(self, request: RequestContext) -> Any:
        """Run the endpoint of the request context with its principal and return the result."""

    def can_call(self, principal: Principal, endpoint: str, field: str | None = None) -> bool:
        """Return whether a principal may call an endpoint, or send a field with restricted access.

        `endpoint` is a method and path template, such as `POST /api/v1/agents/{id}/fund`.
        """

    async def require_access(
        self, request: RequestContext, endpoint: str, field: str | None, message: str
    ) -> None:
        """Raise and record a denial, with this message, if `can_call` is false."""

    async def enforce_rate_limit(self, request: RequestContext, key: str) -> None:
        """Take a token from a bucket, or raise 429 if none is left."""


class Site(Protocol):
    #: Path prefix of the site's pages.
    prefix: str

    async def authorize(self, api: InternalApi, request: RequestContext) -> int:
        """Authenticate the caller, charge its rate limit and return the body limit in bytes.

        Called again, without a second charge, if the body of an authenticated caller arrives later.
        """

    async def respond(self, api: InternalApi, request: RequestContext) -> Reply[bytes]:
        """Return the page for a request, including pages that report an error to the user."""

    def render_error(
        self, api: InternalApi, request: RequestContext, error: ApiError
    ) -> Reply[bytes]:
        """Return the page for a request that is rejected before `respond` is called."""
