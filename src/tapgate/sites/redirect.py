"""Redirects from one path to a page."""

from tapgate.http.api.app import App
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Reply
from tapgate.sites.public_site import PublicSite


class Redirect(PublicSite):
    """Site with one path."""

    def __init__(self, path: str, location: str) -> None:
        self.prefix = path
        self._location = location

    async def respond(self, app: App, request: RequestContext) -> Reply[bytes]:
        self.require_own_path(request)
        return Reply(b"", status=303, headers={"Location": self._location})
