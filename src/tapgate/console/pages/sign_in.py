"""Signing in and out."""

from tapgate.console import session
from tapgate.console.site import Pages
from tapgate.console.visit import HOME, SIGN_IN, Visit, own_path
from tapgate.edge.endpoint import Reply
from tapgate.errors import ApiError, Code

pages = Pages()


@pages.get(SIGN_IN, public=True)
async def sign_in_form(visit: Visit) -> Reply[bytes]:
    if visit.call.caller is not None:
        return visit.go(_goes_to(visit))
    return visit.page("sign_in.html", problem=None, email=None, to=_goes_to(visit))


@pages.post(SIGN_IN, public=True)
async def sign_in(visit: Visit) -> Reply[bytes]:
    form = visit.form
    email, password = form.get("email"), form.exact("password")
    try:
        tokens = await visit.send(
            "POST", "/api/v1/admin/login", {"email": email or "", "password": password or ""}
        )
    except ApiError as error:
        reply = visit.page(
            "sign_in.html",
            error.status,
            problem=_problem(error),
            email=email,
            to=_goes_to(visit),
        )
        reply.headers = {**error.headers, **reply.headers}
        return reply
    if visit.call.caller is not None:
        # Whoever was signed in here before would stay so with a token that nobody holds any more.
        await _end_session(visit)
    return visit.go(_goes_to(visit), cookie=session.begin(visit.call, tokens["token"]))


@pages.post("/console/sign-out")
async def sign_out(visit: Visit) -> Reply[bytes]:
    await _end_session(visit)
    reply = visit.go(SIGN_IN, cookie=session.end(visit.call))
    # What the simulators keep in the tab's memory.
    reply.headers = {**reply.headers, "Clear-Site-Data": '"storage"'}
    return reply


async def _end_session(visit: Visit) -> None:
    await visit.send("POST", "/api/v1/admin/logout")


def _goes_to(visit: Visit) -> str:
    """The page that somebody came for before it was asked who they are."""
    return own_path(visit.query.get("to") or HOME)


def _problem(error: ApiError) -> str:
    if error.code in (Code.UNAUTHORIZED, Code.VALIDATION_FAILED):
        return "The e-mail or the password is not right."
    if error.code is Code.RATE_LIMITED:
        return "Too many tries. Wait some minutes, then try again."
    return error.message or error.error
