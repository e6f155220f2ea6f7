"""Admins and the API keys they give out: what is asked for, what is shown, what is refused."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from tapgate import clock, ids
from tapgate.credentials.api_keys import ApiKey
from tapgate.edge.endpoint import ROLES
from tapgate.edge.fields import Choice, CompanyEmail, Moment, Password, Rule, TextRule, Unacceptable
from tapgate.errors import ApiError, Code, invalid_field
from tapgate.password_strength import is_weak_password

SYSTEM_ADMIN = ROLES["A"]

#: What an API key may be allowed to do.
SCOPES = (
    "payments:read",
    "payments:write",
    "balance:read",
    "subscribers:read",
    "subscribers:write",
    "cards:read",
    "cards:write",
)


class NotEmpty(Rule):
    """A list that has something in it; what is named twice is kept once."""

    example = ("payments:read", "balance:read")

    def check(self, value: list[str]) -> list[str]:
        if not value:
            raise Unacceptable("must not be empty")
        return list(dict.fromkeys(value))

    def schema(self) -> dict[str, Any]:
        return {"minItems": 1}


class Login(msgspec.Struct, kw_only=True):
    email: CompanyEmail
    password: str


class Refresh(msgspec.Struct, kw_only=True):
    refresh_token: Annotated[str, TextRule(4096)]  # whatever it is, only a known one is good


class NewAdmin(msgspec.Struct, kw_only=True):
    email: CompanyEmail
    password: Password
    name: str
    role: Annotated[str, Choice(*ROLES.values())]


class NewApiKey(msgspec.Struct, kw_only=True):
    name: str
    scopes: Annotated[list[Annotated[str, Choice(*SCOPES)]], NotEmpty()]
    expires_at: Moment | None = None


class Me(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    email: str
    name: str
    role: str
    created_at: str
    last_login_at: str | None


class Admin(Me, frozen=True, kw_only=True):
    status: str


class ShownApiKey(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    scopes: list[str]
    prefix: str
    expires_at: str | None
    created_at: str


class CreatedApiKey(ShownApiKey, frozen=True, kw_only=True):
    """The only time that the key itself is shown."""

    key: str


def require_strong_password(new: NewAdmin, *, strict: bool) -> None:
    """Refuse a password that is the admin's own name or e-mail address and, where `strict`, one
    that is easy to guess. Development accepts what the interface accepts: twelve characters."""
    personal = (new.email, new.name)
    if new.password.casefold() in [text.casefold() for text in personal]:
        raise invalid_field("password", "must not be the e-mail address or the name")
    if strict and is_weak_password(new.password, personal):
        raise invalid_field("password", "must not be easy to guess")


def no_such_admin() -> ApiError:
    return ApiError(Code.NOT_FOUND, "There is no such admin")


def no_such_key() -> ApiError:
    return ApiError(Code.NOT_FOUND, "There is no such API key")


def me(row: Mapping[str, Any]) -> Me:
    return Me(**_person(row))


def admin(row: Mapping[str, Any]) -> Admin:
    return Admin(**_person(row), status=row["status"])


def shown_key(key: ApiKey) -> ShownApiKey:
    return ShownApiKey(**_key_facts(key))


def created_key(key: ApiKey, secret: str) -> CreatedApiKey:
    return CreatedApiKey(**_key_facts(key), key=secret)


def _person(row: Mapping[str, Any]) -> dict[str, Any]:
    seen = row["last_login_at"]
    return {
        "id": ids.show(ids.ADMIN, row["id"]),
        "email": row["email"],
        "name": row["name"],
        "role": row["role"],
        "created_at": clock.rfc3339(row["created_at"]),
        "last_login_at": None if seen is None else clock.rfc3339(seen),
    }


def _key_facts(key: ApiKey) -> dict[str, Any]:
    return {
        "id": ids.show(ids.KEY, key.id),
        "name": key.name,
        "scopes": key.scopes,
        "prefix": key.prefix,
        "expires_at": None if key.expires_at is None else clock.rfc3339(key.expires_at),
        "created_at": clock.rfc3339(key.created_at),
    }
