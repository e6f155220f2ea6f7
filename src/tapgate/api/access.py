"""Authorization of an authenticated caller for an endpoint and its restricted fields."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tapgate.api.endpoint import Access, Endpoint
from tapgate.api.idempotency import require_consistent_idempotency_key
from tapgate.api.request_context import RequestContext
from tapgate.auth.principals import Principal
from tapgate.errors import ApiError, Code
from tapgate.http.client_addresses import get_address_key
from tapgate.http.route import Route

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


class GuardedRoute(Route):
    """Route of the gateway, with its access checks and the limit on expensive reads."""

    def __init__(
        self, endpoint: Endpoint, currency: str, row: int, *, ignores_overload: bool
    ) -> None:
        if endpoint.moves_money:
            requires = (require_consistent_idempotency_key, *endpoint.requires)
            endpoint = msgspec.structs.replace(endpoint, requires=requires)
        super().__init__(endpoint, currency, row, ignores_overload=ignores_overload)
        self._guard = Guard(endpoint.access)
        self._field_guards = {name: Guard(access) for name, access in endpoint.field_access.items()}
        self._heavy = endpoint.heavy

    def get_rejection(self, principal: Principal, field: str | None = None) -> ApiError | None:
        """Return why a principal may not call the endpoint or send one of its fields, or None."""
        error = self._guard.get_rejection(principal)
        if error is None and field in self._field_guards:
            return self._field_guards[field].get_rejection(principal)
        return error

    async def run(self, request: RequestContext, parameters: list[str]) -> Any:
        """Check access to fields, decode the arguments and run the handler."""
        if self._field_guards:
            self._require_field_access(request, _peek_fields(request.body))
        arguments = self._decode_arguments(request, parameters)
        if self._field_guards:
            # Check the decoded body too: its decoder accepts JSON that `_peek_fields` rejects.
            self._require_field_access(request, msgspec.structs.asdict(arguments["body"]))
        if not self._is_heavy(arguments.get("query")):
            return await self._handler(request, **arguments)
        caller = request.caller
        group = get_address_key(request.ip) if caller is None else caller.idempotency_scope
        async with request.services.heavy_read_limit.slot(group):
            return await self._handler(request, **arguments)

    def _is_heavy(self, query: Any) -> bool:
        if isinstance(self._heavy, str):
            return getattr(query, self._heavy) is not None
        return self._heavy

    def _require_field_access(self, request: RequestContext, fields: Mapping[str, Any]) -> None:
        for name, guard in self._field_guards.items():
            error = None if fields.get(name) is None else guard.get_rejection(request.principal)
            if error is not None:
                raise error


def _peek_fields(body: bytes) -> Mapping[str, Any]:
    """Return the fields of a body before validation, or {} if it is not a JSON object.

    Field access is checked on these fields first, so that a caller without access to a field learns
    nothing about its valid values.
    """
    try:
        fields = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}
