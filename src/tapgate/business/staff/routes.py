"""Admin and session endpoints."""

from operator import itemgetter
from typing import Final

import msgspec

from tapgate.auth.logins import PasskeyRejectedError
from tapgate.auth.owners import OWNER_TYPES, USERS, parse_owner
from tapgate.auth.sessions import SessionOrigin, TokenReuseError
from tapgate.business.approval_rules.check import load_approver_counts
from tapgate.business.staff import model, operations, queries
from tapgate.business.staff.account import operations as account_operations
from tapgate.business.staff.account.queries import list_sessions
from tapgate.business.staff.known_secrets import load_known_secrets
from tapgate.core.pagination import paginate
from tapgate.core.records import AdminId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, OWN_USER, Binding, OwnerAccess
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.body_limits import DEFAULT_BODY_BYTES
from tapgate.http.endpoint import Endpoints
from tapgate.http.rate_limits.address_costs import LoginCost
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.account import AdminDetails
from tapgate_client.schemas.admin import (
    Admin,
    AdminChanges,
    AdminFilters,
    AdminRole,
    Invitation,
    InvitationAcceptance,
    Login,
    Me,
    NewAdmin,
    NewAdminRecord,
    Offboarding,
    Refresh,
    Tokens,
)
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.pagination import Page, PageQuery
from tapgate_client.schemas.passkeys import PasskeyLogin, RequestOptions

endpoints = Endpoints("Admin", "/api/v1/admin", objects=ObjectAccess.ANY, owners=NEVER)

_PUBLIC = Access(public=True)
_SHOWN_SESSIONS: Final = 20
_ANY_ADMIN = Access(roles="ACSF")
_SYSTEM_ADMIN = Access(roles="A")
_OWN_USER_ROW = OwnerAccess(binding=Binding.ROW, roles="M", rows=USERS, key_roles="")


