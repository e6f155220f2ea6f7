"""Operations on admins. Each change and its audit entry share one database transaction."""

from collections.abc import Iterable, Sequence

import asyncpg
import msgspec

from tapgate.auth import owner_limits
from tapgate.auth.actors import SYSTEM_ACTOR, Actor
from tapgate.auth.invitations import Invitations
from tapgate.auth.logins import AuthenticatedAdmin, Logins, PasskeyRejectedError
from tapgate.auth.owners import OWNER_TYPES, Owner, build_owner, require_not_terminated
from tapgate.auth.second_factors import Factors
from tapgate.auth.sessions import SessionOrigin, Sessions
from tapgate.business.approval_rules import queries as approval_rules
from tapgate.business.approval_rules.check import keep_enough_approvers
from tapgate.business.approval_rules.people import LinkedPeople, RolesByOperation
from tapgate.business.staff import queries, trail
from tapgate.business.staff.queries import ActiveSystemAdmins
from tapgate.http.api.services import RejectedRequest, RejectionLog
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.clock import format_rfc3339
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.admin import (
    AdminChanges,
    AdminRole,
    AdminStatus,
    Invitation,
    Tokens,
    UserType,
)
from tapgate_client.schemas.audit import AuditResult

_FIRST_ADMIN_NAME = "Administrator"


async def log_in(
    tx: Transaction,
    actor: Actor,
    authenticated: AuthenticatedAdmin,
    *,
    sessions: Sessions,
    origin: SessionOrigin,
) -> Tokens:
    """Start a session for an admin whose password and factor, or passkey, have been verified."""
    admin_id, factor, password_hash = authenticated
    tokens = await sessions.start(
        tx,
        admin_id,
        has_verified_factor=factor is not None,
        password_hash=password_hash,
        origin=origin,
    )
    admin = await queries.get(tx, admin_id)
    reason = factor and f"Second factor: {factor}"
    await trail.record(tx, act_as(actor, admin), admin_id, "login", reason=reason)
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


async def record_rejected_passkey(
    rejection_log: RejectionLog, actor: Actor, error: PasskeyRejectedError
) -> None:
    """Record a failed login with a passkey, and why it was rejected."""
    await rejection_log.record(
        actor,
        RejectedRequest(
            event="admin.login",
            resource_type="admin",
            resource_id=error.email,
            result=AuditResult.FAILURE,
            reason=f"Passkey rejected. {error.reason}",
        ),
    )


async def end_sessions(
    tx: Transaction, actor: Actor, admin_ids: Iterable[int], *, sessions: Sessions
) -> None:
    """End all sessions of these admins, who can sign in again."""
    for admin_id in admin_ids:
        await sessions.end_all(tx, admin_id)
        await trail.record(tx, actor, admin_id, "session_ended", reason="Ended on the server")


async def record_token_reuse(tx: Transaction, actor: Actor, admin_id: int) -> None:
    """Record the end of a session whose refresh token was reused."""
    await trail.record(tx, actor, admin_id, "session_ended", reason="Refresh token reused")


async def log_out(
    tx: Transaction, actor: Actor, *, admin_id: int, session_id: int, sessions: Sessions
) -> None:
    """End a session. Waits up to one second for every process to apply the change."""
    await sessions.end(tx, session_id)
    await trail.record(tx, actor, admin_id, "logout")


async def create(
    tx: Transaction,
    actor: Actor,
    *,
    email: str,
    name: str,
    role: str,
    password_hash: str,
    makers: RolesByOperation,
    owner: Owner | None = None,
    creator_id: int | None = None,
) -> asyncpg.Record:
    """Create an admin, unless too few people could approve the admin's requests.

    An invited admin gets an unknown password's hash. The creator of an owner user with a typed
    password (`creator_id`) may be this user until a third admin confirms the account.
    """
    if owner is not None:
        await require_not_terminated(tx, owner)
    if not _is_of_owner(actor):
        await _release_email(tx, actor, email)
        await owner_limits.require_room(tx, owner_limits.USERS, owner)
    async with keep_enough_approvers(tx, makers):
        row = await queries.insert(tx, email, name, role, password_hash, owner)
    if row is None:
        raise ApiError(Code.DUPLICATE_EMAIL)
    changes = {field: (None, row[field]) for field in ("email", "name", "role", "status")}
    if owner is not None:
        changes["owner_id"] = (None, owner.public_id)
    await trail.record(tx, actor, row["id"], "created", changes=changes)
    if owner is None or creator_id is None:
        return row
    await queries.add_link_views(tx, row["id"], [creator_id])
    return await queries.get(tx, row["id"])


