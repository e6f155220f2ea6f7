"""Site with the page that checks an inclusion proof.

The page contains the public keys, so it needs no connection, and its headers forbid all of them:
a proof cannot leave the browser.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from tapgate.business.finance.day_close.ledger_keys import list_public_keys
from tapgate.http.api.app import App
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Reply
from tapgate.sites.public_site import PublicPage, load_branding
from tapgate.sites.tap_page.texts import choose_language
from tapgate.sites.verify_page.texts import TEXTS
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.day_close import LedgerKeys

_PREFIX: Final = "/verify"
_SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; "
        "connect-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
}


class VerifyPage(PublicPage):
    """Site with one page."""

    prefix = _PREFIX
    package = "tapgate.sites.verify_page"
    template_name = "verify.html"
    failure_event = "verify_page.failed"
    headers = _SECURITY_HEADERS

    def render_error(self, app: App, request: RequestContext, error: ApiError) -> Reply[bytes]:
        return Reply(
            error.error.encode(),
            status=error.status,
            headers={**error.headers, **_SECURITY_HEADERS},
            content_type="text/plain; charset=utf-8",
        )

    async def build_page(self, request: RequestContext) -> Reply[bytes]:
        if request.path != _PREFIX:
            raise ApiError(Code.NOT_FOUND)
        branding = await load_branding(request)
        keys = LedgerKeys(keys=await list_public_keys(request.services.database))
        language = choose_language(request.get_header(b"accept-language"))
        texts = TEXTS[language]
        script_texts = {
            name: text
            for name, text in texts.items()
            if name in ("valid", "invalid") or name.startswith("reason.")
        }
        page = self.template.render(
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
