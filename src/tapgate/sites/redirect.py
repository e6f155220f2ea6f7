"""Redirects from one path to a page."""

from tapgate.http.api.app import App
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Reply
from tapgate_client.errors import ApiError, Code


class Redirect:
    """Site with one path; implements `tapgate.http.api.app.Site`."""

    def __init__(self, path: str, location: str) -> None:
        self.prefix = path
        self._location = location

    def get_route(self, path: str) -> str:
        return self.prefix

    async def authorize(self, app: App, request: RequestContext) -> int:
        """Throttle the address. The page accepts no body."""
        await app.charge_address(request)
        return 0

    async def respond(self, app: App, request: RequestContext) -> Reply[bytes]:
        if request.path != self.prefix:
            raise ApiError(Code.NOT_FOUND)
        if request.method not in ("GET", "HEAD"):
            raise ApiError(Code.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})
        return Reply(b"", status=303, headers={"Location": self._location})

    def render_error(self, app: App, request: RequestContext, error: ApiError) -> Reply[bytes]:
        raise error
