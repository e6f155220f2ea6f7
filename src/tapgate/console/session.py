"""Console sessions in a SameSite, HttpOnly cookie, with CSRF protection and flash messages."""

import base64
import hmac
from typing import Final
from urllib.parse import urlsplit

from tapgate.api.request_context import RequestContext
from tapgate.auth.access_tokens import ACCESS_TOKEN_LIFETIME
from tapgate.auth.charges import Charge
from tapgate.auth.principals import Principal
from tapgate.console.forms import parse_cookies
from tapgate.errors import ApiError, Code

CSRF_HEADER: Final = b"x-csrf-token"
CSRF_FIELD: Final = "csrf"

_FLASH_SECONDS: Final = 30
#: Cookie names outside production and in production. With the `__Host-` prefix, the browser
#: guarantees that this host itself has set the cookie.
_SESSION_COOKIES: Final = ("tapgate_session", "__Host-tapgate_session")
_FLASH_COOKIES: Final = ("tapgate_said", "__Host-tapgate_said")
_MAX_FLASH_LENGTH: Final = 500
#: Elements that pages reload automatically. This does not keep an idle session alive.
_REFRESHED_ELEMENTS: Final = frozenset({"figures", "thread"})


async def authenticate(request: RequestContext, charge: Charge) -> Principal | None:
    token = _get_cookie(request, _SESSION_COOKIES)
    if token is None:
        return None
    try:
        return await request.services.authenticator.sessions.authenticate(
            token, charge, is_use=request.get_header(b"hx-trigger") not in _REFRESHED_ELEMENTS
        )
    except ApiError as error:
        if error.code is not Code.UNAUTHORIZED:
            raise
        return None


def set_session(request: RequestContext, token: str) -> str:
    """Return the `Set-Cookie` value of a session. The cookie expires with the token."""
    seconds = int(ACCESS_TOKEN_LIFETIME.total_seconds())
    return _build_cookie(request, _SESSION_COOKIES, token, seconds)


def clear_session(request: RequestContext) -> str:
    return _build_cookie(request, _SESSION_COOKIES, "", 0)


def set_flash(request: RequestContext, message: str) -> str:
    """Return the `Set-Cookie` value of a flash message for the next page."""
    text = base64.urlsafe_b64encode(message[:_MAX_FLASH_LENGTH].encode()).decode()
    return _build_cookie(request, _FLASH_COOKIES, text, _FLASH_SECONDS)


def get_flash(request: RequestContext) -> str | None:
    text = _get_cookie(request, _FLASH_COOKIES)
    if not text:
        return None
    try:
        return base64.urlsafe_b64decode(text.encode()).decode()[:_MAX_FLASH_LENGTH]
    except ValueError:
        return None


def clear_flash(request: RequestContext) -> str:
    return _build_cookie(request, _FLASH_COOKIES, "", 0)


def _get_cookie(request: RequestContext, names: tuple[str, str]) -> str | None:
    name = names[request.services.settings.is_production]
    return parse_cookies(request.get_header(b"cookie")).get(name)


def _build_cookie(request: RequestContext, names: tuple[str, str], value: str, seconds: int) -> str:
    is_production = request.services.settings.is_production
    name, secure = names[is_production], "; Secure" if is_production else ""
    return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def get_csrf_token(request: RequestContext, principal: Principal) -> str:
    """Return the CSRF token of a session; it is the same on all pages of that session."""
    session = str(principal.session_id).encode()
    return request.services.vault.keyed_hash("console_csrf", session).hex()


def require_same_origin(request: RequestContext) -> None:
    """Reject requests that another site made the browser send.

    `Sec-Fetch-Site` is more reliable than comparing hosts, because a proxy may change the `Host`
    header. Older browsers send only `Origin`.
    """
    site, origin = request.get_header(b"sec-fetch-site"), request.get_header(b"origin")
    if site:
        is_own = site in ("same-origin", "none")
    else:
        is_own = not origin or _get_host(origin) == request.get_header(b"host")
    if not is_own:
        raise ApiError(Code.FORBIDDEN, "This form was submitted from another site")


def _get_host(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None


def require_csrf_token(
    request: RequestContext, principal: Principal, form_token: str | None
) -> None:
    value = request.get_header(CSRF_HEADER) or form_token or ""
    expected = get_csrf_token(request, principal)
    if not hmac.compare_digest(value.encode(errors="replace"), expected.encode()):
        raise ApiError(Code.FORBIDDEN, "Your session has changed. Reload the page and try again.")