@endpoints.post(
    "/login",
    access=_PUBLIC,
    errors=(Code.UNAUTHORIZED, Code.OTP_REQUIRED, Code.INVALID_OTP),
    objects=ObjectAccess.NO_OBJECT,
)
async def log_in(request: RequestContext, body: Login) -> Tokens:
    """Log in with email and password.

    `token` is the bearer token for other requests and is valid for `expires_in` seconds. Use
    `refresh_token` to obtain new tokens.

    If a second factor is enrolled, `otp` is required: an authenticator app code or a recovery code.
    Without it, the login fails with `OTP_REQUIRED`, and `details.methods` lists the enrolled
    factors. Each code works once. To use a passkey, call `POST /api/v1/admin/login/passkey`, which
    needs no password. If the platform requires a second factor and none is enrolled, the response
    has `enroll_only`, and its token can only enroll one.

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
        cost = LoginCost(services.throttle, request.ip)
        admin = await auth.logins.authenticate(
            body.email, body.password, request.ip, cost, otp=body.otp
        )
        async with services.transaction() as tx:
            return await operations.log_in(
                tx, request.actor, admin, sessions=auth.sessions, origin=get_origin(request)
            )
    except ApiError as error:
        if error.code not in (Code.SERVICE_UNAVAILABLE, Code.OTP_REQUIRED):
            await operations.record_failed_login(
                services.rejection_log, request.actor, body.email, error, logins=auth.logins
            )
        raise


@endpoints.post(
    "/login/passkey/options",
    access=_PUBLIC,
    errors=(Code.FORBIDDEN,),
    objects=ObjectAccess.NO_OBJECT,
)
async def start_passkey_login(request: RequestContext) -> RequestOptions:
    """Create the options to prove a passkey.

    Pass them to `navigator.credentials.get()`, and send the result to
    `POST /api/v1/admin/login/passkey` or to `POST /api/v1/admin/me/step-up` within five minutes.
    They work once.
    """
    auth = request.services.authenticator
    account_operations.require_enabled(auth.factors)
    return auth.passkeys.build_request_options()


@endpoints.post(
    "/login/passkey",
    access=_PUBLIC,
    errors=(Code.UNAUTHORIZED, Code.FORBIDDEN),
    objects=ObjectAccess.NO_OBJECT,
)
async def log_in_with_passkey(request: RequestContext, body: PasskeyLogin) -> Tokens:
    """Log in with a passkey, without a password.

    `credential` is the result of `navigator.credentials.get()`, as `toJSON()` returns it. The
    authenticator must have verified the user, so the passkey is two factors, and sensitive actions
    are allowed for 15 minutes.

    Failures count as the admin's failed logins, with the same limits as `POST /api/v1/admin/login`.
    A passkey whose sign count does not increase may be a copy. It is rejected, and the audit log
    records it.
    """
    services, auth = request.services, request.services.authenticator
    account_operations.require_enabled(auth.factors)
    try:
        cost = LoginCost(services.throttle, request.ip)
        admin = await auth.logins.authenticate_passkey(body.credential, request.ip, cost)
        async with services.transaction() as tx:
            return await operations.log_in(
                tx, request.actor, admin, sessions=auth.sessions, origin=get_origin(request)
            )
    except PasskeyRejectedError as error:
        await operations.record_rejected_passkey(services.rejection_log, request.actor, error)
        raise


@endpoints.post(
    "/refresh",
    access=_PUBLIC,
    body_limit=DEFAULT_BODY_BYTES,  # tokens are ASCII and much shorter than the field's limit
    errors=(Code.UNAUTHORIZED,),
    objects=ObjectAccess.OWN,
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


@endpoints.post(
    "/logout",
    access=_ANY_ADMIN,
    enrolls=True,
    unguarded=Unguarded.OWN_ACCOUNT,
    objects=ObjectAccess.OWN,
    owners=OWN_USER,
)
async def log_out(request: RequestContext, tx: Transaction) -> None:
    """Log out.

    Ends the session. Every process rejects the session's access and refresh tokens, normally before
    the response is sent.
    """
    admin_id, session_id = request.admin_and_session_ids
    await operations.log_out(
        tx,
        request.actor,
        admin_id=admin_id,
        session_id=session_id,
        sessions=request.services.authenticator.sessions,
    )


@endpoints.get("/me", access=_ANY_ADMIN, enrolls=True, objects=ObjectAccess.OWN, owners=OWN_USER)
async def get_me(request: RequestContext) -> Me:
    """Get the authenticated admin."""
    admin_id, _ = request.admin_and_session_ids
    services, factors = request.services, request.services.authenticator.factors
    return model.to_me(
        await queries.get(services.database, admin_id),
        await factors.list_enrolled(admin_id),
        await factors.count_recovery_codes(admin_id),
    )


async def _describe_creation(request: GuardedRequest, body: NewAdmin) -> Proposal:
    return Proposal(
        operations=(Operation.ADMIN_USERS,), summary=f"Create admin {body.name} as {body.role}"
    )


async def describe_change(
    request: GuardedRequest, id: int, body: AdminChanges | None = None
) -> Proposal | None:
    """Describe a request that gives an admin rights, or access to the admin's account."""
    admin = model.to_record(await queries.get(request.services.database, id))
    changes_access = body is None or body.role not in (None, admin.role)
    if changes_access and id == request.principal.admin_id:
        return None  # always rejected
    verb = request.path.rpartition("/")[2].replace("-", " ").capitalize()
    return Proposal(
        operations=(Operation.ADMIN_USERS,),
        summary=f"Change admin {admin.name}" if body is not None else f"{verb} admin {admin.name}",
        resource_id=admin.id,
        before=msgspec.to_builtins(admin),
    )


async def _hash_password(request: GuardedRequest, body: NewAdmin) -> str:
    if request.principal.owner is not None and body.role not in OWNER_TYPES:
        raise ApiError(
            Code.FORBIDDEN,
            "You can only create users of your own company.",
            details={"required": [AdminRole.SYSTEM_ADMIN]},
        )
    services, passwords = request.services, request.services.authenticator.passwords
    if body.password is None:
        return await passwords.hash_unknown()
    personal = (body.email, body.name)
    await model.require_strong_password(services.settings, body.password, personal)
    return await passwords.hash(body.password)


