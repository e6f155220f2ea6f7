"""Admins: records, errors and password rules."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from tapgate.auth.owners import OWNER_TYPES, build_owner, parse_owner
from tapgate.business.approval_rules.people import ApproverCount
from tapgate.business.staff.api_keys import model as api_keys
from tapgate.business.staff.known_secrets import KnownSecrets
from tapgate.core.password_strength import is_breached, is_weak_password
from tapgate.core.records import build_record
from tapgate.core.settings import Settings
from tapgate_client import ids
from tapgate_client.errors import ApiError, invalid_field
from tapgate_client.schemas.account import AdminDetails, SessionRecord
from tapgate_client.schemas.admin import (
    PLATFORM_ROLES,
    Admin,
    Factor,
    Invitation,
    Me,
    NewAdmin,
    NewAdminRecord,
    Offboarding,
    ScarceApprovers,
)

AdminType = TypeVar("AdminType", bound=Admin)


async def require_strong_password(
    settings: Settings, password: str, personal: Sequence[str], *, field: str = "password"
) -> None:
    """Reject a password that equals the admin's name or email address, ignoring case.

    Also reject passwords from the file of breached passwords, if there is one and, in staging and
    production, passwords that are easy to guess.
    """
    if password.casefold() in [text.casefold() for text in personal]:
        raise invalid_field(field, "must not be the email address or the name")
    breached = settings.breached_passwords
    if breached is not None and await asyncio.to_thread(is_breached, password, breached):
        raise invalid_field(field, "must not be known from a data breach")
    if settings.requires_secrets and await asyncio.to_thread(is_weak_password, password, personal):
        raise invalid_field(field, "must not be easy to guess")


def require_role_owner(request: object, body: NewAdmin) -> None:
    """Raise 422 unless the role and the owner's type match.

    Values outside the enum are rejected later, with the message of the field.
    """
    if body.role in PLATFORM_ROLES and body.owner_id is not None:
        raise invalid_field("owner_id", f"must be absent for the role {body.role}")
    owner_type = OWNER_TYPES.get(body.role)
    if owner_type is None:
        return
    if body.owner_id is None:
        raise invalid_field("owner_id", f"is required for the role {body.role}")
    owner = parse_owner(body.owner_id)
    if owner is not None and owner.type != owner_type:
        raise invalid_field("owner_id", f"must be a {owner_type} for the role {body.role}")


def build_wrong_password_error() -> ApiError:
    return invalid_field("current_password", "is not your current password")


def to_me(row: Mapping[str, Any], factors: list[Factor], recovery_codes: int) -> Me:
    return build_record(
        Me,
        row,
        id=ids.encode(ids.ADMIN, row["id"]),
        owner_id=_get_owner_id(row),
        factors=[*factors],
        recovery_codes=recovery_codes,
    )


def to_record(row: Mapping[str, Any]) -> Admin:
    return _build_admin(Admin, row)


def to_session_record(row: Mapping[str, Any], current_id: int | None) -> SessionRecord:
    return build_record(
        SessionRecord,
        row,
        id=ids.encode(ids.SESSION, row["id"]),
        current=row["id"] == current_id,
        console=row["is_console"],
        sso=row["is_sso"],
    )


def to_details(
    row: Mapping[str, Any],
    *,
    recovery_codes: int,
    invitation_expires_at: datetime | None,
    sessions: list[SessionRecord],
) -> AdminDetails:
    return _build_admin(
        AdminDetails,
        {**row, "invitation_expires_at": invitation_expires_at},
        recovery_codes=recovery_codes,
        sessions=sessions,
    )


def _get_owner_id(row: Mapping[str, Any]) -> str | None:
    owner = build_owner(row["owner_type"], row["owner_id"])
    return None if owner is None else owner.public_id


def _build_admin(
    record_type: type[AdminType], row: Mapping[str, Any], /, **fields: object
) -> AdminType:
    return build_record(
        record_type,
        row,
        id=ids.encode(ids.ADMIN, row["id"]),
        owner_id=_get_owner_id(row),
        factors=[Factor(name) for name in row["factors"]],
        link_seen_by=[ids.encode(ids.ADMIN, viewer_id) for viewer_id in row["link_viewers"]],
        **fields,
    )


def to_new_record(row: Mapping[str, Any], invitation: Invitation | None = None) -> NewAdminRecord:
    return _build_admin(
        NewAdminRecord, row, invitation=msgspec.UNSET if invitation is None else invitation
    )


def to_offboarding(secrets: KnownSecrets, counts: Sequence[ApproverCount]) -> Offboarding:
    """Return what to do before an admin is disabled, with the approvers who would remain."""
    return Offboarding(
        api_keys=[api_keys.to_record(key) for key in secrets.api_keys],
        signing_keys=secrets.signing_keys,
        webhook_endpoints=secrets.webhook_endpoints,
        partners=secrets.partners,
        scarce_approvers=[
            ScarceApprovers(
                operation=count.rule.operation,
                roles=list(count.rule.roles),
                approvers=count.rule.approvers,
                available=count.available,
            )
            for count in counts
            if count.maker is not None and count.available <= count.rule.approvers
        ],
    )
