"""Audit entries, written in the same database transaction as the change they describe."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tapgate.auth.actors import Actor
from tapgate.core.secret_names import is_secret_name
from tapgate.events.audit.entry import MASK
from tapgate.runtime.store.rows import insert_values
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.schemas.audit import AuditResult

#: field name -> (old value, new value)
Changes = Mapping[str, tuple[Any, Any]]

#: `updated_at` always differs, and the audit entry has its own timestamp.
_IGNORED_FIELDS = frozenset({"updated_at"})


async def record(
    tx: Transaction,
    actor: Actor,
    *,
    event: str,
    resource_type: str,
    resource_id: str | None,
    result: str = AuditResult.SUCCESS,
    reason: str | None = None,
    changes: Changes | None = None,
) -> None:
    """Add an entry that commits or rolls back together with `tx`.

    `event` is `resource.action`, and `resource_id` is the resource's public ID. Callers must
    not pass secrets. As a safeguard, a value whose field name indicates a secret is masked.
    """
    masked_changes = {
        field: [_mask(field, old), _mask(field, new)]
        for field, (old, new) in (changes or {}).items()
    }
    await insert_values(
        tx,
        "audit_entries",
        id=tx.new_id(),
        occurred_at=tx.now(),
        event=event,
        actor=actor.record,
        resource_type=resource_type,
        resource_id=resource_id,
        result=result,
        reason=reason,
        changes=masked_changes,
        ip=actor.ip,
        request_id=actor.request_id,
    )


class AuditTrail:
    """Writes audit entries about one resource type."""

    def __init__(self, resource_type: str) -> None:
        self._resource_type = resource_type

    async def record(
        self,
        tx: Transaction,
        actor: Actor,
        resource_id: str | None,
        action: str,
        *,
        result: str = AuditResult.SUCCESS,
        reason: str | None = None,
        changes: Changes | None = None,
    ) -> None:
        """Record an action. `resource_id` is None if the action concerns no single resource."""
        await record(
            tx,
            actor,
            event=f"{self._resource_type}.{action}",
            resource_type=self._resource_type,
            resource_id=resource_id,
            result=result,
            reason=reason,
            changes=changes,
        )

    async def record_change(
        self,
        tx: Transaction,
        actor: Actor,
        resource_id: str,
        action: str,
        before: msgspec.Struct,
        after: msgspec.Struct,
        *,
        reason: str | None = None,
    ) -> None:
        """Record an action with the fields that differ between two public resource records."""
        changes = diff_records(before, after)
        await self.record(tx, actor, resource_id, action, reason=reason, changes=changes)


def diff_records(before: msgspec.Struct | None, after: msgspec.Struct | None) -> Changes:
    """Return the fields that differ, with their old and new values.

    The arguments are public records, so the log uses the API's field names and formats. If a record
    does not exist before or after the change, its fields are None, as are fields that it omits.
    """
    record = after if before is None else before
    assert record is not None
    return {
        field: (old, new)
        for field in record.__struct_fields__
        if field not in _IGNORED_FIELDS
        and (old := _get_value(before, field)) != (new := _get_value(after, field))
    }


def _get_value(record: msgspec.Struct | None, field: str) -> Any:
    value = getattr(record, field, None)
    return None if value is msgspec.UNSET else value


def _mask(name: str, value: Any) -> Any:
    """Mask a value, or its nested values, if the field name indicates a secret."""
    if value is None:
        return None
    if is_secret_name(name):
        return MASK
    if isinstance(value, Mapping):
        return {key: _mask(key, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mask(name, item) for item in value]
    return value
