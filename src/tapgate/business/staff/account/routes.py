"""Endpoints for the authenticated admin's own account."""

from operator import itemgetter

from tapgate.auth.authenticator import Authenticator
from tapgate.business.staff import model
from tapgate.business.staff import queries as admin_queries
from tapgate.business.staff.account import operations, queries
from tapgate.business.staff.account.first_factor import require_first_factor_proof
from tapgate.core.pagination import paginate
from tapgate.core.records import SessionId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import OWN_USER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.clock import format_rfc3339
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.account import (
    NewRecoveryCodes,
    PasswordChange,
    SessionRecord,
    StepUp,
    TotpCode,
    TotpEnrollment,
    TotpSecret,
    VerifiedFactor,
)
from tapgate_client.schemas.branding import Preferences, PreferencesUpdate
from tapgate_client.schemas.pagination import Page, PageQuery

endpoints = Endpoints(
    "Account",
    "/api/v1/admin/me",
    access=Access(roles="ACSF"),
    objects=ObjectAccess.OWN,
    owners=OWN_USER,
)


@endpoints.post("/totp", step_up=True, enrolls=True, unguarded=Unguarded.OWN_ACCOUNT)
async def start_totp(request: RequestContext, body: TotpEnrollment) -> TotpSecret:
    """Create a secret for an authenticator app.

    Add the account to the app with `qr` or `otpauth_url`, or type `secret` into it. Then confirm
    with a code, in the same session and within 15 minutes. Until then, nothing changes: an app that
    is already enrolled keeps working. A new secret, and another factor that is enrolled, replace an
    unconfirmed secret.

    An admin without a second factor must send `current_password`, unless the login was in the last
    15 minutes. A wrong password fails with 422 and counts as a failed login. Admins who use single
    sign-on have no password.
    """
    admin_id, session_id = request.admin_and_session_ids
    factors = request.services.authenticator.factors
    operations.require_enabled(factors)
    await require_first_factor_proof(request, body.current_password, accepts_recent_login=True)
    async with request.services.transaction() as tx:
        return await operations.start_totp(
            tx, request.actor, admin_id, factors=factors, session_id=session_id
        )


@endpoints.post(
    "/totp/confirm",
    step_up=True,
    enrolls=True,
    errors=(Code.INVALID_OTP,),
    unguarded=Unguarded.OWN_ACCOUNT,
)
async def confirm_totp(
    request: RequestContext, tx: Transaction, body: TotpCode
) -> NewRecoveryCodes:
    """Enroll the authenticator app.

    From now on, each login requires a code. The response contains ten recovery codes, which replace
    earlier ones. Each works once instead of a code. They are shown only here. The first factor ends
    your other sessions.

    The confirmed code cannot be used again: to log in, wait for the next one. A token with
    `enroll_only` remains limited; log in again.
    """
    admin_id, session_id = request.admin_and_session_ids
    auth = request.services.authenticator
    codes = await operations.confirm_totp(
        tx, request.actor, admin_id, body.code, auth=auth, session_id=session_id
    )
    return NewRecoveryCodes(recovery_codes=codes)


@endpoints.delete(
    "/totp",
    errors=(Code.INVALID_OTP, Code.NOT_FOUND),
    unguarded=Unguarded.OWN_ACCOUNT,
    effect="acts",
)
async def remove_totp(request: RequestContext, body: TotpCode) -> None:
    """Remove the authenticator app.

    Requires a code from the app or a recovery code. If no passkey remains, the recovery codes are
    deleted too. Where a second factor is required, the last one cannot be removed (403).
    """
    admin_id, _ = request.admin_and_session_ids
    services, auth = request.services, request.services.authenticator
    if "totp" not in await auth.factors.list_enrolled(admin_id):
        raise ApiError(Code.NOT_FOUND, "No authenticator app is enrolled.")
    try:
        await auth.logins.verify_code(admin_id, body.code, request.ip)
    except ApiError as error:
        if error.code is Code.INVALID_OTP:
            await operations.record_failed_step_up(
                services.rejection_log, request.actor, admin_id, error
            )
        raise
    async with services.transaction() as tx:
        await operations.remove_totp(
            tx, request.actor, admin_id, factors=auth.factors, sessions=auth.sessions
        )


@endpoints.post(
    "/recovery-codes", step_up=True, errors=(Code.NOT_FOUND,), unguarded=Unguarded.OWN_ACCOUNT
)
async def replace_recovery_codes(request: RequestContext, tx: Transaction) -> NewRecoveryCodes:
    """Create new recovery codes.

    Earlier codes stop working. An admin without a second factor has none (404).
    """
    admin_id, _ = request.admin_and_session_ids
    factors = request.services.authenticator.factors
    codes = await operations.replace_recovery_codes(tx, request.actor, admin_id, factors=factors)
    return NewRecoveryCodes(recovery_codes=codes)