async def invite(
    tx: Transaction,
    actor: Actor,
    *,
    email: str,
    name: str,
    role: str,
    unusable_hash: str,
    makers: RolesByOperation,
    linked_to: Sequence[int],
    invitations: Invitations,
    owner: Owner | None = None,
) -> tuple[asyncpg.Record, Invitation]:
    """Create an admin and return the link with which the admin sets the password.

    `linked_to` are the admins who may receive the link: the admin who sees it, and the admin who
    chose the address that it is sent to.
    """
    row = await create(
        tx,
        actor,
        email=email,
        name=name,
        role=role,
        password_hash=unusable_hash,
        makers=makers,
        owner=owner,
    )
    invitation = await _invite(
        tx, row["id"], makers=makers, linked_to=linked_to, invitations=invitations
    )
    return await queries.get(tx, row["id"]), invitation


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
        makers={},
    )
    return True


async def update(
    tx: Transaction,
    actor: Actor,
    admin_id: int,
    changes: AdminChanges,
    *,
    makers: RolesByOperation,
    sessions: Sessions,
) -> asyncpg.Record:
    """Change an admin's name or role. A new role ends the admin's sessions.

    Admins cannot change their own role. The last active `system_admin`, and the last one with a
    password, keep their role. So do admins whose loss would leave too few people to approve
    requests.
    """
    await approval_rules.lock(tx)
    system_admins = await queries.lock_active_system_admins(tx)
    before = await queries.get(tx, admin_id, for_update=True)
    role = changes.role or before["role"]
    if role != before["role"]:
        if OWNER_TYPES.get(role) != before["owner_type"]:
            raise invalid_field("role", "must be a role with the same kind of owner")
        if _is_self(actor, admin_id):
            raise _build_forbidden_error("You can't change your own role.")
        if system_admins.is_required(admin_id):
            raise _build_forbidden_error(_describe_required(system_admins, "get another role"))
    async with keep_enough_approvers(tx, makers):
        after = await queries.update(tx, admin_id, name=changes.name or before["name"], role=role)
    differences = {
        field: (before[field], after[field])
        for field in ("name", "role")
        if before[field] != after[field]
    }
    if differences:
        await trail.record(tx, actor, admin_id, "updated", changes=differences)
    if "role" in differences:
        await sessions.end_all(tx, admin_id)
    elif differences:
        await sessions.publish_change(tx)
    return after


async def reset_factors(
    tx: Transaction, actor: Actor, admin_id: int, *, factors: Factors, sessions: Sessions
) -> asyncpg.Record:
    """Remove the second factors of another admin and end the admin's sessions."""
    admin = await queries.get(tx, admin_id, for_update=True)
    if _is_self(actor, admin_id):
        raise _build_forbidden_error("You can't reset your own second factors.")
    removed = await factors.remove_all(tx, admin_id)
    await sessions.end_all(tx, admin_id)
    await trail.record(tx, actor, admin_id, "factors_reset", changes={"factors": (removed, [])})
    return admin


async def reset_password(
    tx: Transaction,
    actor: Actor,
    admin_id: int,
    *,
    unusable_hash: str,
    makers: RolesByOperation,
    linked_to: Sequence[int],
    invitations: Invitations,
    sessions: Sessions,
) -> Invitation:
    """Make an admin's password unusable and return a link to set a new one.

    The admin's sessions end. Second factors remain, so the link alone does not grant access. The
    admin no longer signs in with single sign-on. `linked_to` are the admins who see the link: none
    on the command line.
    """
    await approval_rules.lock(tx)
    await queries.get(tx, admin_id, for_update=True)
    if _is_self(actor, admin_id):
        raise _build_forbidden_error("You can't reset your own password. Change it instead.")
    await queries.set_password(tx, admin_id, unusable_hash)
    subject = await queries.delete_identity(tx, admin_id)
    await sessions.end_all(tx, admin_id)
    changes = None if subject is None else {"subject": (subject, None)}
    await trail.record(tx, actor, admin_id, "password_reset", changes=changes)
    return await _invite(tx, admin_id, makers=makers, linked_to=linked_to, invitations=invitations)


