"""Icon that browsers request for documents that name none, such as files and JSON."""

from typing import Final

from tapgate.business.branding.operations import get_branding_or_default
from tapgate.business.branding.routes import build_logo_reply
from tapgate.http.api.app import App
from tapgate.http.api.packaged_files import PackagedFiles
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Reply
from tapgate_client.errors import ApiError, Code

_HEADERS: Final = {
    "Cache-Control": "public, max-age=86400",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
}


class Favicon:
    """Site with one image, the logo or the default icon (see `tapgate.http.api.app.Site`)."""

    prefix = "/favicon.ico"

    def __init__(self) -> None:
        self._assets = PackagedFiles("tapgate.sites.console", "assets", _HEADERS)

    def get_route(self, path: str) -> str:
        return self.prefix

    async def authorize(self, app: App, request: RequestContext) -> int:
        """Throttle the address. The image accepts no body."""
        await app.charge_address(request)
        return 0

    async def respond(self, app: App, request: RequestContext) -> Reply[bytes]:
        if request.path != self.prefix:
            raise ApiError(Code.NOT_FOUND)
        if request.method not in ("GET", "HEAD"):
            raise ApiError(Code.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})
        services = request.services
        branding = await get_branding_or_default(
            services.database, services.settings, services.clock()
        )
        if branding.logo is None:
            return await self._assets.serve(request, "mark.svg")
        reply = build_logo_reply(branding)
        reply.headers = {**reply.headers, **_HEADERS}
        return reply

    def render_error(self, app: App, request: RequestContext, error: ApiError) -> Reply[bytes]:
        raise error
