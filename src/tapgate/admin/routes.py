"""The endpoints of admins and their sessions."""

from tapgate import ids
from tapgate.admin import model, operations, queries
from tapgate.admin.model import Admin, Login, Me, NewAdmin, Refresh
from tapgate.credentials.sessions import Tokens
from tapgate.edge.body_limits import DEFAULT_BODY_BYTES
from tapgate.edge.endpoint import Access, Endpoints
from tapgate.edge.pagination import Page, PageQuery, paginate
from tapgate.edge.request_context import RequestContext
from tapgate.errors import Code

endpoints = Endpoints("Admin")

_PUBLIC = Access(public=True)
_ANY_ADMIN = Access(roles="ACSF")
_SYSTEM_ADMIN = Access(roles="A")


@endpoints.post("/api/v1/admin/login", access=_PUBLIC, errors=(Code.UNAUTHORIZED,))
async def log_in(call: RequestContext, body: Login) -> Tokens:
    """Log in with e-mail and password.

    `token` is the bearer token of all other calls and lives `expires_in` seconds; `refresh_token`
    gets the next one. Five failures for one e-mail from one address in 15 minutes: 429, with the
    right password too. Failures for any e-mail from one address are limited to one per second and
    30 in a burst: 429. Both name `Retry-After`, and so does the 503 while too many passwords are
    being checked.
    """
    return await operations.log_in(call.services, call.origin, body.email, body.password)


@endpoints.post(
    "/api/v1/admin/refresh",
    access=_PUBLIC,
    body_limit=DEFAULT_BODY_BYTES,  # tokens are ASCII and much shorter than the field may be
    errors=(Code.UNAUTHORIZED,),
)
async def refresh_token(call: RequestContext, body: Refresh) -> Tokens:
    """Exchange a refresh token for new tokens.

    A refresh token is good for once: a second use looks like theft and ends the session with all
    its tokens, access tokens too. It lives 30 days; 90 days after the login there is no refresh any
    more.
    """
    return await operations.refresh(call.services, call.origin, body.refresh_token)


@endpoints.post("/api/v1/admin/logout", access=_ANY_ADMIN)
async def log_out(call: RequestContext) -> None:
    """Log out.

    The session ends: its access token and its refresh token are refused at once, everywhere.
    """
    admin_id, session_id = _get_admin_and_session_ids(call)
    await operations.log_out(call.services, call.origin, admin_id=admin_id, session_id=session_id)


@endpoints.get("/api/v1/admin/me", access=_ANY_ADMIN)
async def get_me(call: RequestContext) -> Me:
    """Get the admin who is logged in."""
    admin_id, _ = _get_admin_and_session_ids(call)
    return model.to_me(await queries.get(call.services.database, admin_id))


@endpoints.post(
    "/api/v1/admin/users", access=_SYSTEM_ADMIN, status=201, errors=(Code.DUPLICATE_EMAIL,)
)
async def create_admin(call: RequestContext, body: NewAdmin) -> Admin:
    """Create an admin.

    The password has 12 to 255 characters, of any kind, and is neither the e-mail address nor the
    name. In staging and production it must not be easy to guess either: common passwords, names,
    dates, repetitions and keyboard patterns are refused, several unrelated words are fine. The
    role decides what the admin may do: `system_admin` everything, `compliance_user` alerts, rules
    and blocking, `support_user` reading and basic support, `finance_user` transactions and funding.
    """
    return model.to_record(await operations.create(call.services, call.origin, body))


@endpoints.get("/api/v1/admin/users", access=_SYSTEM_ADMIN)
async def list_admins(call: RequestContext, query: PageQuery) -> Page[Admin]:
    """List admins.

    Newest first, disabled ones too.
    """
    rows = await queries.list_page(
        call.services.database, before=query.before_id, limit=query.limit + 1
    )
    return paginate(rows, query.limit, lambda row: int(row["id"]), model.to_record)


@endpoints.post(
    "/api/v1/admin/users/{id}/disable",
    access=_SYSTEM_ADMIN,
    errors=(Code.NOT_FOUND, Code.ALREADY_BLOCKED),
)
async def disable_admin(call: RequestContext, id: str) -> Admin:
    """Disable an admin.

    The admin's sessions end at once and there is no new one. Nobody can disable oneself or the last
    active system_admin: 403.
    """
    own_id, _ = _get_admin_and_session_ids(call)
    return model.to_record(
        await operations.disable(call.services, call.origin, _decode_admin_id(id), by=own_id)
    )


@endpoints.post(
    "/api/v1/admin/users/{id}/enable",
    access=_SYSTEM_ADMIN,
    errors=(Code.NOT_FOUND, Code.NOT_BLOCKED),
)
async def enable_admin(call: RequestContext, id: str) -> Admin:
    """Enable an admin who was disabled.

    The password is the old one; sessions that were ended stay ended.
    """
    return model.to_record(
        await operations.enable(call.services, call.origin, _decode_admin_id(id))
    )


def _decode_admin_id(shown: str) -> int:
    number = ids.decode(ids.ADMIN, shown)
    if number is None:
        raise model.admin_not_found()
    return number


def _get_admin_and_session_ids(call: RequestContext) -> tuple[int, int]:
    """The admin and the session behind a call that is open to admins alone."""
    admin_id, session_id = call.principal.admin_id, call.principal.session_id
    if admin_id is None or session_id is None:
        raise RuntimeError("the endpoint lets in more than admins")
    return admin_id, session_id
