"""SQL queries for alerts."""

from collections.abc import Collection
from typing import Final

from tapgate.business.compliance.alerts.model import Alert, to_record
from tapgate.core.records import NOT_FOUND_CODES
from tapgate.http.api.services import Services
from tapgate.ledger.card_proofs.rejected_taps import CLONE_ALERT_TYPE
from tapgate.runtime.store.conditions import PageConditions
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.rows import update_row
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code, require_found
from tapgate_client.schemas.compliance import AlertFilters, AlertRecord, NewAlert, Severity

_COLUMNS: Final = """id, subscriber_id, transaction_id, rule_id, alert_type, severity, status,
    review, details, occurrences, assignee,
    (SELECT name FROM admins WHERE admins.id = alerts.assignee) AS assignee_name,
    investigation_notes, resolution_notes, resolved_by, resolved_at, created_at, updated_at"""
_SELECT: Final = f"SELECT {_COLUMNS} FROM alerts"
#: Alerts about clones, whose `open_key` is the card's serial.
_IS_OPEN_CLONE_ALERT: Final = f"""alert_type = '{CLONE_ALERT_TYPE}'
    AND status IN ('open', 'investigating') AND NOT review"""


async def get(reader: Database | Transaction, alert_id: int, *, for_update: bool = False) -> Alert:
    lock = "FOR UPDATE" if for_update else ""
    row = await reader.fetchrow(f"{_SELECT} WHERE id = $1 {lock}", alert_id)
    return Alert(**require_found(row, Code.ALERT_NOT_FOUND))


async def load_records(services: Services, alert_ids: Collection[int]) -> dict[int, AlertRecord]:
    """Return alert API records by id, for event data."""
    rows = await services.database.fetch(
        f"{_SELECT} WHERE id = ANY ($1::bigint[])", list(alert_ids)
    )
    return {row["id"]: to_record(Alert(**row)) for row in rows}


async def list_page(database: Database, filters: AlertFilters) -> list[Alert]:
    conditions = PageConditions(filters)
    conditions.where("status = {}", filters.status)
    conditions.where("severity = {}", filters.severity)
    if filters.card_serial is not None:
        conditions.add(_IS_OPEN_CLONE_ALERT)
        conditions.where("open_key = {}", filters.card_serial)
    conditions.where_id("subscriber_id", ids.SUBSCRIBER, filters.subscriber_id)
    conditions.where_id("transaction_id", ids.TRANSACTION, filters.transaction_id)
    conditions.where_assignee("assignee", filters.assignee)
    if filters.held:
        conditions.add("review AND status IN ('open', 'investigating')")
    elif filters.held is False:
        conditions.add("NOT review")
    return [Alert(**row) for row in await conditions.fetch(database, _SELECT)]


async def _require_existing(
    tx: Transaction, table: str, prefix: str, public_id: str | None
) -> int | None:
    if public_id is None:
        return None
    row_id = ids.decode(prefix, public_id)
    if not await tx.fetchval(f"SELECT EXISTS (SELECT FROM {table} WHERE id = $1)", row_id):
        raise ApiError(NOT_FOUND_CODES[prefix])
    return row_id


#: Conflict targets that identify a repeat of an unresolved alert.
_SAME_RULE: Final = "(rule_id, subscriber_id) WHERE status IN ('open', 'investigating')"
_SAME_KEY: Final = (
    "(alert_type, open_key) WHERE open_key IS NOT NULL AND status IN ('open', 'investigating')"
)


async def add(tx: Transaction, alert_id: int, new: NewAlert, open_key: str | None = None) -> Alert:
    """Insert an alert, or count another occurrence if a matching one is unresolved; return it.

    An alert matches if it has the same type and open key or, if `open_key` is None, the same rule
    and subscriber. An alert that holds a transaction never matches. A new occurrence replaces the
    details and can raise the severity, but never lowers it.
    """
    row = await tx.fetchrow(
        f"""INSERT INTO alerts (id, subscriber_id, transaction_id, rule_id, alert_type, severity,
                                details, created_at, updated_at, open_key)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $10)
            ON CONFLICT {_SAME_RULE if open_key is None else _SAME_KEY} AND NOT review
            DO UPDATE SET occurrences = alerts.occurrences + 1, details = EXCLUDED.details,
                transaction_id = coalesce(EXCLUDED.transaction_id, alerts.transaction_id),
                severity = CASE WHEN array_position($9::text[], EXCLUDED.severity)
                                   > array_position($9::text[], alerts.severity)
                                THEN EXCLUDED.severity ELSE alerts.severity END,
                updated_at = EXCLUDED.updated_at
            RETURNING {_COLUMNS}""",
        alert_id,
        await _require_existing(tx, "subscribers", ids.SUBSCRIBER, new.subscriber_id),
        await _require_existing(tx, "transactions", ids.TRANSACTION, new.transaction_id),
        await _require_existing(tx, "compliance_rules", ids.RULE, new.rule_id),
        new.alert_type,
        new.severity,
        new.details,
        tx.now(),
        list(Severity),
        open_key,
    )
    return Alert(**row)


async def save(tx: Transaction, alert: Alert) -> None:
    """Store the fields that an assignment, investigation or resolution changes.

    The caller must hold the lock on the alert.
    """
    columns = (
        "status", "assignee", "investigation_notes", "resolution_notes", "resolved_by",
        "resolved_at", "updated_at",
    )  # fmt: skip
    await update_row(tx, "alerts", alert, columns)


async def get_transaction_status(tx: Transaction, transaction_id: int | None) -> str | None:
    status: str | None = await tx.fetchval(
        "SELECT status FROM transactions WHERE id = $1", transaction_id
    )
    return status