@endpoints.post("/step-up", errors=(Code.INVALID_OTP,), unguarded=Unguarded.OWN_ACCOUNT)
async def step_up(request: RequestContext, body: StepUp) -> VerifiedFactor:
    """Verify the second factor again.

    Sensitive actions require a factor that was verified in this session in the last 15 minutes, by
    logging in with it or with this operation. Otherwise they fail with `OTP_REQUIRED`. Send `otp`,
    or `passkey` with the result of `navigator.credentials.get()` for the options of
    `POST /api/v1/admin/login/passkey/options`. Failures count as failed logins.
    """
    admin_id, session_id = request.admin_and_session_ids
    services, auth = request.services, request.services.authenticator
    try:
        factor = await _verify_factor(auth, admin_id, body, request.ip)
    except ApiError as error:
        if error.code is Code.INVALID_OTP:
            await operations.record_failed_step_up(
                services.rejection_log, request.actor, admin_id, error
            )
        raise
    async with services.transaction() as tx:
        until = await operations.step_up(
            tx,
            request.actor,
            admin_id,
            session_id=session_id,
            reason=f"Second factor: {factor}",
            sessions=auth.sessions,
        )
    return VerifiedFactor(verified_until=format_rfc3339(until))


async def _verify_factor(auth: Authenticator, admin_id: int, body: StepUp, ip: str) -> str:
    if body.passkey is not None:
        operations.require_enabled(auth.factors)
        return await auth.logins.verify_passkey(admin_id, body.passkey, ip)
    assert body.otp is not None, "one of the two is required"
    return await auth.logins.verify_code(admin_id, body.otp, ip)


@endpoints.post("/password", step_up=True, unguarded=Unguarded.OWN_ACCOUNT)
async def change_password(request: RequestContext, body: PasswordChange) -> None:
    """Change your password.

    All your other sessions end. A wrong `current_password` fails with 422 and counts as a failed
    login. The same password rules apply as in `POST /api/v1/admin/users`.
    """
    admin_id, session_id = request.admin_and_session_ids
    services, auth = request.services, request.services.authenticator
    if not await auth.logins.verify_password(admin_id, body.current_password, request.ip):
        raise await operations.reject_password(services.rejection_log, request.actor, admin_id)
    admin = await admin_queries.get(services.database, admin_id)
    personal = (admin["email"], admin["name"])
    await model.require_strong_password(
        services.settings, body.new_password, personal, field="new_password"
    )
    password_hash = await auth.passwords.hash(body.new_password)
    async with services.transaction() as tx:
        await operations.change_password(
            tx,
            request.actor,
            admin_id,
            password_hash=password_hash,
            session_id=session_id,
            sessions=auth.sessions,
        )


@endpoints.get("/preferences")
async def get_preferences(request: RequestContext) -> Preferences:
    """Get how the admin sees the console."""
    admin_id, _ = request.admin_and_session_ids
    return Preferences(**await queries.get_preferences(request.services.database, admin_id))


@endpoints.put("/preferences", unguarded=Unguarded.OWN_ACCOUNT)
async def update_preferences(
    request: RequestContext, tx: Transaction, body: PreferencesUpdate
) -> Preferences:
    """Change how the admin sees the console.

    Fields that the request omits keep their values. An empty string resets a field to the setting
    of the browser.
    """
    admin_id, _ = request.admin_and_session_ids
    return await operations.update_preferences(tx, request.actor, admin_id, body)


@endpoints.get("/sessions")
async def list_sessions(request: RequestContext, query: PageQuery) -> Page[SessionRecord]:
    """List your sessions.

    Newest first. `current` marks this request's session, `console` a console session, `sso` a
    session that was started with single sign-on. `last_seen_at` is accurate to within a minute.
    """
    admin_id, current_id = request.admin_and_session_ids
    rows = await queries.list_sessions(
        request.services.database,
        query,
        admin_id,
        sessions=request.services.authenticator.sessions,
    )
    return paginate(
        rows, query, lambda row: model.to_session_record(row, current_id), itemgetter("id")
    )


@endpoints.delete("/sessions", unguarded=Unguarded.OWN_ACCOUNT)
async def end_other_sessions(request: RequestContext, tx: Transaction) -> None:
    """End your other sessions.

    Their tokens are rejected, normally before the response is sent. Your current session
    continues.
    """
    admin_id, session_id = request.admin_and_session_ids
    sessions = request.services.authenticator.sessions
    await operations.end_other_sessions(
        tx, request.actor, admin_id, session_id=session_id, sessions=sessions
    )


@endpoints.delete("/sessions/{id}", unguarded=Unguarded.OWN_ACCOUNT)
async def end_session(request: RequestContext, tx: Transaction, id: SessionId) -> None:
    """End one of your sessions.

    Its tokens are rejected, normally before the response is sent.
    """
    admin_id, _ = request.admin_and_session_ids
    sessions = request.services.authenticator.sessions
    await operations.end_session(tx, request.actor, admin_id, id, sessions=sessions)
