"""Sign-in and sign-out."""

from tapgate.console import session
from tapgate.console.page_request import HOME_PATH, SIGN_IN_PATH, PageRequest, get_local_path
from tapgate.console.site import Pages
from tapgate.errors import ApiError, Code
from tapgate.http.endpoint import Reply

pages = Pages()


@pages.get(SIGN_IN_PATH, public=True)
async def show_sign_in_form(request: PageRequest) -> Reply[bytes]:
    if request.context.caller is not None:
        return request.redirect(_get_destination(request))
    return request.render("sign_in.html", problem=None, email=None, to=_get_destination(request))


@pages.post(SIGN_IN_PATH, public=True)
async def sign_in(request: PageRequest) -> Reply[bytes]:
    form = request.form
    email, password = form.get("email"), form.get_raw("password")
    try:
        tokens = await request.send(
            "POST", "/api/v1/admin/login", {"email": email or "", "password": password or ""}
        )
    except ApiError as error:
        reply = request.render(
            "sign_in.html",
            error.status,
            problem=_format_error(error),
            email=email,
            to=_get_destination(request),
        )
        reply.headers = {**error.headers, **reply.headers}
        return reply
    if request.context.caller is not None:
        # The new cookie replaces the previous session's token, so end that session explicitly.
        await _end_session(request)
    return request.redirect(
        _get_destination(request), cookie=session.set_session(request.context, tokens["token"])
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


def _get_destination(request: PageRequest) -> str:
    """Return the page to open after sign-in: the page requested before, or the home page."""
    return get_local_path(request.query.get("to") or HOME_PATH)


def _format_error(error: ApiError) -> str:
    if error.code in (Code.UNAUTHORIZED, Code.VALIDATION_FAILED):
        return "Incorrect email or password."
    if error.code is Code.RATE_LIMITED:
        return "Too many attempts. Try again in a few minutes."
    return error.message or error.error
