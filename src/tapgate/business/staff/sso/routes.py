"""Endpoints of single sign-on, which the console uses."""

import asyncpg

from tapgate.auth.logins import AuthenticatedAdmin
from tapgate.auth.oidc.id_tokens import Identity
from tapgate.auth.oidc.logins import OidcLogins
from tapgate.auth.second_factors import build_otp_required_error
from tapgate.business.staff import queries as admin_queries
from tapgate.business.staff.account import operations as account_operations
from tapgate.business.staff.routes import get_origin
from tapgate.business.staff.sso import operations, queries
from tapgate.business.staff.sso.operations import SignIn
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.api.services import RejectedRequest
from tapgate.http.endpoint import Endpoints
from tapgate.http.rate_limits.address_costs import LoginCost
from tapgate.runtime.store.database import Database
from tapgate_client.clock import format_rfc3339
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.account import VerifiedFactor
from tapgate_client.schemas.admin import OidcLogin, OidcLogout, OidcStart, OidcStepUp, Tokens
from tapgate_client.schemas.audit import AuditResult

endpoints = Endpoints("Admin", "/api/v1/admin", objects=ObjectAccess.OWN, owners=NEVER)

_PUBLIC = Access(public=True)
_ANY_ADMIN = Access(roles="ACSF")
#: Errors after which the login can continue or be repeated. They are not failed logins.
_EXPECTED_ERRORS = (Code.SERVICE_UNAVAILABLE, Code.OTP_REQUIRED, Code.DUPLICATE_EMAIL)


@endpoints.post(
    "/login/oidc/start", access=_PUBLIC, errors=(Code.NOT_FOUND,), objects=ObjectAccess.NO_OBJECT
)
async def start_oidc_login(request: RequestContext) -> OidcStart:
    """Start a login with the identity provider.

    Open `authorization_url` in the admin's browser and keep `login_token` there: the login can only
    be completed with it, within 10 minutes. The provider redirects to the console. Without
    `TAPGATE_OIDC_ISSUER`, the response is 404. If the provider is not available, it is 503.
    """
    url, login_token = await _require_oidc(request).start()
    return OidcStart(authorization_url=url, login_token=login_token)


@endpoints.post(
    "/login/oidc",
    access=_PUBLIC,
    errors=(
        Code.NOT_FOUND,
        Code.UNAUTHORIZED,
        Code.FORBIDDEN,
        Code.OTP_REQUIRED,
        Code.INVALID_OTP,
        Code.DUPLICATE_EMAIL,
    ),
    objects=ObjectAccess.NO_OBJECT,
)
async def log_in_with_oidc(request: RequestContext, body: OidcLogin) -> Tokens:
    """Complete a login with the identity provider.

    `code`, `state` and `iss` are the parameters with which the provider redirected to the console.
    The first login creates the admin. The role comes from the provider at every login. Without a
    role, the login fails with 403 and the admin's sessions end. The tokens cannot be refreshed.

    If a second factor is enrolled, the login fails with `OTP_REQUIRED`. Then repeat the request
    with `otp` or `passkey`. If an admin with a password has the same email address, it fails with
    `DUPLICATE_EMAIL`. Then repeat it with `password` and, if enrolled, `otp`, or with a `passkey`
    of that admin. Single sign-on replaces the password.
    """
    services, identity = request.services, None
    oidc = _require_oidc(request)
    cost = LoginCost(services.throttle, request.ip)
    await cost.take()
    try:
        identity = await _identify(request, oidc, body)
        sign_in = await _check(request, body, identity)
        async with services.transaction() as tx:
            await oidc.finish(tx, body.state)
            tokens = await operations.start_session(
                tx,
                request.actor,
                sign_in,
                makers=services.guarded_roles,
                auth=services.authenticator,
            )
    except ApiError as error:
        if error.code in _EXPECTED_ERRORS:
            await cost.refund()
        else:
            await _record_failure(request, identity, error)
        raise
    await cost.refund()
    return tokens


