"""Access to the gateway's endpoints by credential."""

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from typing import Any, Literal

import msgspec

from tapgate.auth.principals import Principal
from tapgate.http.endpoint import Endpoint
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.admin import AdminRole

ROLES_BY_LETTER: Mapping[str, str] = {
    "A": AdminRole.SYSTEM_ADMIN,
    "C": AdminRole.COMPLIANCE_USER,
    "S": AdminRole.SUPPORT_USER,
    "F": AdminRole.FINANCE_USER,
}

_HMAC_BY_KIND = {"processor": "pos", "partner": "partner"}


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """The credentials that an endpoint or field accepts. Each of them grants access.

    A public endpoint requires no credential.
    """

    public: bool = False
    scope: str | None = None
    roles: str = ""
    service: bool = False
    hmac: Literal["pos", "partner"] | None = None
    #: Only users and API keys of a processor, partner or agent, which `owners=` declares.
    owners: bool = False

    def __post_init__(self) -> None:
        has_callers = bool(self.scope or self.roles or self.service or self.hmac or self.owners)
        if self.public == has_callers:
            raise TypeError("an endpoint is either public or declares its callers")
        unknown = set(self.roles) - set(ROLES_BY_LETTER)
        if unknown:
            raise TypeError(f"unknown roles: {unknown}")

    @property
    def role_names(self) -> frozenset[str]:
        return _get_role_names(self.roles)

    def get_rejection(self, principal: Principal) -> ApiError | None:
        """Return why a principal has no access, or None."""
        if self._allows(principal):
            return None
        is_hmac_only = self.hmac and not (self.scope or self.roles or self.service)
        if is_hmac_only and principal.kind not in _HMAC_BY_KIND:
            return ApiError(
                Code.UNAUTHORIZED, "X-API-Key-ID, X-Timestamp and X-Signature are required."
            )
        return ApiError(
            Code.FORBIDDEN,
            "You don't have permission to do this.",
            details={"required": self._list_required_access(principal)},
        )

    def _allows(self, principal: Principal) -> bool:
        if principal.owner is not None:
            return False  # owners have only what `http.api.owner_access` grants
        match principal.kind:
            case "api_key":
                return self.scope is not None and self.scope in principal.scopes
            case "admin":
                return principal.role in self.role_names
            case "service":
                return self.service
            case signer:
                return self.hmac == _HMAC_BY_KIND[signer]

    def _list_required_access(self, principal: Principal) -> list[str]:
        """Return the scopes, roles and signatures that would each grant access.

        For an API key, only the scope is listed if there is one. For an admin, only the roles are
        listed if there are any.
        """
        if principal.kind == "api_key" and self.scope is not None:
            return [self.scope]
        if principal.kind == "admin" and self.role_names:
            return sorted(self.role_names)
        credentials = [self.scope, self.hmac and f"{self.hmac}_signature"]
        service = ["service_signature"] if self.service else []
        service += ["owner"] if self.owners else []
        return (
            [credential for credential in credentials if credential]
            + sorted(self.role_names)
            + service
        )


@cache
def _get_role_names(letters: str) -> frozenset[str]:
    return frozenset(ROLES_BY_LETTER[letter] for letter in letters)


def require_field_access(
    field_access: Mapping[str, Access], principal: Principal, fields: Mapping[str, Any]
) -> None:
    """Raise an error if a principal may not send one of the body's fields."""
    for name, access in field_access.items():
        error = None if fields.get(name) is None else access.get_rejection(principal)
        if error is not None:
            message = f"You don't have permission to set {name}."
            raise ApiError(error.code, message, details=error.details)


def map_access(*groups: Iterable[Endpoint]) -> dict[str, Access]:
    """Return each endpoint's access by endpoint name."""
    return {endpoint.name: endpoint.access for endpoint in chain.from_iterable(groups)}
