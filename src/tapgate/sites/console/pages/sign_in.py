"""Sign-in, also with a second factor, sign-out, and invitations."""

import base64
from typing import Any, Final

import msgspec

from tapgate.core.settings.security import SecondFactor
from tapgate.core.vault import VaultError
from tapgate.http.endpoint import Reply
from tapgate.sites.console import session, step_up
from tapgate.sites.console.page_request import (
    SIGN_IN_PATH,
    PageRequest,
    get_local_path,
)
from tapgate.sites.console.site import Pages
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import Factor

pages = Pages()

_LOGIN_PATH: Final = "/api/v1/admin/login"
_PENDING_SECONDS: Final = 300
_PENDING_CONTEXT: Final = b"console sign-in"


class Credentials(msgspec.Struct, frozen=True):
    """Email and password for a sign-in that still needs a code."""

    email: str
    password: str
    expires_at: float = 0

    def __repr__(self) -> str:
        return "Credentials(...)"


@pages.get(SIGN_IN_PATH, public=True)
async def show_sign_in_form(request: PageRequest) -> Reply[bytes]:
    if request.context.caller is not None:
        return request.redirect(_get_destination(request))
    return render_sign_in(request)


@pages.post(SIGN_IN_PATH, public=True)
async def sign_in(request: PageRequest) -> Reply[bytes]:
    form = request.form
    pending = open_pending(request, form.get("pending"))
    credentials = pending or Credentials(
        email=form.get("email") or "", password=form.get_raw("password") or ""
    )
    body = {"email": credentials.email, "password": credentials.password}
    if pending is not None:
        body["otp"] = form.get("otp") or ""
    try:
        tokens = await request.send("POST", _LOGIN_PATH, body)
    except ApiError as error:
        asks_code = error.code in (Code.OTP_REQUIRED, Code.INVALID_OTP)
        return render_sign_in(
            request,
            error,
            problem=None if error.code is Code.OTP_REQUIRED else format_error(request, error),
            email=credentials.email,
            pending=seal_pending(request, credentials) if asks_code else None,
        )
    return await _start_session(request, tokens)


@pages.post(f"{SIGN_IN_PATH}/passkey", public=True)
async def sign_in_with_passkey(request: PageRequest) -> Reply[bytes]:
    credential = step_up.parse_credential(request.form.get("credential"))
    try:
        tokens = await request.send("POST", f"{_LOGIN_PATH}/passkey", {"credential": credential})
    except ApiError as error:
        incorrect = "The passkey was not accepted. Try again, or sign in with your password."
        return render_sign_in(request, error, problem=format_error(request, error, incorrect))
    return await _start_session(request, tokens)


@pages.post("/console/passkey-options", public=True)
async def get_passkey_options(request: PageRequest) -> Reply[bytes]:
    """Return the options with which a script asks the browser for a passkey."""
    return request.render_json(await request.send("POST", f"{_LOGIN_PATH}/passkey/options"))


async def _start_session(request: PageRequest, tokens: dict[str, Any]) -> Reply[bytes]:
    if request.context.caller is not None:
        # The new cookie replaces the previous session's token, so end that session explicitly.
        await _end_session(request)
    is_limited = tokens.get("enroll_only")
    return request.redirect(
        f"{request.site}/account" if is_limited else _get_destination(request),
        cookie=session.set_session(request.context, tokens["token"]),
    )


@pages.post("/console/sign-out")
async def sign_out(request: PageRequest) -> Reply[bytes]:
    logout = await request.get("/api/v1/admin/me/oidc-logout") if request.principal.is_sso else {}
    await _end_session(request)
    cookie, logout_url = session.clear_session(request.context), logout.get("logout_url")
    if logout_url is None:
        reply = request.redirect(request.sign_in_path, cookie=cookie)
    else:
        request.context.caller = None
        reply = request.render_continue(logout_url, cookie)
    # Clears the receipts and chats that the simulators keep in session storage.
    reply.headers = {**reply.headers, "Clear-Site-Data": '"storage"'}
    return reply


def render_sign_in(
    request: PageRequest,
    error: ApiError | None = None,
    *,
    problem: str | None = None,
    email: str | None = None,
    pending: str | None = None,
) -> Reply[bytes]:
    """Render the sign-in page, after an error with its status and headers."""
    settings = request.context.services.settings
    methods = None if error is None else (error.details or {}).get("methods")
    reply = request.render(
        "sign_in.html",
        200 if error is None else error.status,
        problem=problem,
        email=email,
        pending=pending,
        to=_get_destination(request),
        asks_code=pending is not None and (methods is None or Factor.TOTP in methods),
        offers_passkey=settings.second_factor != SecondFactor.OFF,
        has_sso=settings.oidc is not None,
    )
    if error is not None:
        reply.headers = {**error.headers, **reply.headers}
    return reply


async def _end_session(request: PageRequest) -> None:
    await request.send("POST", "/api/v1/admin/logout")


@pages.get("/console/invitation", public=True)
async def show_invitation(request: PageRequest) -> Reply[bytes]:
    """Show the form for a new password. A script adds the token, which is in the fragment."""
    return request.render("invitation.html", problem=None, token=None)


@pages.post("/console/invitation", public=True)
async def accept_invitation(request: PageRequest) -> Reply[bytes]:
    token, password = request.form.get("token") or "", request.form.get_raw("password") or ""
    body = {"token": token, "password": password}
    try:
        await request.send("POST", "/api/v1/admin/invitations/accept", body)
    except ApiError as error:
        problem = request.translator.translate_error(error)
        return request.render("invitation.html", error.status, problem=problem, token=token)
    return request.redirect(request.sign_in_path, "Your password is set. Sign in with it.")


def seal_pending(request: PageRequest, credentials: Credentials) -> str:
    """Return the verified credentials for the form that asks for the code, encrypted.

    They are accepted only together with a code, and only for a few minutes.
    """
    services = request.context.services
    expires_at = credentials.expires_at or services.clock().timestamp() + _PENDING_SECONDS
    content = msgspec.structs.replace(credentials, expires_at=expires_at)
    sealed = services.vault.seal(msgspec.json.encode(content), _PENDING_CONTEXT)
    return base64.urlsafe_b64encode(sealed).decode()


def open_pending(request: PageRequest, text: str | None) -> Credentials | None:
    services = request.context.services
    try:
        sealed = base64.urlsafe_b64decode((text or "").encode())
        content = services.vault.open(sealed, _PENDING_CONTEXT)
        credentials = msgspec.json.decode(content, type=Credentials)
    except (ValueError, VaultError):
        return None
    return credentials if credentials.expires_at > services.clock().timestamp() else None


def _get_destination(request: PageRequest) -> str:
    """Return the page to open after sign-in: the page requested before, or the home page."""
    return get_local_path(request.query.get("to") or request.site, request.site)


def format_error(
    request: PageRequest, error: ApiError, incorrect: str = "Incorrect email or password."
) -> str:
    if error.code in (Code.UNAUTHORIZED, Code.VALIDATION_FAILED, Code.INVALID_REQUEST):
        return request.translate(incorrect)
    if error.code is Code.INVALID_OTP:
        return request.translate("The code is wrong or was already used. Wait for the next one.")
    if error.code is Code.RATE_LIMITED:
        return request.translate("Too many attempts. Try again in a few minutes.")
    return request.translator.translate_error(error)
