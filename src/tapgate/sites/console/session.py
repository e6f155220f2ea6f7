"""Console sessions in a SameSite, HttpOnly cookie, with CSRF protection and flash messages."""

import base64
from secrets import token_bytes
from typing import Final
from urllib.parse import urlsplit

from tapgate.auth.access_tokens import ACCESS_TOKEN_LIFETIME
from tapgate.auth.principals import Principal
from tapgate.auth.rate_limit_cost import RateLimitCost
from tapgate.core.vault import matches_any
from tapgate.http.api.request_context import RequestContext
from tapgate.sites.console.forms import parse_cookies
from tapgate_client.errors import ApiError, Code

CSRF_HEADER: Final = b"x-csrf-token"
CSRF_FIELD: Final = "csrf"
_CSRF_PURPOSE: Final = "console_csrf"

_FLASH_SECONDS: Final = 30
#: Cookie names outside production and in production. With the `__Host-` prefix, the browser
#: guarantees that this host itself has set the cookie.
_SESSION_COOKIES: Final = ("tapgate_session", "__Host-tapgate_session")
_FLASH_COOKIES: Final = ("tapgate_said", "__Host-tapgate_said")
_SSO_COOKIES: Final = ("tapgate_sso", "__Host-tapgate_sso")
#: The time zone of the browser, which `early.js` stores.
_TIMEZONE_COOKIE: Final = "tapgate_timezone"
_SSO_SECONDS: Final = 600
_MAX_DESTINATION_LENGTH: Final = 1000
_MAX_FLASH_LENGTH: Final = 500
#: Elements that pages reload automatically. This does not keep an idle session alive.
_REFRESHED_ELEMENTS: Final = frozenset({"figures", "thread"})


async def authenticate(request: RequestContext, cost: RateLimitCost) -> Principal | None:
    token = _get_cookie(request, _SESSION_COOKIES)
    if token is None:
        return None
    try:
        return await request.services.authenticator.sessions.authenticate(
            token, cost, is_use=request.get_header(b"hx-trigger") not in _REFRESHED_ELEMENTS
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
    text = _encode(message[:_MAX_FLASH_LENGTH])
    return _build_cookie(request, _FLASH_COOKIES, text, _FLASH_SECONDS)


def get_flash(request: RequestContext) -> str | None:
    text = _get_cookie(request, _FLASH_COOKIES)
    return (_decode(text) or "")[:_MAX_FLASH_LENGTH] or None if text else None


def clear_flash(request: RequestContext) -> str:
    return _build_cookie(request, _FLASH_COOKIES, "", 0)


def get_timezone(request: RequestContext) -> str | None:
    """Return the name of the browser's time zone, if a page has stored it."""
    return parse_cookies(request.get_header(b"cookie")).get(_TIMEZONE_COOKIE)


def set_sso_login(request: RequestContext, login_token: str, destination: str) -> str:
    """Return the `Set-Cookie` value of a sign-in that continues at the identity provider.

    Browsers send it when the provider redirects back, which they do not for `SameSite=Strict`.
    """
    # Browsers ignore cookies of more than 4 KiB.
    path = destination if len(destination) <= _MAX_DESTINATION_LENGTH else ""
    text = f"{login_token}.{_encode(path)}"
    return _build_cookie(request, _SSO_COOKIES, text, _SSO_SECONDS, same_site="Lax")


def get_sso_login(request: RequestContext) -> tuple[str, str]:
    """Return a sign-in's token and destination, empty if this browser started none."""
    token, _, destination = (_get_cookie(request, _SSO_COOKIES) or "").partition(".")
    return token, _decode(destination) or ""


def _encode(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


def _decode(text: str) -> str | None:
    try:
        return base64.urlsafe_b64decode(text.encode()).decode()
    except ValueError:
        return None


def _get_cookie(request: RequestContext, names: tuple[str, str]) -> str | None:
    name = names[request.services.settings.has_secure_cookies]
    return parse_cookies(request.get_header(b"cookie")).get(name)


def _build_cookie(
    request: RequestContext,
    names: tuple[str, str],
    value: str,
    seconds: int,
    *,
    same_site: str = "Strict",
) -> str:
    is_secure = request.services.settings.has_secure_cookies
    name, secure = names[is_secure], "; Secure" if is_secure else ""
    return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={same_site}{secure}"


def get_csrf_token(request: RequestContext, principal: Principal) -> str:
    """Return a session's CSRF token, masked with random bytes.

    The token is different in each response, so that the size of compressed pages does not reveal
    it.
    """
    token = request.services.vault.keyed_hash(_CSRF_PURPOSE, _get_session_bytes(principal))
    mask = token_bytes(len(token))
    return (mask + _xor(token, mask)).hex()


def _unmask(text: str) -> bytes:
    """Return the token in a masked text, or bytes that match no token."""
    try:
        content = bytes.fromhex(text)
    except ValueError:
        return b""
    half = len(content) // 2
    return _xor(content[:half], content[half:])


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(left ^ right for left, right in zip(one, other, strict=False))


def is_own_page(request: RequestContext) -> bool:
    """Return whether the browser says that a page of this site, or the user, made the request.

    Other sites can neither forge this header nor make an own page send their text.
    """
    return request.get_header(b"sec-fetch-site") in ("same-origin", "none")


def require_same_origin(request: RequestContext) -> None:
    """Reject requests that another site made the browser send.

    `Sec-Fetch-Site` is more reliable than comparing hosts, because a proxy may change the `Host`
    header. Older browsers send only `Origin`.
    """
    origin = request.get_header(b"origin")
    if request.get_header(b"sec-fetch-site"):
        is_own = is_own_page(request)
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
    # Another node may have rendered the page with an older secret key.
    expected = request.services.vault.list_keyed_hashes(
        _CSRF_PURPOSE, _get_session_bytes(principal)
    )
    if not matches_any(_unmask(value), expected):
        raise ApiError(Code.FORBIDDEN, "Your session has changed. Reload the page and try again.")


def _get_session_bytes(principal: Principal) -> bytes:
    return str(principal.session_id).encode()
