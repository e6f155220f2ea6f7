"""Sign-in, also with a second factor, sign-out, and invitations."""

import base64
from typing import Final

import msgspec

from tapgate.console import session
from tapgate.console.page_request import HOME_PATH, SIGN_IN_PATH, PageRequest, get_local_path
from tapgate.console.site import Pages
from tapgate.errors import ApiError, Code
from tapgate.http.endpoint import Reply
from tapgate.vault import VaultError

pages = Pages()

_PENDING_SECONDS: Final = 300
_PENDING_CONTEXT: Final = b"console sign-in"


class _Credentials(msgspec.Struct, frozen=True):
    """Email and password of a sign-in that still needs a code."""

    email: str
    password: str
    expires_at: float = 0

    def __repr__(self) -> str:
        return "_Credentials(...)"


@pages.get(SIGN_IN_PATH, public=True)
async def show_sign_in_form(request: PageRequest) -> Reply[bytes]:
    if request.context.caller is not None:
        return request.redirect(_get_destination(request))
    return request.render(
        "sign_in.html", problem=None, email=None, pending=None, to=_get_destination(request)
    )


@pages.post(SIGN_IN_PATH, public=True)
async def sign_in(request: PageRequest) -> Reply[bytes]:
    form = request.form
    pending = _open_pending(request, form.get("pending"))
    credentials = pending or _Credentials(
        email=form.get("email") or "", password=form.get_raw("password") or ""
    )
    body = {"email": credentials.email, "password": credentials.password}
    if pending is not None:
        body["otp"] = form.get("otp") or ""
    try:
        tokens = await request.send("POST", "/api/v1/admin/login", body)
    except ApiError as error:
        asks_code = error.code in (Code.OTP_REQUIRED, Code.INVALID_OTP)
        reply = request.render(
            "sign_in.html",
            error.status,
            problem=None if error.code is Code.OTP_REQUIRED else _format_error(error),
            email=credentials.email,
            pending=_seal_pending(request, credentials) if asks_code else None,
            to=_get_destination(request),
        )
        reply.headers = {**error.headers, **reply.headers}
        return reply
    if request.context.caller is not None:
        # The new cookie replaces the previous session's token, so end that session explicitly.
        await _end_session(request)
    is_limited = tokens.get("enroll_only")
    return request.redirect(
        "/console/account" if is_limited else _get_destination(request),
        cookie=session.set_session(request.context, tokens["token"]),
    )


@pages.post("/console/sign-out")
async def sign_out(request: PageRequest) -> Reply[bytes]:
    await _end_session(request)
    reply = request.redirect(SIGN_IN_PATH, cookie=session.clear_session(request.context))
    # Clears the receipts and chats that the simulators keep in session storage.
    reply.headers = {**reply.headers, "Clear-Site-Data": '"storage"'}
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
        problem = error.message or error.error
        return request.render("invitation.html", error.status, problem=problem, token=token)
    return request.redirect(SIGN_IN_PATH, "Your password is set. Sign in with it.")


def _seal_pending(request: PageRequest, credentials: _Credentials) -> str:
    """Return the verified credentials for the form that asks for the code, encrypted.

    They are accepted only together with a code, and only for a few minutes.
    """
    services = request.context.services
    expires_at = credentials.expires_at or services.clock().timestamp() + _PENDING_SECONDS
    content = msgspec.structs.replace(credentials, expires_at=expires_at)
    sealed = services.vault.seal(msgspec.json.encode(content), _PENDING_CONTEXT)
    return base64.urlsafe_b64encode(sealed).decode()


def _open_pending(request: PageRequest, text: str | None) -> _Credentials | None:
    services = request.context.services
    try:
        sealed = base64.urlsafe_b64decode((text or "").encode())
        content = services.vault.open(sealed, _PENDING_CONTEXT)
        credentials = msgspec.json.decode(content, type=_Credentials)
    except (ValueError, VaultError):
        return None
    return credentials if credentials.expires_at > services.clock().timestamp() else None


def _get_destination(request: PageRequest) -> str:
    """Return the page to open after sign-in: the page requested before, or the home page."""
    return get_local_path(request.query.get("to") or HOME_PATH)


def _format_error(error: ApiError) -> str:
    if error.code in (Code.UNAUTHORIZED, Code.VALIDATION_FAILED):
        return "Incorrect email or password."
    if error.code is Code.INVALID_OTP:
        return "The code is wrong or was already used. Wait for the next one."
    if error.code is Code.RATE_LIMITED:
        return "Too many attempts. Try again in a few minutes."
    return error.message or error.error
