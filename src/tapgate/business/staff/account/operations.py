"""Admins' operations on their own accounts, recorded in the audit log."""

from datetime import datetime

import asyncpg

from tapgate.auth import totp
from tapgate.auth.actors import Actor
from tapgate.auth.authenticator import Authenticator
from tapgate.auth.logins import PasskeyRejectedError
from tapgate.auth.passkeys import MAX_PASSKEYS, VerifiedCredential
from tapgate.auth.second_factors import STEP_UP_LIFETIME, Factors, build_invalid_otp_error
from tapgate.auth.sessions import Sessions
from tapgate.business.staff import model, trail
from tapgate.business.staff import queries as admin_queries
from tapgate.business.staff.account import queries
from tapgate.core.records import require_record
from tapgate.http.api.services import RejectedRequest, RejectionLog
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.account import TotpSecret
from tapgate_client.schemas.admin import Factor
from tapgate_client.schemas.audit import AuditResult
from tapgate_client.schemas.branding import Preferences, PreferencesUpdate


async def start_totp(
    tx: Transaction, actor: Actor, admin_id: int, *, factors: Factors, session_id: int
) -> TotpSecret:
    """Create an authenticator app secret. It is not enrolled before it is confirmed."""
    admin = await admin_queries.get(tx, admin_id, for_update=True)
    secret = await factors.start_totp(tx, admin_id, session_id)
    url = totp.build_url(secret, admin["email"])
    await trail.record(tx, actor, admin_id, "totp_started")
    return TotpSecret(secret=secret, otpauth_url=url, qr=totp.render_qr(url))


async def confirm_totp(
    tx: Transaction, actor: Actor, admin_id: int, code: str, *, auth: Authenticator, session_id: int
) -> list[str]:
    """Enroll an authenticator app and return the new recovery codes."""
    require_enabled(auth.factors)
    had_factor = await _start_enrollment(tx, admin_id, session_id, auth=auth)
    recovery_codes = await auth.factors.confirm_totp(tx, admin_id, session_id, code)
    if recovery_codes is None:
        raise build_invalid_otp_error()
    await _end_enrollment(tx, admin_id, session_id, auth=auth, is_first=not had_factor)
    await _record_factor(tx, actor, admin_id, "factor_enrolled", Factor.TOTP)
    return recovery_codes


async def remove_totp(
    tx: Transaction, actor: Actor, admin_id: int, *, factors: Factors, sessions: Sessions
) -> None:
    """Remove an admin's authenticator app after the admin has entered a code."""
    await admin_queries.get(tx, admin_id, for_update=True)
    await factors.remove_totp(tx, admin_id)
    await _check_remaining_factors(tx, admin_id, factors=factors)
    await sessions.publish_change(tx)
    await _record_factor(tx, actor, admin_id, "factor_removed", Factor.TOTP)


async def add_passkey(
    tx: Transaction,
    actor: Actor,
    admin_id: int,
    name: str,
    verified: VerifiedCredential,
    *,
    auth: Authenticator,
    session_id: int,
) -> tuple[asyncpg.Record, list[str] | None]:
    """Enroll a passkey whose credential was verified.

    Return it, and new recovery codes if the admin has none.
    """
    had_factor = await _start_enrollment(tx, admin_id, session_id, auth=auth)
    if len(await auth.passkeys.list_by_admin(tx, admin_id)) >= MAX_PASSKEYS:
        raise invalid_field("credential", f"must be one of at most {MAX_PASSKEYS} passkeys")
    row = await auth.passkeys.add(tx, admin_id, name, verified)
    if row is None:
        raise invalid_field("credential", "is already enrolled")
    await auth.factors.discard_pending_totp(tx, admin_id)
    await _end_enrollment(tx, admin_id, session_id, auth=auth, is_first=not had_factor)
    await _record_factor(tx, actor, admin_id, "factor_enrolled", Factor.PASSKEY, name)
    if await auth.factors.count_recovery_codes(admin_id, tx):
        return row, None
    return row, await auth.factors.replace_recovery_codes(tx, admin_id)


async def replace_recovery_codes(
    tx: Transaction, actor: Actor, admin_id: int, *, factors: Factors
) -> list[str]:
    """Return new recovery codes for an admin who has a second factor."""
    require_enabled(factors)
    await admin_queries.get(tx, admin_id, for_update=True)
    if not await factors.list_enrolled(admin_id, tx):
        raise ApiError(
            Code.NOT_FOUND, "Recovery codes replace a lost second factor. Enroll a factor first."
        )
    codes = await factors.replace_recovery_codes(tx, admin_id)
    await trail.record(tx, actor, admin_id, "recovery_codes_replaced")
    return codes


async def remove_passkey(
    tx: Transaction, actor: Actor, admin_id: int, passkey_id: int, *, auth: Authenticator
) -> None:
    await admin_queries.get(tx, admin_id, for_update=True)
    name = require_record(ids.PASSKEY, await auth.passkeys.remove(tx, admin_id, passkey_id))
    await _check_remaining_factors(tx, admin_id, factors=auth.factors)
    await auth.sessions.publish_change(tx)
    await _record_factor(tx, actor, admin_id, "factor_removed", Factor.PASSKEY, name)


