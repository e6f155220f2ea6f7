"""Taps whose proof is rejected, and the alerts about cards that may have been cloned."""

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple

from tapgate import ids
from tapgate.errors import Code
from tapgate.ids import IdGenerator
from tapgate.ledger.state import RejectedTap
from tapgate.schemas.card_proofs import TapResult
from tapgate.schemas.compliance import Severity

#: Type of the alert. Each card has at most one unresolved alert, to which further taps are added.
CLONE_ALERT_TYPE: Final = "CARD_CLONE_SUSPECTED"
#: Number of taps that are kept for each card.
MAX_TAPS: Final = 100

#: Results of rejected taps by error code.
TAP_RESULTS: Final = {
    Code.CARD_NOT_GENUINE: TapResult.NOT_GENUINE,
    Code.CARD_PROOF_USED: TapResult.USED,
}

_INSERT_TAPS: Final = """
    INSERT INTO card_taps (card_id, id, at, counter, terminal_id, result)
    SELECT new.card_id, new.id, $6, new.counter, new.terminal_id, new.result
    FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::bigint[], $5::text[])
      AS new (card_id, id, counter, terminal_id, result)"""
_DELETE_OLD_TAPS: Final = """
    DELETE FROM card_taps USING unnest($1::bigint[]) AS tapped (card_id)
    WHERE card_taps.card_id = tapped.card_id AND card_taps.id <= (
        SELECT id FROM card_taps AS newer WHERE newer.card_id = tapped.card_id
        ORDER BY id DESC OFFSET $2 LIMIT 1)"""
_UPSERT_ALERTS: Final = """
    INSERT INTO alerts (id, subscriber_id, alert_type, severity, details, occurrences, open_key,
                        created_at, updated_at)
    SELECT new.id, new.subscriber_id, $6, $7, new.details, new.occurrences, new.serial, $8, $8
    FROM unnest($1::bigint[], $2::bigint[], $3::jsonb[], $4::integer[], $5::text[])
      AS new (id, subscriber_id, details, occurrences, serial)
    ON CONFLICT (alert_type, open_key)
        WHERE status IN ('open', 'investigating') AND NOT review AND open_key IS NOT NULL
    DO UPDATE SET occurrences = alerts.occurrences + EXCLUDED.occurrences,
        details = alerts.details || EXCLUDED.details, updated_at = EXCLUDED.updated_at
    RETURNING id"""


class SuspectedClone(NamedTuple):
    """New alert about a card."""

    alert_id: int
    card_id: int


async def store_rejected_taps(
    tx: Any, taps: Sequence[RejectedTap], now: datetime, new_id: IdGenerator
) -> list[SuspectedClone]:
    """Store rejected taps, raise the alerts about their cards, and return the new alerts."""
    if not taps:
        return []
    await tx.execute(
        _INSERT_TAPS,
        [tap.card_id for tap in taps],
        [new_id() for _ in taps],
        [tap.counter for tap in taps],
        [tap.terminal_id and ids.decode(ids.TERMINAL, tap.terminal_id) for tap in taps],
        [TAP_RESULTS[tap.code] for tap in taps],
        now,
    )
    # By serial, so that batches that update the same alerts do not deadlock.
    latest = {tap.card_serial: tap for tap in sorted(taps, key=attrgetter("card_serial"))}
    await tx.execute(_DELETE_OLD_TAPS, [tap.card_id for tap in latest.values()], MAX_TAPS)
    serials = [tap.card_serial for tap in taps]
    alert_ids = [new_id() for _ in latest]
    rows = await tx.fetch(
        _UPSERT_ALERTS,
        alert_ids,
        [tap.subscriber_id for tap in latest.values()],
        [_build_details(tap) for tap in latest.values()],
        [serials.count(serial) for serial in latest],
        list(latest),
        CLONE_ALERT_TYPE,
        Severity.HIGH,
        now,
    )
    written = {row["id"] for row in rows}
    return [
        SuspectedClone(alert_id, tap.card_id)
        for alert_id, tap in zip(alert_ids, latest.values(), strict=True)
        if alert_id in written
    ]


def _build_details(tap: RejectedTap) -> dict[str, Any]:
    details = {
        "card_serial": tap.card_serial,
        "terminal_id": tap.terminal_id,
        "reason": tap.code,
        "counter": tap.counter,
    }
    return {name: value for name, value in details.items() if value is not None}
