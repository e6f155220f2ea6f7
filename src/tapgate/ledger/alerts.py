"""Alerts about what compliance rules noticed, written with what they noticed."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from tapgate.ids import IdSource
from tapgate.ledger.state import Match

_INSERT: Final = """
    INSERT INTO alerts (id, subscriber_id, transaction_id, rule_id, alert_type, severity, review,
                        details, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9) """
_ONE_PER_TRANSACTION: Final = (
    _INSERT + "ON CONFLICT (transaction_id) WHERE review DO NOTHING RETURNING id"
)
_ONE_PER_SUBJECT: Final = (
    _INSERT
    + """ON CONFLICT (rule_id, subscriber_id)
             WHERE status IN ('open', 'investigating') AND NOT review
         DO UPDATE SET occurrences = alerts.occurrences + 1, details = EXCLUDED.details,
             transaction_id = coalesce(EXCLUDED.transaction_id, alerts.transaction_id),
             updated_at = EXCLUDED.updated_at
         RETURNING id"""
)


async def raise_alerts(
    tx: Any, matches: Iterable[Match], now: datetime, new_id: IdSource
) -> list[int]:
    """One open alert per rule and subject; a further match raises its occurrences. A review has
    an alert for each transaction. Matches are rare, so they may cost a statement each.

    Answers which alerts are new.
    """
    created = []
    for match in matches:
        alert_id = new_id()
        written = await tx.fetchval(
            _ONE_PER_TRANSACTION if match.review else _ONE_PER_SUBJECT,
            alert_id,
            match.subscriber_id,
            match.transaction_id,
            match.rule.id,
            match.rule.type,
            match.rule.severity,
            match.review,
            match.details,
            now,
        )
        if written == alert_id:
            created.append(alert_id)
    return created