@endpoints.post(
    "/users",
    access=_SYSTEM_ADMIN,
    status=201,
    step_up=True,
    guard=Guard(_describe_creation, Operation.ADMIN_USERS),
    prepare=_hash_password,
    requires=(model.require_role_owner,),
    errors=(
        Code.DUPLICATE_EMAIL,
        Code.PROCESSOR_NOT_FOUND,
        Code.PARTNER_NOT_FOUND,
        Code.AGENT_NOT_FOUND,
    ),
    objects=ObjectAccess.NO_OBJECT,
    owners=OwnerAccess(binding=Binding.BODY, roles="M", parameter="owner_id", key_roles=""),
)
async def create_admin(
    request: GuardedRequest, tx: Transaction, body: NewAdmin, prepared: str
) -> NewAdminRecord:
    """Create an admin.

    Without `password`, the response contains an `invitation`: a link with which the admin sets a
    password that no one else knows. It works once and expires after three days. `link_seen_by` then
    has your ID, and the ID of the approver if the request needed an approval. Each of you may be
    the new admin, so neither of you and the new admin can approve each other's requests until a
    third admin confirms the account.

    The password must have 12 to 255 characters of any kind and must not be the email address or the
    name. In staging and production it must also be hard to guess: common passwords, names, dates,
    repetitions and keyboard patterns are rejected, and several unrelated words are accepted. If an
    approval rule holds the request, the password is not stored.

    The role determines what the admin may do. `system_admin` has full access. `compliance_user`
    covers alerts, rules and blocking. `support_user` covers read access and basic support.
    `finance_user` covers transactions and funding.

    `merchant_manager` and `merchant_cashier` (of a processor), `partner_user` and `agent_user`
    require the `owner_id`, and see and change only data of this owner. A merchant_manager
    can create managers and cashiers of the manager's processor. The creator, also with
    a `password`, is in `link_seen_by` and may be the user until a third admin confirms the account.
    """
    services = request.services
    owner = None if body.owner_id is None else parse_owner(body.owner_id)
    fields = {"email": body.email, "name": body.name, "role": body.role}
    makers = services.guarded_roles
    if body.password is not None:
        row = await operations.create(
            tx,
            request.actor,
            **fields,
            password_hash=prepared,
            makers=makers,
            owner=owner,
            creator_id=_get_maker(request),
        )
        return model.to_new_record(row)
    row, invitation = await operations.invite(
        tx,
        request.actor,
        **fields,
        unusable_hash=prepared,
        makers=makers,
        linked_to=[_get_link_viewer(request), _get_maker(request)],
        invitations=services.authenticator.invitations,
        owner=owner,
    )
    return model.to_new_record(row, invitation)


@endpoints.get(
    "/users",
    access=_SYSTEM_ADMIN,
    owners=OwnerAccess(binding=Binding.LIST, roles="M", rows=USERS, key_roles=""),
)
async def list_admins(request: RequestContext, query: AdminFilters) -> Page[Admin]:
    """List admins.

    Newest first, including disabled admins. A merchant_manager gets the users of the manager's
    processor.
    """
    rows = await queries.list_page(request.services.database, query, request.owner_view)
    return paginate(rows, query, model.to_record, itemgetter("id"))


@endpoints.get("/users/{id}", access=_SYSTEM_ADMIN)
async def get_admin(request: RequestContext, id: AdminId) -> AdminDetails:
    """Get an admin.

    With the newest 20 sessions that have not ended, and the expiry of an unused link.
    """
    services, factors = request.services, request.services.authenticator.factors
    _, current_id = request.admin_and_session_ids
    sessions = await list_sessions(
        services.database,
        PageQuery(limit=_SHOWN_SESSIONS),
        id,
        sessions=services.authenticator.sessions,
    )
    return model.to_details(
        await queries.get(services.database, id),
        recovery_codes=await factors.count_recovery_codes(id),
        invitation_expires_at=await queries.get_link_expiry(services.database, id),
        sessions=[model.to_session_record(row, current_id) for row in sessions[:_SHOWN_SESSIONS]],
    )


