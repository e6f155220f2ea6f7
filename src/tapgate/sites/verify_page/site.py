"""Site with the page that checks an inclusion proof.

The page contains the public keys, so it needs no connection, and its headers forbid all of them:
a proof cannot leave the browser.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

import msgspec
import structlog
from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from tapgate.business.branding.operations import get_branding_or_default
from tapgate.business.finance.day_close.ledger_keys import list_public_keys
from tapgate.http.api.app import App
from tapgate.http.api.packaged_files import PackagedFiles
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Reply
from tapgate.runtime import logs
from tapgate.sites.tap_page.texts import choose_language
from tapgate.sites.verify_page.texts import TEXTS
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.day_close import LedgerKeys

_PACKAGE: Final = "tapgate.sites.verify_page"
_PREFIX: Final = "/verify"
_ASSETS_PATH: Final = f"{_PREFIX}/assets/"
_SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
        "connect-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
}
_log = structlog.get_logger()


@cache
def _load_template() -> Template:
    environment = Environment(
        loader=PackageLoader(_PACKAGE), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("verify.html")


class VerifyPage:
    """Site with one page; implements `tapgate.http.api.app.Site`."""

    prefix = _PREFIX

    def __init__(self) -> None:
        self._template = _load_template()
        self._assets = PackagedFiles(_PACKAGE, "assets", _SECURITY_HEADERS)

    def get_route(self, path: str) -> str:
        return self.prefix

    async def authorize(self, app: App, request: RequestContext) -> int:
        """Throttle the address. The page accepts no body."""
        await app.charge_address(request)
        return 0

    async def respond(self, app: App, request: RequestContext) -> Reply[bytes]:
        try:
            return await self._respond(request)
        except ApiError as error:
            return self.render_error(app, request, error)
        except Exception as error:
            failure = logs.describe_exception(error)
            _log.error("verify_page.failed", request_id=request.request_id, failure=failure)
            return self.render_error(app, request, ApiError(Code.INTERNAL_ERROR))

    def render_error(self, app: App, request: RequestContext, error: ApiError) -> Reply[bytes]:
        return Reply(
            error.error.encode(),
            status=error.status,
            headers={**error.headers, **_SECURITY_HEADERS},
            content_type="text/plain; charset=utf-8",
        )

    async def _respond(self, request: RequestContext) -> Reply[bytes]:
        if request.method not in ("GET", "HEAD"):
            raise ApiError(Code.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})
        if request.path.startswith(_ASSETS_PATH):
            return await self._assets.serve(request, request.path.removeprefix(_ASSETS_PATH))
        if request.path != _PREFIX:
            raise ApiError(Code.NOT_FOUND)
        services = request.services
        branding = await get_branding_or_default(
            services.database, services.settings, services.clock()
        )
        keys = LedgerKeys(keys=await list_public_keys(services.database))
        language = choose_language(request.get_header(b"accept-language"))
        texts = TEXTS[language]
        script_texts = {
            name: text
            for name, text in texts.items()
            if name in ("valid", "invalid") or name.startswith("reason.")
        }
        page = self._template.render(
            language=language,
            texts=texts,
            operator=branding.name,
            keys=msgspec.json.encode(keys).decode(),
            script_texts=msgspec.json.encode(script_texts).decode(),
        )
        return Reply(
            page.encode(errors="replace"),
            headers={**_SECURITY_HEADERS, "Vary": "Accept-Language", "Cache-Control": "no-cache"},
            content_type="text/html; charset=utf-8",
        )
