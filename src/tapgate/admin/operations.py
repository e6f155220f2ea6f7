"""Operations on admins. Each change and its audit entry share one database transaction."""

import asyncio
from collections.abc import Mapping
from typing import Any

import asyncpg
import msgspec

from tapgate import ids
from tapgate.admin import model, queries
from tapgate.api.charges import LoginCharge
from tapgate.api.services import RejectedRequest, Services
from tapgate.audit import trail
from tapgate.auth.actors import SYSTEM_ACTOR, Actor
from tapgate.auth.sessions import TokenReuseError
from tapgate.errors import ApiError, Code
from tapgate.schemas.admin import AdminRole, NewAdmin, Tokens

_FIRST_ADMIN_NAME = "Administrator"


async def log_in(services: Services, actor: Actor, email: str, password: str) -> Tokens:
    """Log an admin in, record the login in the audit log, and return the tokens.

    Failed and rate-limited logins are also recorded, without the password. Logins rejected with 503
    are not. An email that belongs to no admin is recorded as a hash, because it may be a password
    typed into the wrong field.
    """
    try:
        address = actor.ip or ""
        charge = LoginCharge(services.throttle, address)
        admin_id = await services.authenticator.logins.authenticate(
            email, password, address, charge
        )
        async with services.transaction() as tx:
            tokens = await services.authenticator.sessions.start(tx, admin_id)
            row = await queries.get(tx, admin_id)
            await _record_audit_entry(
                tx, services, _with_admin_actor(actor, row), "admin.login", admin_id
            )
        return tokens
    except ApiError as error:
        if error.code is not Code.SERVICE_UNAVAILABLE:
            await _record_failed_login(services, actor, email, error)
        raise


async def refresh(services: Services, actor: Actor, refresh_token: str) -> Tokens:
    """Exchange a refresh token. Token reuse ends the session and is recorded in the audit log."""
    try:
        return await services.authenticator.sessions.refresh(refresh_token)
    except TokenReuseError as reuse:
        async with services.transaction() as tx:
            await _record_audit_entry(
                tx,
                services,
                actor,
                "admin.session_ended",
                reuse.admin_id,
                reason="Refresh token reused",
            )
        raise


async def log_out(services: Services, actor: Actor, *, admin_id: int, session_id: int) -> None:
    async with services.transaction() as tx:
        ticket = await services.authenticator.sessions.end(tx, session_id)
        await _record_audit_entry(tx, services, actor, "admin.logout", admin_id)
    await services.signals.wait_for_acks(ticket)


async def create(services: Services, actor: Actor, new: NewAdmin) -> asyncpg.Record:
    strict = services.settings.requires_secrets
    await asyncio.to_thread(model.require_strong_password, new, strict=strict)
    password_hash = await services.authenticator.passwords.hash(new.password)
    async with services.transaction() as tx:
        return await _insert_admin(
            tx,
            services,
            actor,
            email=new.email,
            name=new.name,
            role=new.role,
            password_hash=password_hash,
        )


async def create_first_admin(services: Services, *, email: str, password: str) -> bool:
    """Create a `system_admin` if none exists, and return whether it was created.

    Concurrent calls create at most one.
    """
    if await queries.has_system_admin(services.database):
        return False
    password_hash = await services.authenticator.passwords.hash(password)
    async with services.transaction() as tx:
        # A concurrent call waits for this lock and then finds the admin.
        await tx.execute("LOCK TABLE admins IN SHARE ROW EXCLUSIVE MODE")
        if await queries.has_system_admin(tx):
            return False
        await _insert_admin(
            tx,
            services,
            SYSTEM_ACTOR,
            email=email.lower(),
            name=_FIRST_ADMIN_NAME,
            role=AdminRole.SYSTEM_ADMIN,
            password_hash=password_hash,
        )
    return True


async def disable(services: Services, actor: Actor, admin_id: int, *, by: int) -> asyncpg.Record:
    """Disable an admin and end all of the admin's sessions.

    Admins cannot disable themselves, and the last active `system_admin` cannot be disabled. Waits
    up to one second for every process to apply the change.
    """
    async with services.transaction() as tx:
        system_admins = await queries.lock_active_system_admins(tx)
        before = await queries.get(tx, admin_id, for_update=True)
        if admin_id == by:
            raise _build_forbidden_error("You can't disable your own account.")
        if before["status"] == "disabled":
            raise ApiError(Code.ALREADY_BLOCKED, "This admin is already disabled.")
        if system_admins == {admin_id}:
            raise _build_forbidden_error("The last active system_admin cannot be disabled.")
        after = await _change_status(tx, services, actor, before, "disabled")
        ticket = await services.authenticator.sessions.end_all(tx, admin_id)
    await services.signals.wait_for_acks(ticket)
    return after


def _build_forbidden_error(message: str) -> ApiError:
    return ApiError(Code.FORBIDDEN, message, details={"required": ["another system_admin"]})


async def enable(services: Services, actor: Actor, admin_id: int) -> asyncpg.Record:
    async with services.transaction() as tx:
        before = await queries.get(tx, admin_id, for_update=True)
        if before["status"] == "active":
            raise ApiError(Code.NOT_BLOCKED, "This admin is not disabled.")
        return await _change_status(tx, services, actor, before, "active")


async def _insert_admin(
    tx: asyncpg.Connection,
    services: Services,
    actor: Actor,
    *,
    email: str,
    name: str,
    role: str,
    password_hash: str,
) -> asyncpg.Record:
    row = await queries.insert(
        tx,
        admin_id=services.new_id(),
        email=email,
        name=name,
        role=role,
        password_hash=password_hash,
        now=services.clock(),
    )
    if row is None:
        raise ApiError(Code.DUPLICATE_EMAIL)
    changes = {field: (None, row[field]) for field in ("email", "name", "role", "status")}
    await _record_audit_entry(tx, services, actor, "admin.created", row["id"], changes=changes)
    return row


async def _change_status(
    tx: asyncpg.Connection, services: Services, actor: Actor, before: asyncpg.Record, status: str
) -> asyncpg.Record:
    event = "admin.disabled" if status == "disabled" else "admin.enabled"
    changes = {"status": (before["status"], status)}
    await _record_audit_entry(tx, services, actor, event, before["id"], changes=changes)
    return await queries.set_status(tx, before["id"], status)


async def _record_audit_entry(
    tx: asyncpg.Connection,
    services: Services,
    actor: Actor,
    event: str,
    admin_id: int,
    *,
    reason: str | None = None,
    changes: trail.Changes | None = None,
) -> None:
    await trail.record(
        tx,
        actor,
        event=event,
        resource_type="admin",
        resource_id=ids.encode(ids.ADMIN, admin_id),
        reason=reason,
        changes=changes,
    )


async def _record_failed_login(
    services: Services, actor: Actor, email: str, error: ApiError
) -> None:
    loggable_email = await services.authenticator.logins.get_loggable_email(email)
    await services.rejection_log.record(
        actor,
        RejectedRequest(
            event="admin.login",
            resource_type="admin",
            resource_id=loggable_email,
            result="failure",
            reason=error.message,
        ),
    )


def _with_admin_actor(actor: Actor, admin: Mapping[str, Any]) -> Actor:
    """Return the admin as the actor, known once the password is verified."""
    record = {
        "type": "admin",
        "id": ids.encode(ids.ADMIN, admin["id"]),
        "name": admin["name"],
        "role": admin["role"],
    }
    return msgspec.structs.replace(actor, record=record)
