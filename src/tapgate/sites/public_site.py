"""Parts shared by the sites that anyone can open: one page, image or redirect each."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import ClassVar, Final

import structlog
from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from tapgate.business.branding.model import Branding
from tapgate.business.branding.operations import get_branding_or_default
from tapgate.http.api.app import App
from tapgate.http.api.packaged_files import PackagedFiles
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Reply
from tapgate.runtime import logs
from tapgate_client.errors import ApiError, Code

_ASSETS: Final = "/assets/"
_log = structlog.get_logger()


class PublicSite(ABC):
    """Site without callers, forms or bodies; implements `tapgate.http.api.app.Site`."""

    prefix: str

    def get_route(self, path: str) -> str:
        return self.prefix

    async def authorize(self, app: App, request: RequestContext) -> int:
        """Throttle the address. The site accepts no body."""
        await app.charge_address(request)
        return 0

    @abstractmethod
    async def respond(self, app: App, request: RequestContext) -> Reply[bytes]: ...

    def render_error(self, app: App, request: RequestContext, error: ApiError) -> Reply[bytes]:
        raise error

    def require_own_path(self, request: RequestContext) -> None:
        """Reject other paths that start with the prefix, and other methods."""
        if request.path != self.prefix:
            raise ApiError(Code.NOT_FOUND)
        require_reading(request)


class PublicPage(PublicSite):
    """Site with one page and its assets, which reports errors as pages."""

    package: ClassVar[str]
    template_name: ClassVar[str]
    #: Name of the log event for unexpected errors.
    failure_event: ClassVar[str]
    headers: ClassVar[Mapping[str, str]]

    def __init__(self) -> None:
        self.template = _load_template(self.package, self.template_name)
        self._assets = PackagedFiles(self.package, "assets", self.headers)

    async def respond(self, app: App, request: RequestContext) -> Reply[bytes]:
        try:
            require_reading(request)
            folder = self.prefix + _ASSETS
            if request.path.startswith(folder):
                return await self._assets.serve(request, request.path.removeprefix(folder))
            return await self.build_page(request)
        except ApiError as error:
            return self.render_error(app, request, error)
        except Exception as error:
            failure = logs.describe_exception(error)
            _log.error(self.failure_event, request_id=request.request_id, failure=failure)
            return self.render_error(app, request, ApiError(Code.INTERNAL_ERROR))

    @abstractmethod
    async def build_page(self, request: RequestContext) -> Reply[bytes]:
        """Return the page, or raise an error for an unknown path."""


def require_reading(request: RequestContext) -> None:
    if request.method not in ("GET", "HEAD"):
        raise ApiError(Code.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})


async def load_branding(request: RequestContext) -> Branding:
    services = request.services
    return await get_branding_or_default(services.database, services.settings, services.clock())


@cache
def _load_template(package: str, name: str) -> Template:
    environment = Environment(
        loader=PackageLoader(package), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template(name)