@endpoints.put(
    "/users/{id}",
    access=_SYSTEM_ADMIN,
    step_up=True,
    guard=Guard(describe_change, Operation.ADMIN_USERS),
)
async def update_admin(
    request: GuardedRequest, tx: Transaction, id: AdminId, body: AdminChanges
) -> Admin:
    """Change an admin's name or role.

    A new role ends all of the admin's sessions. You cannot change your own role (403). If too few
    people could then approve requests under an approval rule, the change fails with 422.
    """
    services = request.services
    row = await operations.update(
        tx,
        request.actor,
        id,
        body,
        makers=services.guarded_roles,
        sessions=services.authenticator.sessions,
    )
    return model.to_record(row)


@endpoints.post(
    "/users/{id}/reset-factors",
    access=_SYSTEM_ADMIN,
    step_up=True,
    guard=Guard(describe_change, Operation.ADMIN_USERS),
)
async def reset_factors(request: GuardedRequest, tx: Transaction, id: AdminId) -> Admin:
    """Remove an admin's second factors.

    For an admin who has lost them. All of the admin's sessions end. You cannot reset your own
    (403).
    """
    auth = request.services.authenticator
    row = await operations.reset_factors(
        tx, request.actor, id, factors=auth.factors, sessions=auth.sessions
    )
    return model.to_record(row)


async def _hash_unknown_password(request: GuardedRequest, id: int) -> str:
    return await request.services.authenticator.passwords.hash_unknown()


@endpoints.post(
    "/users/{id}/reset-password",
    access=_SYSTEM_ADMIN,
    step_up=True,
    guard=Guard(describe_change, Operation.ADMIN_USERS),
    prepare=_hash_unknown_password,
)
async def reset_password(
    request: GuardedRequest, tx: Transaction, id: AdminId, prepared: str
) -> Invitation:
    """Reset an admin's password.

    The current password stops working and all of the admin's sessions end. The response contains a
    link with which the admin sets a new password. It works once, expires after three days and
    replaces earlier links. Second factors remain. An admin of single sign-on then has a password
    instead. You cannot reset your own password (403).

    You may be one person with the admin then, so you cannot approve each other's requests until a
    third admin confirms the account. If too few people could then approve requests under an
    approval rule, the reset fails with 422.
    """
    auth = request.services.authenticator
    return await operations.reset_password(
        tx,
        request.actor,
        id,
        unusable_hash=prepared,
        makers=request.services.guarded_roles,
        linked_to=[_get_link_viewer(request)],
        invitations=auth.invitations,
        sessions=auth.sessions,
    )


@endpoints.post(
    "/invitations/accept", access=_PUBLIC, errors=(Code.NOT_FOUND,), objects=ObjectAccess.LINK
)
async def accept_invitation(request: RequestContext, body: InvitationAcceptance) -> None:
    """Set a password with an invitation link.

    `token` is the part of the link after `#`. The link then no longer works. Log in with the new
    password, and with the second factor if one is enrolled.
    """
    services, auth = request.services, request.services.authenticator
    admin = await auth.invitations.find(body.token, services.clock())
    if admin is None:
        raise operations.build_invalid_invitation_error()
    personal = (admin["email"], admin["name"])
    await model.require_strong_password(services.settings, body.password, personal)
    password_hash = await auth.passwords.hash(body.password, request.ip)
    async with services.transaction() as tx:
        await operations.accept_invitation(
            tx,
            request.actor,
            body.token,
            password_hash=password_hash,
            invitations=auth.invitations,
            sessions=auth.sessions,
        )


