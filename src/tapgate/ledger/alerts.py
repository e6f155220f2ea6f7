"""Compliance alerts, written in the database transaction that records what triggered them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from tapgate.core.id_generator import IdGenerator
from tapgate.ledger.rules.compliance import RuleMatch
from tapgate_client.schemas.compliance import RuleSubject, Severity

_INSERT_ALERTS: Final = """
    INSERT INTO alerts (id, subscriber_id, agent_id, transaction_id, rule_id, alert_type, severity,
                        details, occurrences, review, created_at, updated_at)
    SELECT new.*, $10::boolean, $11::timestamptz, $11::timestamptz
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[],
                $7::text[], $8::jsonb[], $9::integer[]) AS new """
_INSERT_PER_TRANSACTION: Final = (
    _INSERT_ALERTS + "ON CONFLICT (transaction_id) WHERE review DO NOTHING RETURNING id"
)
_ADD_OCCURRENCES: Final = """status IN ('open', 'investigating') AND NOT review
         DO UPDATE SET occurrences = alerts.occurrences + EXCLUDED.occurrences,
             details = EXCLUDED.details,
             transaction_id = coalesce(EXCLUDED.transaction_id, alerts.transaction_id),
             updated_at = EXCLUDED.updated_at
         RETURNING id"""
# ON CONFLICT accepts one unique index, and subscribers and agents have one each.
_UPSERT_PER_SUBSCRIBER: Final = (
    f"{_INSERT_ALERTS} ON CONFLICT (rule_id, subscriber_id) WHERE {_ADD_OCCURRENCES}"
)
_UPSERT_PER_AGENT: Final = (
    f"{_INSERT_ALERTS} ON CONFLICT (rule_id, agent_id)"
    f" WHERE agent_id IS NOT NULL AND {_ADD_OCCURRENCES}"
)
#: Alerts without a rule. If $9 is set, the first details with this field remain.
_UPSERT_PER_KEY: Final = """
    INSERT INTO alerts (id, subscriber_id, alert_type, severity, details, occurrences, open_key,
                        created_at, updated_at)
    SELECT new.id, new.subscriber_id, $6, $7, new.details, new.occurrences, new.open_key, $8, $8
    FROM unnest($1::bigint[], $2::bigint[], $3::jsonb[], $4::integer[], $5::text[])
      AS new (id, subscriber_id, details, occurrences, open_key)
    ON CONFLICT (alert_type, open_key)
        WHERE status IN ('open', 'investigating') AND NOT review AND open_key IS NOT NULL
    DO UPDATE SET occurrences = alerts.occurrences + EXCLUDED.occurrences,
        details = CASE WHEN $9::text IS NULL
                         OR (EXCLUDED.details ? $9 AND NOT alerts.details ? $9)
                       THEN EXCLUDED.details ELSE alerts.details END,
        updated_at = EXCLUDED.updated_at
    RETURNING id"""


class KeyedAlert(NamedTuple):
    """Alert without a rule. Each type and key has at most one unresolved alert."""

    open_key: str
    subscriber_id: int | None
    details: dict[str, Any]
    occurrences: int = 1


class _PendingAlert(NamedTuple):
    match: RuleMatch  # the latest match, or a held transaction's first match
    occurrences: int


async def raise_alerts(
    tx: Any, matches: Iterable[RuleMatch], now: datetime, new_id: IdGenerator
) -> list[int]:
    """Write the alerts for rule matches and return the new alerts' IDs.

    Each rule and subject has at most one unresolved alert, and further matches are added to it. A
    transaction held for review gets a separate alert, for the first rule that requires review.
    """
    reviews: dict[int | None, _PendingAlert] = {}
    others: dict[tuple[int, int], _PendingAlert] = {}
    for match in matches:
        if match.needs_review:
            reviews.setdefault(match.transaction_id, _PendingAlert(match, 1))
        else:
            subject = (match.rule.id, match.subject_id)
            others[subject] = _add_occurrence(others.get(subject), match)
    agents = [alert for alert in others.values() if _is_about_agent(alert.match)]
    subscribers = [alert for alert in others.values() if not _is_about_agent(alert.match)]
    return [
        *await _write_alerts(tx, _INSERT_PER_TRANSACTION, list(reviews.values()), now, new_id),
        *await _write_alerts(tx, _UPSERT_PER_SUBSCRIBER, subscribers, now, new_id),
        *await _write_alerts(tx, _UPSERT_PER_AGENT, agents, now, new_id),
    ]


async def raise_keyed_alerts(
    tx: Any,
    alert_type: str,
    alerts: Iterable[KeyedAlert],
    now: datetime,
    new_id: IdGenerator,
    *,
    decisive_field: str | None = None,
) -> dict[str, int]:
    """Write alerts of high severity and return the new alerts' IDs by key.

    A further alert adds its occurrences to the unresolved one and replaces its details. With
    `decisive_field`, it replaces them only if it is the first whose details have this field.
    """
    # Sorted, so that batches that update the same alerts do not deadlock.
    ordered = sorted(alerts, key=lambda alert: alert.open_key)
    new_ids = [new_id() for _ in ordered]
    rows = await tx.fetch(
        _UPSERT_PER_KEY,
        new_ids,
        [alert.subscriber_id for alert in ordered],
        [alert.details for alert in ordered],
        [alert.occurrences for alert in ordered],
        [alert.open_key for alert in ordered],
        alert_type,
        Severity.HIGH,
        now,
        decisive_field,
    )
    written = {row["id"] for row in rows}
    return {
        alert.open_key: alert_id
        for alert, alert_id in zip(ordered, new_ids, strict=True)
        if alert_id in written
    }


def _add_occurrence(earlier: _PendingAlert | None, match: RuleMatch) -> _PendingAlert:
    if earlier is None:
        return _PendingAlert(match, 1)
    if match.transaction_id is None:
        match = match._replace(transaction_id=earlier.match.transaction_id)
    return _PendingAlert(match, earlier.occurrences + 1)


async def _write_alerts(
    tx: Any, sql: str, alerts: Sequence[_PendingAlert], now: datetime, new_id: IdGenerator
) -> list[int]:
    if not alerts:
        return []
    new_ids = [new_id() for _ in alerts]
    matches = [alert.match for alert in alerts]
    rows = await tx.fetch(
        sql,
        new_ids,
        [None if _is_about_agent(match) else match.subject_id for match in matches],
        [match.subject_id if _is_about_agent(match) else None for match in matches],
        [match.transaction_id for match in matches],
        [match.rule.id for match in matches],
        [match.rule.type for match in matches],
        [match.rule.severity for match in matches],
        [match.details for match in matches],
        [alert.occurrences for alert in alerts],
        matches[0].needs_review,
        now,
    )
    written = {row["id"] for row in rows}
    return [alert_id for alert_id in new_ids if alert_id in written]


def _is_about_agent(match: RuleMatch) -> bool:
    return match.rule.subject == RuleSubject.AGENT