@endpoints.post(
    "/me/step-up/oidc/start",
    access=_ANY_ADMIN,
    errors=(Code.NOT_FOUND,),
    unguarded=Unguarded.OWN_ACCOUNT,
)
async def start_oidc_step_up(request: RequestContext) -> OidcStart:
    """Start to verify your identity with the identity provider.

    For a session of single sign-on, if no second factor is enrolled. The provider asks for the
    credentials again. Open `authorization_url` in the browser and keep `login_token` there, as for
    a login.
    """
    _require_sso_session(request)
    _, session_id = request.admin_and_session_ids
    url, login_token = await _require_oidc(request).start(session_id)
    return OidcStart(authorization_url=url, login_token=login_token)


@endpoints.post(
    "/me/step-up/oidc",
    access=_ANY_ADMIN,
    errors=(Code.NOT_FOUND, Code.INVALID_OTP),
    unguarded=Unguarded.OWN_ACCOUNT,
)
async def complete_oidc_step_up(request: RequestContext, body: OidcStepUp) -> VerifiedFactor:
    """Verify your identity with the identity provider.

    `code`, `state` and `iss` are the parameters with which the provider redirected to the console.
    Sensitive actions are then allowed for 15 minutes. The ID token must belong to you, and its
    `auth_time` must show that you have just signed in; otherwise the response is `INVALID_OTP`. If
    the provider sends no `auth_time`, it is 403: enroll a second factor instead.
    """
    _require_sso_session(request)
    services, auth = request.services, request.services.authenticator
    admin_id, session_id = request.admin_and_session_ids
    oidc, identity = _require_oidc(request), None
    try:
        identity = await _identify(request, oidc, body, session_id)
        _require_role(identity)
        if await queries.find_admin(services.database, identity) != admin_id:
            raise ApiError(Code.UNAUTHORIZED, "You signed in with another account. Try again.")
        async with services.transaction() as tx:
            await oidc.finish(tx, body.state)
            until = await account_operations.step_up(
                tx,
                request.actor,
                admin_id,
                session_id=session_id,
                reason="Single sign-on",
                sessions=auth.sessions,
            )
    except ApiError as error:
        if error.code is Code.FORBIDDEN:
            await _record_failure(request, identity, error)
        if error.code is not Code.UNAUTHORIZED:
            raise
        rejection = ApiError(Code.INVALID_OTP, error.message)
        await account_operations.record_failed_step_up(
            services.rejection_log, request.actor, admin_id, rejection
        )
        raise rejection from None
    return VerifiedFactor(verified_until=format_rfc3339(until))


@endpoints.get("/me/oidc-logout", access=_ANY_ADMIN, enrolls=True)
async def get_oidc_logout(request: RequestContext) -> OidcLogout:
    """Get the URL that ends the session at the identity provider.

    `logout_url` is null if this session was not started with single sign-on, or if the provider has
    no such page. It contains the session's ID token (`id_token_hint`), so that the provider need
    not ask which session to end. Get it, log out, then open it in the browser.
    """
    auth, (_, session_id) = request.services.authenticator, request.admin_and_session_ids
    if auth.oidc is None or not request.principal.is_sso:
        return OidcLogout(logout_url=None)
    id_token = await auth.sessions.get_id_token(session_id)
    return OidcLogout(logout_url=await auth.oidc.get_logout_url(id_token))


def _require_sso_session(request: RequestContext) -> None:
    principal = request.principal
    if not principal.is_sso or principal.has_factor:
        raise ApiError(
            Code.NOT_FOUND,
            "Only sessions of single sign-on without a second factor are verified by the identity "
            "provider.",
        )


def _require_oidc(request: RequestContext) -> OidcLogins:
    oidc = request.services.authenticator.oidc
    if oidc is None:
        raise ApiError(Code.NOT_FOUND, "Single sign-on is not configured.")
    return oidc


