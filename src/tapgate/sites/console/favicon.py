"""Icon that browsers request for documents that name none, such as files and JSON."""

from typing import Final

from tapgate.business.branding.routes import build_logo_reply
from tapgate.http.api.app import App
from tapgate.http.api.packaged_files import PackagedFiles
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Reply
from tapgate.sites.public_site import PublicSite, load_branding

_HEADERS: Final = {
    "Cache-Control": "public, max-age=86400",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
}


class Favicon(PublicSite):
    """Site with one image: the logo or the default icon."""

    prefix = "/favicon.ico"

    def __init__(self) -> None:
        self._assets = PackagedFiles("tapgate.sites.console", "assets", _HEADERS)

    async def respond(self, app: App, request: RequestContext) -> Reply[bytes]:
        self.require_own_path(request)
        branding = await load_branding(request)
        if branding.logo is None:
            return await self._assets.serve(request, "mark.svg")
        reply = build_logo_reply(branding)
        reply.headers = {**reply.headers, **_HEADERS}
        return reply
