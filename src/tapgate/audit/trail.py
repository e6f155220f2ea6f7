"""Writes what happened, in the database transaction of what happened."""

from collections.abc import Mapping
from typing import Any, Literal

import asyncpg

from tapgate.audit.entry import MASK
from tapgate.edge.origin import Origin
from tapgate.edge.request_context import RequestContext
from tapgate.edge.services import RejectedRequest, Services
from tapgate.errors import ApiError

Result = Literal["success", "failure", "denied"]
#: field -> (what it was, what it is now)
Changes = Mapping[str, tuple[Any, Any]]

_SECRET_WORDS = frozenset({"pin", "password", "secret", "token", "otp", "key"})
#: What a field is that only speaks about a secret: `key_id`, `pin_locked_until`, `no_pin_limit`.
_NON_SECRET_SUFFIXES = frozenset({"id", "at", "until", "limit", "prefix"})


async def record(
    tx: asyncpg.Connection,
    services: Services,
    origin: Origin,
    *,
    event: str,
    resource_type: str,
    resource_id: str | None,
    result: Result = "success",
    reason: str | None = None,
    changes: Changes | None = None,
) -> None:
    """Adds an entry: it is there if and only if what else `tx` does is.

    `event` is `resource.action`, `resource_id` what clients know the resource by. Secrets have no
    business here; should one be passed under a name that says so, it is masked.
    """
    shown = {
        field: [_mask(field, old), _mask(field, new)]
        for field, (old, new) in (changes or {}).items()
    }
    await tx.execute(
        """INSERT INTO audit_entries (id, occurred_at, event, actor, resource_type, resource_id,
                                      result, reason, changes, ip, request_id)
           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)""",
        services.new_id(),
        services.clock(),
        event,
        origin.actor,
        resource_type,
        resource_id,
        result,
        reason,
        shown,
        origin.ip,
        origin.request_id,
    )


class AuditTrail:
    """The entries about one kind of resource, of what callers do with it."""

    def __init__(self, resource_type: str) -> None:
        self._resource_type = resource_type

    async def record(
        self,
        tx: asyncpg.Connection,
        call: RequestContext,
        resource_id: str | None,
        action: str,
        *,
        result: Result = "success",
        reason: str | None = None,
        changes: Changes | None = None,
    ) -> None:
        """`resource_id` is None for what is done to many at once."""
        await record(
            tx,
            call.services,
            call.origin,
            event=f"{self._resource_type}.{action}",
            resource_type=self._resource_type,
            resource_id=resource_id,
            result=result,
            reason=reason,
            changes=changes,
        )


async def record_denial(services: Services, origin: Origin, endpoint: str, error: ApiError) -> None:
    """Record a 403 FORBIDDEN."""
    await services.rejection_log.record(
        origin,
        RejectedRequest(
            event="access.denied",
            resource_type="endpoint",
            resource_id=endpoint,
            result="denied",
            reason=error.message,
        ),
    )


def _mask(name: str, value: Any) -> Any:
    """The value without anything that its name, or a name inside it, calls a secret."""
    if value is None:
        return None
    if _is_secret(name):
        return MASK
    if isinstance(value, Mapping):
        return {inner: _mask(inner, member) for inner, member in value.items()}
    if isinstance(value, list | tuple):
        return [_mask(name, member) for member in value]
    return value


def _is_secret(name: str) -> bool:
    *_, ending = words = name.lower().split("_")
    return ending not in _NON_SECRET_SUFFIXES and not _SECRET_WORDS.isdisjoint(words)
