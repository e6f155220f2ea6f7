"""Sign-in with the identity provider (OpenID Connect)."""

from typing import Final
from urllib.parse import urlencode

from tapgate.core.settings.security import SecondFactor
from tapgate.http.endpoint import Reply
from tapgate.sites.console import session, step_up
from tapgate.sites.console.navigation import HOME_PATH
from tapgate.sites.console.page_request import (
    ACCOUNT_PATH,
    SIGN_IN_PATH,
    PageRequest,
    get_local_path,
)
from tapgate.sites.console.pages.sign_in import (
    Credentials,
    format_error,
    open_pending,
    render_sign_in,
    seal_pending,
)
from tapgate.sites.console.site import Pages
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import Factor

pages = Pages()

_CALLBACK_PATH: Final = "/console/sso/callback"
_VERIFY_PATH: Final = "/console/sso/verify"
_STEP_UP_PATH: Final = "/api/v1/admin/me/step-up/oidc"
#: Verification destination, instead of a page. It is no path, so no link can contain it.
_VERIFICATION: Final = "verify"
#: Parameters that the provider adds to the callback, and the form repeats.
_LOGIN_FIELDS: Final = ("code", "state", "iss")


@pages.get("/console/sso/start", public=True)
async def start(request: PageRequest) -> Reply[bytes]:
    """Redirect to the provider. A link leads here, because a form may not leave this site."""
    destination = get_local_path(request.query.get("to") or HOME_PATH)
    if request.context.get_header(b"sec-fetch-site") in ("cross-site", "same-site"):
        # Another site must not start a session without an action by the admin.
        return request.redirect(f"{SIGN_IN_PATH}?{urlencode({'to': destination})}")
    try:
        login = await request.send("POST", "/api/v1/admin/login/oidc/start")
    except ApiError as error:
        return render_sign_in(request, error, problem=request.translator.translate_error(error))
    cookie = session.set_sso_login(request.context, login["login_token"], destination)
    return request.redirect(login["authorization_url"], cookie=cookie)


@pages.get(_CALLBACK_PATH, public=True)
async def complete(request: PageRequest) -> Reply[bytes]:
    """Complete the sign-in, or a session verification, when the provider redirects back."""
    if session.get_sso_login(request.context)[1] == _VERIFICATION:
        # Browsers send the session cookie only with a request from this site.
        callback = request.query.pick(*_LOGIN_FIELDS, "error")
        return request.render_continue(f"{_VERIFY_PATH}?{urlencode(callback)}")
    if "error" in request.query:
        error = ApiError(Code.FORBIDDEN)
        is_denied = request.query.get("error") == "access_denied"
        problem = "The sign-in was canceled." if is_denied else "The sign-in failed. Try again."
        return render_sign_in(request, error, problem=request.translate(problem))
    login = request.query.pick(*_LOGIN_FIELDS)
    try:
        tokens = await _log_in(request, login)
    except ApiError as error:
        return _render_problem(request, error, login)
    cookie = session.set_session(request.context, tokens["token"])
    return request.render_continue(_get_destination(request, tokens), cookie)


@pages.get(_VERIFY_PATH)
async def verify(request: PageRequest) -> Reply[bytes]:
    """Let the admin sign in again at the provider, and verify the session afterwards."""
    callback = request.query.pick(*_LOGIN_FIELDS)
    if not callback and "error" not in request.query:
        login = await request.send("POST", f"{_STEP_UP_PATH}/start")
        cookie = session.set_sso_login(request.context, login["login_token"], _VERIFICATION)
        return request.redirect(login["authorization_url"], cookie=cookie)
    token, _ = session.get_sso_login(request.context)
    try:
        await request.send("POST", _STEP_UP_PATH, {"login_token": token, **callback})
    except ApiError as error:
        if error.code is Code.UNAUTHORIZED:
            raise
        return request.render("verified.html", error.status, problem=_describe(request, error))
    return request.render("verified.html", problem=None)


@pages.post(_CALLBACK_PATH, public=True)
async def complete_with_credentials(request: PageRequest) -> Reply[bytes]:
    """Complete the sign-in with a factor, or with the password for an account to be linked."""
    form, login = request.form, request.form.pick(*_LOGIN_FIELDS)
    pending = open_pending(request, form.get("pending"))
    password = form.get_raw("password") if pending is None else pending.password
    credential = form.get("credential")
    proof = {"passkey": step_up.parse_credential(credential)} if credential else {}
    try:
        tokens = await _log_in(request, login, password=password, otp=form.get("otp"), **proof)
    except ApiError as error:
        return _render_problem(request, error, login, password, has_passkey=bool(proof))
    cookie = session.set_session(request.context, tokens["token"])
    return request.redirect(_get_destination(request, tokens), cookie=cookie)


async def _log_in(
    request: PageRequest, login: dict[str, str], **credentials: object
) -> dict[str, str]:
    token, _ = session.get_sso_login(request.context)
    fields = {name: value for name, value in credentials.items() if value is not None}
    body = {"login_token": token, **login, **fields}
    tokens: dict[str, str] = await request.send("POST", "/api/v1/admin/login/oidc", body)
    return tokens


def _get_destination(request: PageRequest, tokens: dict[str, str]) -> str:
    if tokens.get("enroll_only"):
        return ACCOUNT_PATH
    return get_local_path(session.get_sso_login(request.context)[1] or HOME_PATH)


def _render_problem(
    request: PageRequest,
    error: ApiError,
    login: dict[str, str],
    password: str | None = None,
    *,
    has_passkey: bool = False,
) -> Reply[bytes]:
    """Ask for the factor or the password that is missing or wrong, or show the sign-in page."""
    needs_factor = error.code in (Code.OTP_REQUIRED, Code.INVALID_OTP)
    is_wrong = error.code is Code.UNAUTHORIZED and (password is not None or has_passkey)
    needs_password = error.code is Code.DUPLICATE_EMAIL or is_wrong
    if not needs_factor and not needs_password:
        return render_sign_in(request, error, problem=_describe(request, error))
    has_problem = error.code is Code.INVALID_OTP or is_wrong
    methods = (error.details or {}).get("methods")
    reply = request.render(
        "single_sign_on.html",
        error.status,
        problem=_describe(request, error) if has_problem else None,
        login=login,
        needs_password=needs_password,
        asks_code=needs_factor and (methods is None or Factor.TOTP in methods),
        offers_passkey=request.context.services.settings.second_factor != SecondFactor.OFF,
        pending=password and seal_pending(request, Credentials("", password)),
    )
    reply.headers = {**error.headers, **reply.headers}
    return reply


def _describe(request: PageRequest, error: ApiError) -> str:
    if error.code is Code.RATE_LIMITED:
        return format_error(request, error)
    if error.code in (Code.INVALID_REQUEST, Code.VALIDATION_FAILED):  # a parameter is missing
        return request.translate(
            "The sign-in was started in another browser or has expired. Start again."
        )
    return request.translator.translate_error(error)