async def accept_invitation(
    tx: Transaction,
    actor: Actor,
    token: str,
    *,
    password_hash: str,
    invitations: Invitations,
    sessions: Sessions,
) -> None:
    """Set the password for the admin who received the link, and end the admin's sessions."""
    admin_id = await invitations.use(tx, token)
    if admin_id is None:
        raise build_invalid_invitation_error()
    admin = await queries.get(tx, admin_id)
    await queries.set_password(tx, admin_id, password_hash)
    await sessions.end_all(tx, admin_id)
    await trail.record(tx, act_as(actor, admin), admin_id, "password_set", reason="Invitation link")


def build_invalid_invitation_error() -> ApiError:
    return ApiError(
        Code.NOT_FOUND, "The link is invalid, was already used or has expired. Ask for a new one."
    )


async def confirm(tx: Transaction, actor: Actor, admin_id: int) -> asyncpg.Record:
    """Confirm that an account belongs to its admin, and not to an admin who may have had its link.

    Neither of them can confirm it, nor, once approval rules exist, an admin who may be one of
    them. The command line confirms without this check. No one can confirm an account whose link was
    not used: it proves nothing about the person who will use it, or the link that replaces it.
    """
    await approval_rules.lock(tx)
    admin = await queries.get(tx, admin_id, for_update=True)
    if not admin["link_viewers"]:
        return admin
    if not admin["sso"] and await queries.has_unused_link(tx, admin_id):
        raise ApiError(
            Code.VALIDATION_FAILED,
            "The link of this account has not been used yet. Confirm the account once its admin "
            "has set a password. Disable an account that will not be used: links of accounts "
            "that were disabled before their first sign-in do not count.",
        )
    confirmer = None if actor.principal is None else actor.principal.admin_id
    if confirmer is not None:
        # A confirmation outlives a suspension of the rules, so these rules count too.
        has_rules = await approval_rules.list_rules(tx)
        linked = await approval_rules.load_linked_people(tx) if has_rules else LinkedPeople()
        own, *others = [
            (await approval_rules.find_admin(tx, each)).person
            for each in (confirmer, admin_id, *admin["link_viewers"])
        ]
        if any(linked.may_be_same(own, other) for other in others):
            raise _build_forbidden_error(
                "You can't confirm this account: you may be its admin, or one who has had its link."
            )
    await queries.confirm_link_views(tx, admin_id, confirmer)
    viewers = [ids.encode(ids.ADMIN, each) for each in admin["link_viewers"]]
    await trail.record(tx, actor, admin_id, "confirmed", changes={"link_seen_by": (viewers, [])})
    return await queries.get(tx, admin_id)


async def _invite(
    tx: Transaction,
    admin_id: int,
    *,
    makers: RolesByOperation,
    linked_to: Sequence[int],
    invitations: Invitations,
) -> Invitation:
    """Create a link. Until a third admin confirms, each of `linked_to` may be its admin."""
    async with keep_enough_approvers(tx, makers):
        await queries.add_link_views(tx, admin_id, linked_to)
    url, expires_at = await invitations.create(tx, admin_id)
    return Invitation(url=url, expires_at=format_rfc3339(expires_at))


def act_as(actor: Actor, admin: asyncpg.Record) -> Actor:
    """Return the actor for a request in which an admin proved an identity without a session."""
    public_id = ids.encode(ids.ADMIN, admin["id"])
    record = {"type": "admin", "id": public_id, "name": admin["name"], "role": admin["role"]}
    owner = build_owner(admin["owner_type"], admin["owner_id"])
    if owner is not None:
        record["owner_id"] = owner.public_id
    return msgspec.structs.replace(actor, record=record)


def _is_self(actor: Actor, admin_id: int) -> bool:
    return actor.id == ids.encode(ids.ADMIN, admin_id)


