"""Endpoint declarations of the gateway: the declarations of `http`, with access by credential."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from tapgate.http.endpoint import MEBIBYTE, Endpoint, Endpoints, Reply
from tapgate.schemas.admin import AdminRole

__all__ = ["MEBIBYTE", "ROLES_BY_LETTER", "Access", "Endpoint", "Endpoints", "Reply"]

ROLES_BY_LETTER: Mapping[str, str] = {
    "A": AdminRole.SYSTEM_ADMIN,
    "C": AdminRole.COMPLIANCE_USER,
    "S": AdminRole.SUPPORT_USER,
    "F": AdminRole.FINANCE_USER,
}


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """The credentials that an endpoint or field accepts, any one of which grants access.

    A public endpoint requires no credential.
    """

    public: bool = False
    scope: str | None = None
    roles: str = ""
    service: bool = False
    hmac: Literal["pos", "partner"] | None = None

    def __post_init__(self) -> None:
        has_callers = bool(self.scope or self.roles or self.service or self.hmac)
        if self.public == has_callers:
            raise TypeError("an endpoint is either public or declares its callers")
        unknown = set(self.roles) - set(ROLES_BY_LETTER)
        if unknown:
            raise TypeError(f"unknown roles: {unknown}")

    @property
    def role_names(self) -> frozenset[str]:
        return frozenset(ROLES_BY_LETTER[letter] for letter in self.roles)
