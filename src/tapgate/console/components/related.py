"""Records related to the subject of a detail page."""

from collections.abc import Awaitable
from typing import Any, Final

from tapgate.console.page_request import PageRequest

RECENT_LIMIT: Final = 10

_TRANSACTIONS_PATH: Final = "/api/v1/transactions"
_AUDIT_PATH: Final = "/api/v1/audit/logs"
_ALERTS_PATH: Final = "/api/v1/compliance/alerts"


def get_history(request: PageRequest, user_id: str, limit: int = RECENT_LIMIT) -> Awaitable[Any]:
    """Return the newest transactions of an account holder."""
    return request.get(_TRANSACTIONS_PATH, {"user_id": user_id, "limit": limit})


def get_audit(
    request: PageRequest, resource_id: str, limit: int = RECENT_LIMIT, **filters: str
) -> Awaitable[Any]:
    """Return the newest audit entries of a resource, or None if the role has no access."""
    query: dict[str, str | int] = {**filters, "resource_id": resource_id, "limit": limit}
    return request.get_if_allowed(f"GET {_AUDIT_PATH}", _AUDIT_PATH, query)


def get_alerts(request: PageRequest, **filters: str | int) -> Awaitable[Any]:
    """Return the newest alerts that match, or None if the role has no access."""
    return request.get_if_allowed(f"GET {_ALERTS_PATH}", _ALERTS_PATH, filters)