async def step_up(
    tx: Transaction,
    actor: Actor,
    admin_id: int,
    *,
    session_id: int,
    reason: str,
    sessions: Sessions,
) -> datetime:
    """Allow sensitive actions in a session whose admin was verified; return until when."""
    verified_at = await sessions.mark_factor_verified(tx, session_id)
    await trail.record(tx, actor, admin_id, "factor_verified", reason=reason)
    return verified_at + STEP_UP_LIFETIME


async def record_failed_step_up(
    rejection_log: RejectionLog, actor: Actor, admin_id: int, error: ApiError
) -> None:
    """Record a wrong code or a rejected passkey."""
    await rejection_log.record(
        actor,
        RejectedRequest(
            event="admin.factor_verified",
            resource_type="admin",
            resource_id=ids.encode(ids.ADMIN, admin_id),
            result=AuditResult.FAILURE,
            reason=error.reason if isinstance(error, PasskeyRejectedError) else error.message,
        ),
    )


async def reject_password(rejection_log: RejectionLog, actor: Actor, admin_id: int) -> ApiError:
    """Record a logged-in admin's wrong password, and return the error."""
    await rejection_log.record(
        actor,
        RejectedRequest(
            event="admin.password_verified",
            resource_type="admin",
            resource_id=ids.encode(ids.ADMIN, admin_id),
            result=AuditResult.FAILURE,
            reason="Wrong password",
        ),
    )
    return model.build_wrong_password_error()


async def change_password(
    tx: Transaction,
    actor: Actor,
    admin_id: int,
    *,
    password_hash: str,
    session_id: int,
    sessions: Sessions,
) -> None:
    """Replace the password and end the admin's other sessions."""
    await admin_queries.set_password(tx, admin_id, password_hash)
    await sessions.end_all(tx, admin_id, except_session=session_id)
    await trail.record(tx, actor, admin_id, "password_changed")


async def update_preferences(
    tx: Transaction, actor: Actor, admin_id: int, changes: PreferencesUpdate
) -> Preferences:
    """Change how the admin sees the console. An empty text resets a field."""
    await admin_queries.get(tx, admin_id, for_update=True)
    before = Preferences(**await queries.get_preferences(tx, admin_id))
    after = Preferences(
        theme=before.theme if changes.theme is None else changes.theme or None,
        timezone=before.timezone if changes.timezone is None else changes.timezone or None,
        language=before.language if changes.language is None else changes.language or None,
    )
    if after != before:
        await queries.set_preferences(tx, admin_id, after)
        await trail.record(
            tx,
            actor,
            admin_id,
            "preferences_changed",
            changes={
                name: (getattr(before, name), getattr(after, name))
                for name in ("theme", "timezone", "language")
                if getattr(before, name) != getattr(after, name)
            },
        )
    return after


async def end_session(
    tx: Transaction, actor: Actor, admin_id: int, session_id: int, *, sessions: Sessions
) -> None:
    """End one of the admin's own sessions."""
    if not await queries.owns_session(tx, admin_id, session_id):
        require_record(ids.SESSION, None)
    await sessions.end(tx, session_id)
    await trail.record(tx, actor, admin_id, "session_ended", reason="Ended by the admin")


async def end_other_sessions(
    tx: Transaction, actor: Actor, admin_id: int, *, session_id: int, sessions: Sessions
) -> None:
    """End the admin's sessions except the one of the request."""
    await sessions.end_all(tx, admin_id, except_session=session_id)
    await trail.record(
        tx, actor, admin_id, "session_ended", reason="All others were ended by the admin"
    )


def require_enabled(factors: Factors) -> None:
    if not factors.is_enabled:
        raise ApiError(
            Code.FORBIDDEN,
            "Second factors are off. Set TAPGATE_SECOND_FACTOR to optional or required.",
            details={"required": ["second_factor"]},
        )


async def _start_enrollment(
    tx: Transaction, admin_id: int, session_id: int, *, auth: Authenticator
) -> bool:
    """Lock an admin against concurrent enrollments; return whether a factor is enrolled.

    A concurrent request has added the first factor and ended this session.
    """
    await admin_queries.get(tx, admin_id, for_update=True)
    await auth.sessions.require_active(tx, session_id)
    return bool(await auth.factors.list_enrolled(admin_id, tx))


async def _end_enrollment(
    tx: Transaction, admin_id: int, session_id: int, *, auth: Authenticator, is_first: bool
) -> None:
    """Mark the session as verified. The first factor ends the sessions that started without it."""
    await auth.sessions.mark_factor_verified(tx, session_id)
    if is_first:
        await auth.sessions.end_all(tx, admin_id, except_session=session_id)


async def _check_remaining_factors(tx: Transaction, admin_id: int, *, factors: Factors) -> None:
    """Refuse to remove the last factor where a factor is required.

    Without a factor, there are no recovery codes either.
    """
    if await factors.list_enrolled(admin_id, tx):
        return
    if factors.is_required:
        raise ApiError(
            Code.FORBIDDEN,
            "A second factor is required. Enroll another one before you remove this one.",
            details={"required": ["second_factor"]},
        )
    await factors.remove_recovery_codes(tx, admin_id)


async def _record_factor(
    tx: Transaction,
    actor: Actor,
    admin_id: int,
    action: str,
    factor: str,
    name: str | None = None,
) -> None:
    values = {"factor": factor} if name is None else {"factor": factor, "name": name}
    enrolled = action == "factor_enrolled"
    changes = {
        field: (None, value) if enrolled else (value, None) for field, value in values.items()
    }
    await trail.record(tx, actor, admin_id, action, changes=changes)
