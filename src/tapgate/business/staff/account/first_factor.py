"""Proof that an admin without a second factor may enroll the first one."""

from tapgate.auth.second_factors import STEP_UP_LIFETIME
from tapgate.business.staff.account import operations
from tapgate.http.api.request_context import RequestContext
from tapgate_client.errors import invalid_field


async def require_first_factor_proof(
    request: RequestContext, password: str | None, *, accepts_recent_login: bool
) -> None:
    """Require the password to enroll the first factor.

    A stolen session alone must not be able to add a credential, or to lock the admin out. Admins
    who have a factor or use single sign-on are verified by the endpoint's step-up.
    """
    admin_id, _ = request.admin_and_session_ids
    services, auth, principal = request.services, request.services.authenticator, request.principal
    if principal.is_sso or await auth.factors.list_enrolled(admin_id):
        return
    if password is None:
        assert principal.signed_in_at is not None
        age = services.clock() - principal.signed_in_at
        if accepts_recent_login and age <= STEP_UP_LIFETIME:
            return
        raise invalid_field("current_password", "is required to enroll the first factor")
    if not await auth.logins.verify_password(admin_id, password, request.ip):
        raise await operations.reject_password(services.rejection_log, request.actor, admin_id)
