"""Page of the link that signs the first admin in once."""

from typing import Final

from tapgate.auth.logins import AuthenticatedAdmin
from tapgate.auth.sessions import SessionOrigin
from tapgate.business.staff import operations
from tapgate.core.settings.nodes import Environment
from tapgate.http.endpoint import Reply
from tapgate.sites.console import session
from tapgate.sites.console.navigation import HOME_PATH
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_sandbox.sign_in_link import PATH, use_link

pages: Final = Pages()


@pages.get(PATH, public=True)
async def show_link_form(request: PageRequest) -> Reply[bytes]:
    """Show a button. A script adds the token, which is in the fragment."""
    if request.context.caller is not None:
        return request.redirect(HOME_PATH)
    return request.render("sign_in_link.html", problem=None)


@pages.post(PATH, public=True)
async def sign_in_with_link(request: PageRequest) -> Reply[bytes]:
    context, services = request.context, request.context.services
    admin_id = None
    if services.settings.environment == Environment.DEVELOPMENT:
        admin_id = await use_link(services.database, services.vault, request.form.get("token"))
    # The link replaces the password, not the second factor.
    if admin_id is None or await services.authenticator.factors.list_enrolled(admin_id):
        problem = request.translate(
            "The link was already used or has expired. Sign in with your password."
        )
        return request.render("sign_in_link.html", 400, problem=problem)
    async with services.transaction() as tx:
        tokens = await operations.log_in(
            tx,
            context.actor,
            AuthenticatedAdmin(admin_id),
            sessions=services.authenticator.sessions,
            origin=SessionOrigin(
                ip=context.ip, user_agent=context.get_header(b"user-agent"), is_console=True
            ),
        )
    return request.redirect(HOME_PATH, cookie=session.set_session(context, tokens.token))