async def _identify(
    request: RequestContext, oidc: OidcLogins, body: OidcStepUp, session_id: int | None = None
) -> Identity:
    return await oidc.identify(
        body.login_token,
        state=body.state,
        code=body.code,
        issuer=body.iss,
        address=request.ip,
        session_id=session_id,
    )


async def _check(request: RequestContext, body: OidcLogin, identity: Identity) -> SignIn:
    """Check the role, and the second factor or the password if one of them is needed."""
    auth, database = request.services.authenticator, request.services.database
    role = _require_role(identity)
    linked_admin_id, factor = None, None
    # Read first: a concurrent login with the same identity may create or link the admin.
    local_admin = await _find_local_admin(database, identity)
    admin_id = await queries.find_admin(database, identity)
    if admin_id is not None:
        factor = await _verify_factor(request, admin_id, body)
    elif local_admin is not None:
        owner = await _verify_owner(request, body, local_admin)
        linked_admin_id, factor = owner.id, owner.factor
    return SignIn(
        identity=identity,
        role=role,
        linked_admin_id=linked_admin_id,
        factor=factor,
        unusable_hash=None if admin_id is not None else await auth.passwords.hash_unknown(),
        origin=get_origin(request, is_sso=True),
    )


async def _find_local_admin(database: Database, identity: Identity) -> asyncpg.Record | None:
    """Return the admin with a password who is the same person, or None.

    An earlier identity counts more than the email address, which the person may have changed at the
    provider to get a second account.
    """
    former_id = await queries.find_former_admin(database, identity)
    if former_id is not None:
        return await admin_queries.get(database, former_id)
    return await admin_queries.find_sso_candidate(database, identity.email)


def _require_role(identity: Identity) -> str:
    if identity.role is None:
        raise ApiError(
            Code.FORBIDDEN,
            "Your account at the identity provider has no role in Tapgate.",
            details={"required": ["role"]},
        )
    return identity.role


async def _verify_factor(request: RequestContext, admin_id: int, body: OidcLogin) -> str | None:
    auth = request.services.authenticator
    factors = await auth.factors.list_enrolled(admin_id)
    if not factors:
        return None
    if body.passkey is not None:
        return await auth.logins.verify_passkey(admin_id, body.passkey, request.ip)
    if body.otp is None:
        raise build_otp_required_error(factors, "A second factor is required to log in.")
    return await auth.logins.verify_code(admin_id, body.otp, request.ip)


async def _verify_owner(
    request: RequestContext, body: OidcLogin, admin: asyncpg.Record
) -> AuthenticatedAdmin:
    """Verify a password or passkey for the local admin with the identity's email address."""
    auth = request.services.authenticator
    if body.passkey is not None and auth.factors.is_enabled:
        owner = await auth.logins.authenticate_passkey(body.passkey, request.ip)
        if owner.id != admin["id"]:
            raise ApiError(Code.UNAUTHORIZED, "The passkey belongs to another admin.")
        return owner
    if body.password is None:
        raise ApiError(
            Code.DUPLICATE_EMAIL,
            f"The account {admin['email']} is yours and signs in with a password. Enter the "
            "password once to use single sign-on instead.",
        )
    return await auth.logins.authenticate(admin["email"], body.password, request.ip, otp=body.otp)


async def _record_failure(
    request: RequestContext, identity: Identity | None, error: ApiError
) -> None:
    """Record a failed login. If the provider no longer grants access, end the sessions."""
    services, auth = request.services, request.services.authenticator
    if identity is not None and error.code is Code.FORBIDDEN:
        async with services.transaction() as tx:
            await operations.end_sessions(tx, request.actor, identity, sessions=auth.sessions)
    email = None if identity is None else await auth.logins.get_loggable_email(identity.email)
    await services.rejection_log.record(
        request.actor,
        RejectedRequest(
            event="admin.login",
            resource_type="admin",
            resource_id=email,
            result=AuditResult.FAILURE,
            reason=f"Single sign-on: {error.message}",
        ),
    )
