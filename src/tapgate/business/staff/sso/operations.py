"""Admin sign-in with an identity from the provider."""

import asyncpg
import msgspec

from tapgate.auth.actors import SYSTEM_ACTOR, Actor
from tapgate.auth.authenticator import Authenticator
from tapgate.auth.oidc.id_tokens import Identity
from tapgate.auth.sessions import SessionOrigin, Sessions
from tapgate.business.approval_rules import queries as approval_rules
from tapgate.business.approval_rules.check import keep_enough_approvers
from tapgate.business.approval_rules.people import RolesByOperation
from tapgate.business.staff import operations as admins
from tapgate.business.staff import queries as admin_queries
from tapgate.business.staff import trail
from tapgate.business.staff.sso import queries
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import Tokens

_REASON = "Single sign-on"


class SignIn(msgspec.Struct, frozen=True, kw_only=True):
    """Sign-in that has passed all checks outside the database transaction."""

    identity: Identity
    #: The identity's role.
    role: str
    #: Admin with the identity's email address and a verified password, to be linked.
    linked_admin_id: int | None
    #: The second factor that was verified, or None if the admin has none.
    factor: str | None
    #: Hash of an unknown password, for new and linked admins.
    unusable_hash: str | None
    origin: SessionOrigin


async def start_session(
    tx: Transaction,
    actor: Actor,
    sign_in: SignIn,
    *,
    makers: RolesByOperation,
    auth: Authenticator,
) -> Tokens:
    """Create, link or update an identity's admin, and start a session.

    If too few people could approve requests once the admin has the provider's role, the sign-in is
    refused: the admin gets neither the new role nor a session with the old one.
    """
    await approval_rules.lock(tx)
    try:
        async with keep_enough_approvers(tx, makers):
            admin = await _find_or_create(tx, actor, sign_in, sessions=auth.sessions)
    except ApiError as error:
        if error.code is not Code.VALIDATION_FAILED:
            raise
        raise ApiError(Code.FORBIDDEN, error.message, details=error.details) from None
    tokens = await auth.sessions.start(
        tx,
        admin["id"],
        has_verified_factor=sign_in.factor is not None,
        origin=sign_in.origin,
        id_token=sign_in.identity.id_token,
    )
    reason = _REASON + (f", second factor: {sign_in.factor}" if sign_in.factor else "")
    await trail.record(tx, admins.act_as(actor, admin), admin["id"], "login", reason=reason)
    return tokens


async def _find_or_create(
    tx: Transaction, actor: Actor, sign_in: SignIn, *, sessions: Sessions
) -> asyncpg.Record:
    admin_id = await queries.find_admin(tx, sign_in.identity)
    if admin_id is not None:
        return await _update(tx, actor, admin_id, sign_in, sessions=sessions)
    if sign_in.linked_admin_id is not None:
        return await _link(tx, actor, sign_in.linked_admin_id, sign_in, sessions=sessions)
    return await _create(tx, actor, sign_in)


async def end_sessions(
    tx: Transaction, actor: Actor, identity: Identity, *, sessions: Sessions
) -> None:
    """End an admin's sessions after the admin has lost access at the provider."""
    admin_id = await queries.find_admin(tx, identity)
    if admin_id is not None:
        await sessions.end_all(tx, admin_id)
        system = msgspec.structs.replace(actor, record=SYSTEM_ACTOR.record)
        await trail.record(tx, system, admin_id, "session_ended", reason=f"{_REASON}: access lost")


async def _create(tx: Transaction, actor: Actor, sign_in: SignIn) -> asyncpg.Record:
    assert sign_in.unusable_hash is not None
    identity = sign_in.identity
    admin = await admins.create(
        tx,
        msgspec.structs.replace(actor, record=SYSTEM_ACTOR.record),
        email=identity.email,
        name=identity.name,
        role=sign_in.role,
        password_hash=sign_in.unusable_hash,
        makers={},  # checked for the sign-in as a whole
    )
    await queries.insert(tx, admin["id"], identity)
    await _record_link(tx, actor, admin, identity)
    return admin


async def _link(
    tx: Transaction, actor: Actor, admin_id: int, sign_in: SignIn, *, sessions: Sessions
) -> asyncpg.Record:
    """Replace a local admin's password with an identity. One local system_admin remains."""
    assert sign_in.unusable_hash is not None
    system_admins = await admin_queries.lock_active_system_admins(tx)
    before = await admin_queries.get(tx, admin_id, for_update=True)
    if before["owner_id"] is not None:
        raise _build_refusal("Users of a merchant, partner or agent sign in with their password.")
    if system_admins.is_required(admin_id):
        raise _build_refusal(
            "The last system_admin with a password cannot use single sign-on. Create another one "
            "first."
        )
    await queries.insert(tx, admin_id, sign_in.identity)
    await admin_queries.set_password(tx, admin_id, sign_in.unusable_hash)
    await sessions.end_all(tx, admin_id)
    await _record_link(tx, actor, before, sign_in.identity)
    return await _update(tx, actor, admin_id, sign_in, sessions=sessions)


async def _update(
    tx: Transaction, actor: Actor, admin_id: int, sign_in: SignIn, *, sessions: Sessions
) -> asyncpg.Record:
    """Take over the role. A new role ends the admin's other sessions.

    The first login's email address remains, because it identifies the person in approvals. A new
    address that belongs to another admin would be a second account.
    """
    system_admins = await admin_queries.lock_active_system_admins(tx)
    before = await admin_queries.get(tx, admin_id, for_update=True)
    other = await admin_queries.find_sso_candidate(tx, sign_in.identity.email)
    if other is not None and other["id"] != admin_id:
        raise _build_refusal("Another admin has your new email address.")
    if sign_in.role == before["role"]:
        return before
    if system_admins.is_required(admin_id):
        raise _build_refusal("The last active system_admin cannot get another role.")
    after = await admin_queries.update(tx, admin_id, name=before["name"], role=sign_in.role)
    system = msgspec.structs.replace(actor, record=SYSTEM_ACTOR.record)
    changes = {"role": (before["role"], after["role"])}
    await trail.record(tx, system, admin_id, "updated", reason=_REASON, changes=changes)
    await sessions.end_all(tx, admin_id)
    return after


def _build_refusal(message: str) -> ApiError:
    return ApiError(Code.FORBIDDEN, message, details={"required": ["another system_admin"]})


async def _record_link(
    tx: Transaction, actor: Actor, admin: asyncpg.Record, identity: Identity
) -> None:
    changes = {"issuer": (None, identity.issuer), "subject": (None, identity.subject)}
    await trail.record(tx, admins.act_as(actor, admin), admin["id"], "sso_linked", changes=changes)
