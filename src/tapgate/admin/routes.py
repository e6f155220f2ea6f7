"""Admin and session endpoints."""

import asyncio
from operator import itemgetter

from tapgate.admin import model, operations, queries
from tapgate.api.access import Access
from tapgate.api.charges import LoginCharge
from tapgate.api.request_context import RequestContext
from tapgate.auth.sessions import SessionOrigin, TokenReuseError
from tapgate.errors import ApiError, Code
from tapgate.http.body_limits import DEFAULT_BODY_BYTES
from tapgate.http.endpoint import Endpoints
from tapgate.schemas.admin import Admin, Login, Me, NewAdmin, Refresh, Tokens
from tapgate.schemas.pagination import Page, PageQuery, paginate
from tapgate.schemas.records import AdminId

endpoints = Endpoints("Admin", "/api/v1/admin")

_PUBLIC = Access(public=True)
_ANY_ADMIN = Access(roles="ACSF")
_SYSTEM_ADMIN = Access(roles="A")


@endpoints.post(
    "/login",
    access=_PUBLIC,
    errors=(Code.UNAUTHORIZED, Code.OTP_REQUIRED, Code.INVALID_OTP),
)
async def log_in(request: RequestContext, body: Login) -> Tokens:
    """Log in with email and password.

    `token` is the bearer token for other requests and is valid for `expires_in` seconds. Use
    `refresh_token` to obtain new tokens.

    If a second factor is enrolled, `otp` is required: a code of the authenticator app or a recovery
    code. Without it, the login fails with `OTP_REQUIRED`, and `details.methods` lists the enrolled
    factors. Each code works once. If the platform requires a second factor and none is enrolled,
    the response has `enroll_only`, and its token can only enroll one.

    After five failures for one email from one IP address within 15 minutes, further attempts get
    429, even with the correct password. Wrong codes count too, and five of them for one admin from
    any address have the same effect. Failures from one IP address for all emails together are
    limited to one per second, with a burst of 30; further attempts get 429. An IPv6 /64 network
    counts as one address.

    While too many passwords are being verified, the response is 503. All 429 and 503 responses
    include `Retry-After`.
    """
    services, auth = request.services, request.services.authenticator
    try:
        charge = LoginCharge(services.throttle, request.ip)
        admin = await auth.logins.authenticate(
            body.email, body.password, request.ip, charge, otp=body.otp
        )
        async with services.transaction() as tx:
            return await operations.log_in(
                tx, request.actor, admin, sessions=auth.sessions, origin=_get_origin(request)
            )
    except ApiError as error:
        if error.code not in (Code.SERVICE_UNAVAILABLE, Code.OTP_REQUIRED):
            await operations.record_failed_login(
                services.rejection_log, request.actor, body.email, error, logins=auth.logins
            )
        raise


@endpoints.post(
    "/refresh",
    access=_PUBLIC,
    body_limit=DEFAULT_BODY_BYTES,  # tokens are ASCII and much shorter than the field's limit
    errors=(Code.UNAUTHORIZED,),
)
async def refresh_token(request: RequestContext, body: Refresh) -> Tokens:
    """Exchange a refresh token for new tokens.

    A refresh token can be used once. Reuse is treated as theft and ends the session, which also
    invalidates its access tokens. A refresh token is valid for 30 days. A session cannot be
    refreshed later than 90 days after login or more than 10,000 times.
    """
    services = request.services
    try:
        return await services.authenticator.sessions.refresh(body.refresh_token)
    except TokenReuseError as reuse:
        async with services.transaction() as tx:
            await operations.record_token_reuse(tx, request.actor, reuse.admin_id)
        raise


@endpoints.post("/logout", access=_ANY_ADMIN, enrolls=True)
async def log_out(request: RequestContext) -> None:
    """Log out.

    Ends the session. Every process rejects the session's access and refresh tokens, normally before
    the response is sent.
    """
    admin_id, session_id = request.admin_and_session_ids
    async with request.services.transaction() as tx:
        await operations.log_out(
            tx,
            request.actor,
            admin_id=admin_id,
            session_id=session_id,
            sessions=request.services.authenticator.sessions,
        )


@endpoints.get("/me", access=_ANY_ADMIN, enrolls=True)
async def get_me(request: RequestContext) -> Me:
    """Get the authenticated admin."""
    admin_id, _ = request.admin_and_session_ids
    return model.to_me(await queries.get(request.services.database, admin_id))


@endpoints.post(
    "/users", access=_SYSTEM_ADMIN, status=201, errors=(Code.DUPLICATE_EMAIL,), step_up=True
)
async def create_admin(request: RequestContext, body: NewAdmin) -> Admin:
    """Create an admin.

    The password must have 12 to 255 characters of any kind and must not be the email address or the
    name. In staging and production it must also be hard to guess: common passwords, names, dates,
    repetitions and keyboard patterns are rejected, and several unrelated words are accepted.

    The role determines what the admin may do. `system_admin` has full access. `compliance_user`
    covers alerts, rules and blocking. `support_user` covers read access and basic support.
    `finance_user` covers transactions and funding.
    """
    services = request.services
    strict = services.settings.requires_secrets
    await asyncio.to_thread(
        model.require_strong_password, body.password, (body.email, body.name), strict=strict
    )
    password_hash = await services.authenticator.passwords.hash(body.password)
    async with services.transaction() as tx:
        row = await operations.create(
            tx,
            request.actor,
            email=body.email,
            name=body.name,
            role=body.role,
            password_hash=password_hash,
        )
    return model.to_record(row)


@endpoints.get("/users", access=_SYSTEM_ADMIN)
async def list_admins(request: RequestContext, query: PageQuery) -> Page[Admin]:
    """List admins.

    Newest first, including disabled admins.
    """
    rows = await queries.list_page(request.services.database, query)
    return paginate(rows, query, model.to_record, itemgetter("id"))


@endpoints.post(
    "/users/{id}/disable", access=_SYSTEM_ADMIN, errors=(Code.ALREADY_BLOCKED,), step_up=True
)
async def disable_admin(request: RequestContext, id: AdminId) -> Admin:
    """Disable an admin.

    The admin can no longer log in. All sessions of the admin end, in every process and normally
    before the response is sent. Disabling yourself or the last active `system_admin` fails with
    403.
    """
    sessions = request.services.authenticator.sessions
    async with request.services.transaction() as tx:
        row = await operations.disable(tx, request.actor, id, sessions=sessions)
    return model.to_record(row)


@endpoints.post(
    "/users/{id}/enable", access=_SYSTEM_ADMIN, errors=(Code.NOT_BLOCKED,), step_up=True
)
async def enable_admin(request: RequestContext, id: AdminId) -> Admin:
    """Enable a disabled admin.

    The password is unchanged. Ended sessions are not restored.
    """
    async with request.services.transaction() as tx:
        return model.to_record(await operations.enable(tx, request.actor, id))


def _get_origin(request: RequestContext) -> SessionOrigin:
    return SessionOrigin(
        ip=request.ip, user_agent=request.get_header(b"user-agent"), is_console=request.is_console
    )
