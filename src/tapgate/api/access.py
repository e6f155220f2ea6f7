"""Authorization of an authenticated caller for an endpoint."""

from tapgate.api.endpoint import Access
from tapgate.auth.principals import Principal
from tapgate.errors import ApiError, Code

_HMAC_BY_KIND = {"processor": "pos", "partner": "partner"}


class Guard:
    """Access check of an endpoint or field, precomputed because it runs on every request."""

    def __init__(self, access: Access) -> None:
        self._scope = access.scope
        self._roles = access.role_names
        self._allows_service = access.service
        self._hmac = access.hmac
        self._is_hmac_only = access.hmac is not None and not (
            access.scope or access.roles or access.service
        )

    def get_rejection(self, principal: Principal) -> ApiError | None:
        if self._allows(principal):
            return None
        if self._is_hmac_only and principal.kind not in _HMAC_BY_KIND:
            return ApiError(
                Code.UNAUTHORIZED, "X-API-Key-ID, X-Timestamp and X-Signature are required."
            )
        return ApiError(
            Code.FORBIDDEN,
            "You don't have permission to do this.",
            details={"required": self._list_required_access(principal)},
        )

    def _allows(self, principal: Principal) -> bool:
        match principal.kind:
            case "api_key":
                return self._scope is not None and self._scope in principal.scopes
            case "admin":
                return principal.role in self._roles
            case "service":
                return self._allows_service
            case signer:
                return self._hmac == _HMAC_BY_KIND[signer]

    def _list_required_access(self, principal: Principal) -> list[str]:
        """Return the scopes, roles and signatures that would each grant access.

        For an API key, only the scope is listed if there is one. For an admin, only the roles are
        listed if there are any.
        """
        if principal.kind == "api_key" and self._scope is not None:
            return [self._scope]
        if principal.kind == "admin" and self._roles:
            return sorted(self._roles)
        credentials = [self._scope, self._hmac and f"{self._hmac}_signature"]
        service = ["service_signature"] if self._allows_service else []
        return (
            [credential for credential in credentials if credential] + sorted(self._roles) + service
        )
