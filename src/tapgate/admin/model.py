"""Admins: request bodies, records and errors."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from tapgate import clock, ids
from tapgate.api.endpoint import ROLES_BY_LETTER
from tapgate.errors import ApiError, Code, invalid_field
from tapgate.password_strength import is_weak_password
from tapgate.schemas.fields import Choice, CompanyEmail, Password, TextRule

SYSTEM_ADMIN = ROLES_BY_LETTER["A"]
AdminRole = Annotated[str, Choice(*ROLES_BY_LETTER.values(), name="AdminRole")]
AdminStatus = Annotated[str, Choice("active", "disabled", name="AdminStatus")]

SCOPES = (
    "payments:read",
    "payments:write",
    "balance:read",
    "subscribers:read",
    "subscribers:write",
    "cards:read",
    "cards:write",
)


class Login(msgspec.Struct, kw_only=True):
    email: CompanyEmail
    password: str


class Refresh(msgspec.Struct, kw_only=True):
    refresh_token: Annotated[str, TextRule(4096)]  # longer than any issued token


class NewAdmin(msgspec.Struct, kw_only=True):
    email: CompanyEmail
    password: Password
    name: str
    role: AdminRole


class Me(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    email: str
    name: str
    role: AdminRole
    created_at: str
    last_login_at: str | None


class Admin(Me, frozen=True, kw_only=True):
    status: AdminStatus


def require_strong_password(new: NewAdmin, *, strict: bool) -> None:
    """Reject a password that equals the admin's name or email address, ignoring case.

    With `strict`, as in staging and production, also reject passwords that are easy to guess.
    """
    personal = (new.email, new.name)
    if new.password.casefold() in [text.casefold() for text in personal]:
        raise invalid_field("password", "must not be the email address or the name")
    if strict and is_weak_password(new.password, personal):
        raise invalid_field("password", "must not be easy to guess")


def admin_not_found() -> ApiError:
    return ApiError(Code.NOT_FOUND, "No such admin.")


def to_me(row: Mapping[str, Any]) -> Me:
    return Me(**_to_fields(row))


def to_record(row: Mapping[str, Any]) -> Admin:
    return Admin(**_to_fields(row), status=row["status"])


def _to_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    last_login_at = row["last_login_at"]
    return {
        "id": ids.encode(ids.ADMIN, row["id"]),
        "email": row["email"],
        "name": row["name"],
        "role": row["role"],
        "created_at": clock.format_rfc3339(row["created_at"]),
        "last_login_at": None if last_login_at is None else clock.format_rfc3339(last_login_at),
    }
