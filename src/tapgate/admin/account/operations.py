"""Operations of admins on their own accounts, recorded in the audit log."""

from datetime import datetime

from tapgate import ids
from tapgate.admin import queries as admin_queries
from tapgate.admin.account import queries
from tapgate.audit.trail import AuditTrail, Changes
from tapgate.auth import totp
from tapgate.auth.actors import Actor
from tapgate.auth.authenticator import Authenticator
from tapgate.auth.factors import STEP_UP_LIFETIME, Factor, Factors, build_invalid_otp_error
from tapgate.auth.sessions import Sessions
from tapgate.errors import ApiError, Code
from tapgate.schemas.account import TotpSecret
from tapgate.schemas.records import require_record
from tapgate.store.transaction import Transaction

_trail = AuditTrail("admin")


async def start_totp(
    tx: Transaction, actor: Actor, admin_id: int, *, factors: Factors
) -> TotpSecret:
    """Create the secret of an authenticator app. It is not enrolled before it is confirmed."""
    require_enabled(factors)
    admin = await admin_queries.get(tx, admin_id)
    secret = await factors.start_totp(tx, admin_id)
    url = totp.build_url(secret, admin["email"])
    await _record(tx, actor, admin_id, "totp_started")
    return TotpSecret(secret=secret, otpauth_url=url, qr=totp.render_qr(url))


async def confirm_totp(
    tx: Transaction, actor: Actor, admin_id: int, code: str, *, auth: Authenticator, session_id: int
) -> list[str]:
    """Enroll an authenticator app and return the new recovery codes."""
    require_enabled(auth.factors)
    recovery_codes = await auth.factors.confirm_totp(tx, admin_id, code)
    if recovery_codes is None:
        raise build_invalid_otp_error()
    await auth.sessions.mark_factor_verified(tx, session_id)
    await _record_factor(tx, actor, admin_id, "factor_enrolled", Factor.TOTP)
    return recovery_codes


async def remove_totp(
    tx: Transaction, actor: Actor, admin_id: int, *, factors: Factors, sessions: Sessions
) -> None:
    """Remove the authenticator app and the recovery codes of an admin who has entered a code."""
    await require_other_factor(tx, admin_id, Factor.TOTP, factors=factors)
    await factors.remove_totp(tx, admin_id)
    await sessions.publish_change(tx)
    await _record_factor(tx, actor, admin_id, "factor_removed", Factor.TOTP)


async def step_up(
    tx: Transaction,
    actor: Actor,
    admin_id: int,
    *,
    session_id: int,
    factor: str,
    sessions: Sessions,
) -> datetime:
    """Allow sensitive actions in a session whose factor was verified; return until when."""
    verified_at = await sessions.mark_factor_verified(tx, session_id)
    await _trail.record(
        tx, actor, _encode(admin_id), "factor_verified", reason=f"Second factor: {factor}"
    )
    return verified_at + STEP_UP_LIFETIME


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
    await _record(tx, actor, admin_id, "password_changed")


async def end_session(
    tx: Transaction, actor: Actor, admin_id: int, session_id: int, *, sessions: Sessions
) -> None:
    """End one of the admin's own sessions."""
    if not await queries.owns_session(tx, admin_id, session_id):
        require_record(ids.SESSION, None)
    await sessions.end(tx, session_id)
    await _record(tx, actor, admin_id, "session_ended", reason="Ended by the admin")


def require_enabled(factors: Factors) -> None:
    if not factors.is_enabled:
        raise ApiError(
            Code.FORBIDDEN,
            "Second factors are off. Set TAPGATE_SECOND_FACTOR to optional or required.",
            details={"required": ["second_factor"]},
        )


async def require_other_factor(
    tx: Transaction, admin_id: int, removed: Factor, *, factors: Factors
) -> None:
    """Reject the removal of the last factor where a factor is required."""
    if factors.is_required and await factors.list_enrolled(admin_id, tx) == [removed]:
        raise ApiError(
            Code.FORBIDDEN,
            "A second factor is required. Enroll another one before you remove this one.",
            details={"required": ["second_factor"]},
        )


async def _record_factor(
    tx: Transaction, actor: Actor, admin_id: int, action: str, factor: str
) -> None:
    enrolled = action == "factor_enrolled"
    changes = {"factor": (None, factor) if enrolled else (factor, None)}
    await _record(tx, actor, admin_id, action, changes=changes)


async def _record(
    tx: Transaction,
    actor: Actor,
    admin_id: int,
    action: str,
    *,
    reason: str | None = None,
    changes: Changes | None = None,
) -> None:
    await _trail.record(tx, actor, _encode(admin_id), action, reason=reason, changes=changes)


def _encode(admin_id: int) -> str:
    return ids.encode(ids.ADMIN, admin_id)
