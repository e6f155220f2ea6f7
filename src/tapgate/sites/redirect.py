"""Redirect from the root path to the console."""

from tapgate.http.api.app import App
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Reply
from tapgate.sites.console.navigation import HOME_PATH
from tapgate_client.errors import ApiError, Code


class RootRedirect:
    """Site with the root path only; implements `tapgate.http.api.app.Site`."""

    prefix = "/"

    def get_route(self, path: str) -> str:
        return self.prefix

    async def authorize(self, app: App, request: RequestContext) -> int:
        """Throttle the address. The page accepts no body."""
        await app.charge_address(request)
        return 0

    async def respond(self, app: App, request: RequestContext) -> Reply[bytes]:
        if request.method not in ("GET", "HEAD"):
            raise ApiError(Code.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})
        return Reply(b"", status=303, headers={"Location": HOME_PATH})

    def render_error(self, app: App, request: RequestContext, error: ApiError) -> Reply[bytes]:
        raise error