@endpoints.get("/users/{id}/offboarding", access=_SYSTEM_ADMIN)
async def get_offboarding(request: RequestContext, id: AdminId) -> Offboarding:
    """Get what to do before you disable an admin.

    `api_keys`, `signing_keys`, `webhook_endpoints` and `partners` (webhook secrets) list the valid
    secrets that the admin has received, by creating or rotating them, newest first and at most 100
    of each. The admin may have a copy: rotate or delete them. `scarce_approvers` lists the approval
    rules that would have no spare approver without the admin. With fewer people than a rule
    requires, disabling the admin fails with 422.
    """
    services = request.services
    await queries.get(services.database, id)
    keys, now = services.authenticator.api_keys, services.clock()
    secrets = await load_known_secrets(services.database, keys, id, now)
    counts = await load_approver_counts(services.database, services.guarded_roles, without=id)
    return model.to_offboarding(secrets, counts)


@endpoints.post(
    "/users/{id}/disable",
    access=_SYSTEM_ADMIN,
    errors=(Code.ALREADY_BLOCKED,),
    step_up=True,
    unguarded=Unguarded.TAKES_RIGHTS,
    owners=_OWN_USER_ROW,
)
async def disable_admin(request: RequestContext, tx: Transaction, id: AdminId) -> Admin:
    """Disable an admin.

    The admin can no longer log in. All of the admin's sessions end, in every process and normally
    before the response is sent. Disabling yourself or the last active `system_admin` fails with
    403. If too few people could then approve requests under an approval rule, it fails with 422,
    and `details.missing` lists the operations.

    A merchant's user that a merchant_manager has disabled can be disabled again by the platform:
    then only the platform can enable the user. The platform can use the email address of a disabled
    user of a merchant, partner or agent for a new account.
    """
    services, auth = request.services, request.services.authenticator
    row = await operations.disable(
        tx,
        request.actor,
        id,
        makers=services.guarded_roles,
        sessions=auth.sessions,
        invitations=auth.invitations,
    )
    return model.to_record(row)


@endpoints.post(
    "/users/{id}/enable",
    access=_SYSTEM_ADMIN,
    step_up=True,
    guard=Guard(describe_change, Operation.ADMIN_USERS),
    errors=(Code.NOT_BLOCKED, Code.DUPLICATE_EMAIL),
    owners=_OWN_USER_ROW,
)
async def enable_admin(request: GuardedRequest, tx: Transaction, id: AdminId) -> Admin:
    """Enable a disabled admin.

    The password is unchanged. Ended sessions are not restored. A merchant_manager cannot enable a
    user that the platform has disabled (403). A user whose email address belongs to a newer account
    cannot be enabled (409).
    """
    row = await operations.enable(tx, request.actor, id, makers=request.services.guarded_roles)
    return model.to_record(row)


@endpoints.post(
    "/users/{id}/confirm",
    access=_SYSTEM_ADMIN,
    errors=(Code.VALIDATION_FAILED,),
    step_up=True,
    unguarded=Unguarded.DECISION,
)
async def confirm_admin(request: RequestContext, tx: Transaction, id: AdminId) -> Admin:
    """Confirm that an account belongs to its admin.

    For an account whose invitation or reset link other admins may have had (`link_seen_by`). Check
    with the person first. The account and these admins can then approve each other's requests. Only
    a third admin can confirm: not the admin, not one of these admins and, once approval rules
    exist, not an admin who may be one of them because of another link (403). Before the link was
    used, confirming fails with 422: reset the password if it has expired.
    """
    return model.to_record(await operations.confirm(tx, request.actor, id))


def _get_link_viewer(request: GuardedRequest) -> int:
    """Return the admin who receives the link in the response, never an approval's maker."""
    if request.approval is not None:
        return request.approval.executed_by
    return _get_maker(request)


def _get_maker(request: GuardedRequest) -> int:
    """Return the admin who makes the request, also if another admin approved it."""
    assert request.principal.admin_id is not None
    return request.principal.admin_id


def get_origin(request: RequestContext, *, is_sso: bool = False) -> SessionOrigin:
    return SessionOrigin(
        ip=request.ip,
        user_agent=request.get_header(b"user-agent"),
        is_console=request.is_console,
        is_sso=is_sso,
    )
