"""Pages for people on the same server: what the application asks of a site, and what a site may use
of the application. A site knows the interface's operations and nothing beneath them."""

from typing import Any, Protocol

from tapgate.credentials.principals import Principal
from tapgate.edge.endpoint import Reply
from tapgate.edge.request_context import RequestContext
from tapgate.errors import ApiError


class InternalApi(Protocol):
    """The application, for somebody whom the site has already found out to be an admin."""

    async def dispatch(self, call: RequestContext) -> Any:
        """What the endpoint answers that the call names, to whoever is its caller."""

    def can_call(self, principal: Principal, endpoint: str, field: str | None = None) -> bool:
        """Whether somebody may call an endpoint, `POST /api/v1/agents/{id}/fund`, or may send a
        field that fewer callers may send."""

    async def require_access(
        self, call: RequestContext, endpoint: str, field: str | None, sentence: str
    ) -> None:
        """Refuses whom `admits` does not admit, in these words, and records that it did."""

    async def enforce_rate_limit(self, call: RequestContext, key: str) -> None:
        """One request of a rate; refused where none is left."""


class Site(Protocol):
    #: How the paths of its pages begin.
    prefix: str

    async def authorize(self, inside: InternalApi, call: RequestContext) -> int:
        """Authenticate and charge the caller; return the largest body to accept.

        Called again for an authenticated caller whose body arrived later, without a second charge.
        """

    async def respond(self, inside: InternalApi, call: RequestContext) -> Reply[bytes]:
        """Also where something went wrong that people can be told about."""

    def render_error(
        self, inside: InternalApi, call: RequestContext, error: ApiError
    ) -> Reply[bytes]:
        """What a person sees who was not let in, or whose request was too large to read."""
