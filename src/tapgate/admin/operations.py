"""Operations on admins. Each change and its audit entry share one database transaction."""

import asyncpg
import msgspec

from tapgate import ids
from tapgate.admin import queries
from tapgate.api.services import RejectedRequest, RejectionLog
from tapgate.audit.trail import AuditTrail, Changes
from tapgate.auth.actors import SYSTEM_ACTOR, Actor
from tapgate.auth.logins import AuthenticatedAdmin, Logins
from tapgate.auth.sessions import SessionOrigin, Sessions
from tapgate.errors import ApiError, Code
from tapgate.schemas.admin import AdminRole, AdminStatus, Tokens
from tapgate.schemas.audit import AuditResult
from tapgate.store.transaction import Transaction

_FIRST_ADMIN_NAME = "Administrator"
_trail = AuditTrail("admin")


async def log_in(
    tx: Transaction,
    actor: Actor,
    authenticated: AuthenticatedAdmin,
    *,
    sessions: Sessions,
    origin: SessionOrigin,
) -> Tokens:
    """Start a session for an admin whose password and second factor have been verified."""
    admin_id, factor = authenticated
    tokens = await sessions.start(
        tx, admin_id, has_verified_factor=factor is not None, origin=origin
    )
    admin = await queries.get(tx, admin_id)
    public_id = ids.encode(ids.ADMIN, admin_id)
    record = {"type": "admin", "id": public_id, "name": admin["name"], "role": admin["role"]}
    await _trail.record(
        tx,
        msgspec.structs.replace(actor, record=record),
        public_id,
        "login",
        reason=factor and f"Second factor: {factor}",
    )
    return tokens


async def record_failed_login(
    rejection_log: RejectionLog, actor: Actor, email: str, error: ApiError, *, logins: Logins
) -> None:
    """Record a failed or rate-limited login, without the password.

    An email that belongs to no admin is recorded as a hash, because it may be a password typed into
    the wrong field.
    """
    await rejection_log.record(
        actor,
        RejectedRequest(
            event="admin.login",
            resource_type="admin",
            resource_id=await logins.get_loggable_email(email),
            result=AuditResult.FAILURE,
            reason=error.message,
        ),
    )


async def record_token_reuse(tx: Transaction, actor: Actor, admin_id: int) -> None:
    """Record the end of a session whose refresh token was reused."""
    await _record(tx, actor, admin_id, "session_ended", reason="Refresh token reused")


async def log_out(
    tx: Transaction, actor: Actor, *, admin_id: int, session_id: int, sessions: Sessions
) -> None:
    """End a session. Waits up to one second for every process to apply the change."""
    await sessions.end(tx, session_id)
    await _record(tx, actor, admin_id, "logout")


async def create(
    tx: Transaction, actor: Actor, *, email: str, name: str, role: str, password_hash: str
) -> asyncpg.Record:
    row = await queries.insert(tx, email, name, role, password_hash)
    if row is None:
        raise ApiError(Code.DUPLICATE_EMAIL)
    changes = {field: (None, row[field]) for field in ("email", "name", "role", "status")}
    await _record(tx, actor, row["id"], "created", changes=changes)
    return row


async def create_first_admin(tx: Transaction, *, email: str, password_hash: str) -> bool:
    """Create a `system_admin` if none exists, and return whether it was created.

    Concurrent calls create at most one.
    """
    # A concurrent call waits for this lock and then finds the admin.
    await tx.execute("LOCK TABLE admins IN SHARE ROW EXCLUSIVE MODE")
    if await queries.has_system_admin(tx):
        return False
    await create(
        tx,
        SYSTEM_ACTOR,
        email=email.lower(),
        name=_FIRST_ADMIN_NAME,
        role=AdminRole.SYSTEM_ADMIN,
        password_hash=password_hash,
    )
    return True


async def disable(
    tx: Transaction, actor: Actor, admin_id: int, *, sessions: Sessions
) -> asyncpg.Record:
    """Disable an admin and end all of the admin's sessions.

    Admins cannot disable themselves, and the last active `system_admin` cannot be disabled. Waits
    up to one second for every process to apply the change.
    """
    system_admins = await queries.lock_active_system_admins(tx)
    before = await queries.get(tx, admin_id, for_update=True)
    if actor.id == ids.encode(ids.ADMIN, admin_id):
        raise _build_forbidden_error("You can't disable your own account.")
    if before["status"] == AdminStatus.DISABLED:
        raise ApiError(Code.ALREADY_BLOCKED, "This admin is already disabled.")
    if system_admins == {admin_id}:
        raise _build_forbidden_error("The last active system_admin cannot be disabled.")
    after = await _change_status(tx, actor, before, "disabled", AdminStatus.DISABLED)
    await sessions.end_all(tx, admin_id)
    return after


async def enable(tx: Transaction, actor: Actor, admin_id: int) -> asyncpg.Record:
    before = await queries.get(tx, admin_id, for_update=True)
    if before["status"] == AdminStatus.ACTIVE:
        raise ApiError(Code.NOT_BLOCKED, "This admin is not disabled.")
    return await _change_status(tx, actor, before, "enabled", AdminStatus.ACTIVE)


def _build_forbidden_error(message: str) -> ApiError:
    return ApiError(Code.FORBIDDEN, message, details={"required": ["another system_admin"]})


async def _change_status(
    tx: Transaction, actor: Actor, before: asyncpg.Record, action: str, status: AdminStatus
) -> asyncpg.Record:
    await _record(tx, actor, before["id"], action, changes={"status": (before["status"], status)})
    return await queries.set_status(tx, before["id"], status)


async def _record(
    tx: Transaction,
    actor: Actor,
    admin_id: int,
    action: str,
    *,
    reason: str | None = None,
    changes: Changes | None = None,
) -> None:
    public_id = ids.encode(ids.ADMIN, admin_id)
    await _trail.record(tx, actor, public_id, action, reason=reason, changes=changes)
