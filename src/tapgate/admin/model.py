"""Admins: records, errors and password rules."""

from collections.abc import Mapping, Sequence
from typing import Any

from tapgate import ids
from tapgate.errors import ApiError, invalid_field
from tapgate.password_strength import is_weak_password
from tapgate.schemas.admin import Admin, Me
from tapgate.schemas.records import build_record


def require_strong_password(
    password: str, personal: Sequence[str], *, field: str = "password", strict: bool
) -> None:
    """Reject a password that equals the admin's name or email address, ignoring case.

    With `strict`, as in staging and production, also reject passwords that are easy to guess.
    """
    if password.casefold() in [text.casefold() for text in personal]:
        raise invalid_field(field, "must not be the email address or the name")
    if strict and is_weak_password(password, personal):
        raise invalid_field(field, "must not be easy to guess")


def build_wrong_password_error() -> ApiError:
    return invalid_field("current_password", "is not your current password")


def to_me(row: Mapping[str, Any]) -> Me:
    return build_record(Me, row, id=ids.encode(ids.ADMIN, row["id"]))


def to_record(row: Mapping[str, Any]) -> Admin:
    return build_record(Admin, row, id=ids.encode(ids.ADMIN, row["id"]))
