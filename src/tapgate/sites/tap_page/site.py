"""Site with the page of a tapped card, at the URL that the card's chip contains.

The page says who operates the card and whether its chip signed the tap, and leads to the chat. It
reads neither the account nor the cardholder, consumes no tap and raises no alert, so that opening
the link again does no harm.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from tapgate.business.branding.model import DEFAULT_COLOR, Branding, render_stylesheet
from tapgate.business.branding.operations import build_default_branding
from tapgate.business.branding.routes import build_logo_reply
from tapgate.business.customers.cards import queries
from tapgate.core.settings import Settings
from tapgate.http.api.app import App
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Reply
from tapgate.ledger.card_proofs.proof_verifier import find_proof_error, is_not_confirmed
from tapgate.sites.public_site import PublicPage, load_branding
from tapgate.sites.tap_page.texts import TEXTS, choose_language
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.card_proofs import CardProof, parse_tap_url

_PREFIX: Final = "/t"
_STYLESHEET_PATH: Final = f"{_PREFIX}/brand.css"
_LOGO_PATH: Final = f"{_PREFIX}/logo.png"
_CHAT_URL: Final = "https://wa.me/{number}?text={text}"
_SIMULATOR_URL: Final = "/simulator/phone?text={text}"

#: Only stylesheets, the font and the logo are loaded, there are no scripts, and other sites do not
#: learn the URL.
_SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
}


class TapPage(PublicPage):
    """Site with one page."""

    prefix = _PREFIX
    package = "tapgate.sites.tap_page"
    template_name = "tap.html"
    failure_event = "tap_page.failed"
    headers = _SECURITY_HEADERS

    def render_error(self, app: App, request: RequestContext, error: ApiError) -> Reply[bytes]:
        settings = request.services.settings
        branding = build_default_branding(settings)
        reply = self._render(request, branding, "error", status=error.status)
        reply.headers = {**error.headers, **reply.headers}
        return reply

    async def build_page(self, request: RequestContext) -> Reply[bytes]:
        branding = await load_branding(request)
        if request.path == _STYLESHEET_PATH:
            return _build_stylesheet_reply(branding)
        if request.path == _LOGO_PATH:
            reply = build_logo_reply(branding)
            reply.headers = {**reply.headers, **_SECURITY_HEADERS}
            return reply
        if request.path != _PREFIX:
            raise ApiError(Code.NOT_FOUND)
        tap = parse_tap_url(f"?{request.query.decode('latin-1')}")
        if tap is None:
            return self._render(request, branding, "missing")
        state = await _check(request, CardProof(picc_data=tap[0], cmac=tap[1]))
        if state != "genuine":
            return self._render(request, branding, state)
        tap_url = "{}{}?picc_data={}&cmac={}".format(
            request.services.settings.public_url, _PREFIX, *tap
        )
        return self._render(request, branding, state, tap_url)

    def _render(
        self,
        request: RequestContext,
        branding: Branding,
        state: str,
        tap_url: str | None = None,
        *,
        status: int = 200,
    ) -> Reply[bytes]:
        settings = request.services.settings
        language = choose_language(request.get_header(b"accept-language"))
        translate = partial(_translate, language, operator=branding.name)
        text = self.template.render(
            language=language,
            state=state,
            translate=translate,
            operator=branding.name,
            contact=branding.support_contact,
            has_logo=branding.logo is not None,
            has_color=branding.color != DEFAULT_COLOR,
            is_genuine=tap_url is not None,
            chat_url=None
            if tap_url is None
            else _build_chat_url(settings, translate("chat.message", url=tap_url)),
        )
        return Reply(
            text.encode(errors="replace"),
            status=status,
            headers={**_SECURITY_HEADERS, "Vary": "Accept-Language"},
            content_type="text/html; charset=utf-8",
        )


def _build_stylesheet_reply(branding: Branding) -> Reply[bytes]:
    return Reply(
        render_stylesheet(branding.color).encode(),
        headers={"Cache-Control": "no-cache", **_SECURITY_HEADERS},
        content_type="text/css; charset=utf-8",
    )


def _translate(language: str, key: str, **values: Any) -> str:
    return TEXTS[language][key].format_map(values)


async def _check(request: RequestContext, proof: CardProof) -> str:
    """Return a tap's state, without a lock: only a payment decides whether it is used."""
    services = request.services
    result = await services.proof_verifier.verify(proof)
    if result.card_serial is None:
        return "not_genuine"
    card = await queries.get(services.database, result.card_serial)
    error_code = find_proof_error(result, card)
    if error_code is None:
        return "genuine"
    if is_not_confirmed(result, card):
        return "not_confirmed"
    return "used" if error_code is Code.CARD_PROOF_USED else "not_genuine"


def _build_chat_url(settings: Settings, message: str) -> str | None:
    """Return the URL that opens the chat with a message, or None if no chat is known."""
    text = quote(message, safe="")
    if settings.messenger_phone_number is not None:
        number = settings.messenger_phone_number.removeprefix("+")
        return _CHAT_URL.format(number=number, text=text)
    return _SIMULATOR_URL.format(text=text) if settings.has_simulators else None