async def disable(
    tx: Transaction,
    actor: Actor,
    admin_id: int,
    *,
    makers: RolesByOperation,
    sessions: Sessions,
    invitations: Invitations,
) -> asyncpg.Record:
    """Disable an admin, and end the admin's sessions and invitation link.

    Admins cannot disable themselves. The platform can disable an account that its owner has
    disabled, which the owner then cannot enable. The last active `system_admin`, and the last one
    with a password, cannot be disabled. Nor can admins whose loss would leave too few people to
    approve requests. Waits up to one second for every process to apply the change.
    """
    await approval_rules.lock(tx)
    system_admins = await queries.lock_active_system_admins(tx)
    before = await queries.get(tx, admin_id, for_update=True)
    if _is_self(actor, admin_id):
        raise _build_forbidden_error("You can't disable your own account.")
    is_owner = _is_of_owner(actor)
    if before["status"] == AdminStatus.DISABLED and (
        is_owner or before["disabled_by"] == UserType.PLATFORM
    ):
        raise ApiError(Code.ALREADY_BLOCKED, "This admin is already disabled.")
    if system_admins.is_required(admin_id):
        raise _build_forbidden_error(_describe_required(system_admins, "be disabled"))
    async with keep_enough_approvers(tx, makers):
        after = await _change_status(tx, actor, before, "disabled", AdminStatus.DISABLED)
    await sessions.end_all(tx, admin_id)
    await invitations.revoke(tx, admin_id)
    return after


async def enable(
    tx: Transaction, actor: Actor, admin_id: int, *, makers: RolesByOperation
) -> asyncpg.Record:
    """Enable an admin, unless too few people could approve the admin's requests.

    An owner's user enables only accounts that a user of this owner has disabled.
    """
    await approval_rules.lock(tx)
    before = await queries.get(tx, admin_id, for_update=True)
    if before["status"] == AdminStatus.ACTIVE:
        raise ApiError(Code.NOT_BLOCKED, "This admin is not disabled.")
    if _is_of_owner(actor) and before["disabled_by"] == UserType.PLATFORM:
        raise ApiError(
            Code.FORBIDDEN,
            "The platform has disabled this account. Ask support to enable it.",
            details={"required": [AdminRole.SYSTEM_ADMIN]},
        )
    if _has_released_email(before):
        raise ApiError(
            Code.DUPLICATE_EMAIL,
            "Another account has the email address of this account. Create a new account.",
        )
    async with keep_enough_approvers(tx, makers):
        return await _change_status(tx, actor, before, "enabled", AdminStatus.ACTIVE)


def _describe_required(system_admins: ActiveSystemAdmins, change: str) -> str:
    who = "" if len(system_admins.all) == 1 else " with a password"
    return f"The last active system_admin{who} cannot {change}."


def _build_forbidden_error(message: str) -> ApiError:
    return ApiError(Code.FORBIDDEN, message, details={"required": ["another system_admin"]})


async def _change_status(
    tx: Transaction, actor: Actor, before: asyncpg.Record, action: str, status: AdminStatus
) -> asyncpg.Record:
    await trail.record(
        tx, actor, before["id"], action, changes={"status": (before["status"], status)}
    )
    disabled_by = None
    if status == AdminStatus.DISABLED and actor.principal is not None:
        disabled_by = actor.principal.admin_id
    return await queries.set_status(tx, before["id"], status, disabled_by=disabled_by)


def _is_of_owner(actor: Actor) -> bool:
    return actor.principal is not None and actor.principal.owner is not None


async def _release_email(tx: Transaction, actor: Actor, email: str) -> None:
    """Let the platform use the address of a disabled owner user for a new account.

    Sign-in names are unique, and owners choose them without an approval. The new account takes over
    nothing. The old one keeps its identity, which ignores the part after a plus sign.
    """
    found = await queries.lock_by_email(tx, email)
    if found is None or found["owner_id"] is None:
        return
    public_id = ids.encode(ids.ADMIN, found["id"])
    if found["status"] == AdminStatus.ACTIVE:
        raise ApiError(
            Code.DUPLICATE_EMAIL,
            "A user of a merchant, partner or agent has this email address. Disable the user "
            "first, which releases the address.",
            details={"id": public_id},
        )
    local, _, domain = email.rpartition("@")
    released = f"{local}+{public_id}@{domain}"
    await queries.change_email(tx, found["id"], released)
    reason = "Address used for a new account"
    changes = {"email": (email, released)}
    await trail.record(tx, actor, found["id"], "updated", changes=changes, reason=reason)


def _has_released_email(admin: asyncpg.Record) -> bool:
    return f"+{ids.encode(ids.ADMIN, admin['id'])}@" in admin["email"]
