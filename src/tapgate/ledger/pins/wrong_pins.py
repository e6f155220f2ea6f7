"""Wrong PINs per credential: counts that nodes share, and alerts about credentials that guess PINs.

The counts in memory (`ledger/pins/wrong_pin_limit.py`) decide whether a PIN is compared. A wrong
PIN also stores the attempts that its node has counted, and reads the attempts of all nodes. If a
credential has reached the limit across nodes, this node blocks it too. A parallel burst can
therefore reach the limit once on every node. Correct PINs write nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from tapgate.core.id_generator import IdGenerator
from tapgate.ledger.alerts import KeyedAlert, raise_keyed_alerts
from tapgate.ledger.pins.wrong_pin_limit import (
    WINDOW_SECONDS,
    AttemptCount,
    WrongPinLimit,
    get_first_minute,
    to_minute,
)
from tapgate_client import ids

#: Type of the alert. Each credential has at most one unresolved alert.
PIN_GUESSING_ALERT_TYPE: Final = "PIN_GUESSING_SUSPECTED"

_INSERT: Final = """
    INSERT INTO pin_attempts (credential, minute, attempts, wrong)
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::integer[], $4::integer[])"""
_COUNT: Final = """
    SELECT credential, minute, sum(attempts) AS attempts, sum(wrong) AS wrong FROM pin_attempts
    WHERE credential = ANY ($1::text[]) AND minute >= $2 GROUP BY 1, 2"""
_SELECT_KEYS: Final = """
    SELECT id, processor_id, terminal_id FROM hmac_keys WHERE id = ANY ($1::bigint[])"""
_SELECT_TERMINALS: Final = "SELECT id, name FROM terminals WHERE id = ANY ($1::bigint[])"


class WrongPin(NamedTuple):
    """A wrong PIN. `credential` is a public ID: a key's, an admin's, or a phone owner's."""

    credential: str
    terminal_id: str | None = None  # public ID, if the request names the terminal


def get_phone_owner(owner_id: int, *, is_agent: bool) -> str:
    """Return the credential for internal service requests, which are counted per phone."""
    return ids.encode(ids.AGENT if is_agent else ids.SUBSCRIBER, owner_id)


async def record_wrong_pins(
    tx: Any,
    limit: WrongPinLimit,
    wrong_pins: Sequence[WrongPin],
    now: datetime,
    new_id: IdGenerator,
) -> list[int]:
    """Store wrong PINs, block credentials that reach the limit, and return the new alerts' IDs."""
    if not wrong_pins:
        return []
    credentials = sorted({wrong_pin.credential for wrong_pin in wrong_pins})
    await _insert_attempts(tx, limit, wrong_pins, credentials, now)
    counts = defaultdict(list)
    for credential, *count in await tx.fetch(_COUNT, credentials, get_first_minute(now)):
        counts[credential].append(AttemptCount(*count))
    blocked = {}
    for credential in credentials:
        until = limit.find_end(counts[credential])
        if until:
            limit.block(credential, until)
            blocked[credential] = counts[credential]
    return await _raise_alerts(tx, blocked, wrong_pins, now, new_id) if blocked else []


async def _insert_attempts(
    tx: Any,
    limit: WrongPinLimit,
    wrong_pins: Sequence[WrongPin],
    credentials: Iterable[str],
    now: datetime,
) -> None:
    minute, rows = to_minute(now), []
    for credential in credentials:
        wrong = sum(wrong_pin.credential == credential for wrong_pin in wrong_pins)
        attempts = limit.take_unrecorded(credential, now)
        # Another process may have taken this node's attempts, or the row was evicted.
        attempts[minute] = max(attempts.get(minute, 0), wrong)
        rows += [
            (credential, at, count, wrong if at == minute else 0)
            for at, count in attempts.items()
            if count
        ]
    await tx.execute(_INSERT, *map(list, zip(*rows, strict=True)))


async def _raise_alerts(
    tx: Any,
    blocked: dict[str, list[AttemptCount]],
    wrong_pins: Iterable[WrongPin],
    now: datetime,
    new_id: IdGenerator,
) -> list[int]:
    terminals = {
        pin.credential: ids.decode(ids.TERMINAL, pin.terminal_id)
        for pin in wrong_pins
        if pin.terminal_id is not None
    }
    processors: dict[str, int | None] = {}
    key_ids = [ids.decode(ids.KEY, credential) for credential in blocked]
    for row in await tx.fetch(_SELECT_KEYS, key_ids):
        credential = ids.encode(ids.KEY, row["id"])
        processors[credential] = row["processor_id"]
        terminals[credential] = row["terminal_id"] or terminals.get(credential)
    names = dict(await tx.fetch(_SELECT_TERMINALS, list(terminals.values())))
    alerts = [
        KeyedAlert(
            credential,
            ids.decode(ids.SUBSCRIBER, credential),
            _build_details(
                credential, counts, processors.get(credential), terminals.get(credential), names
            ),
        )
        for credential, counts in blocked.items()
    ]
    new = await raise_keyed_alerts(tx, PIN_GUESSING_ALERT_TYPE, alerts, now, new_id)
    return list(new.values())


def _build_details(
    credential: str,
    counts: Iterable[AttemptCount],
    processor_id: int | None,
    terminal_id: int | None,
    terminal_names: Mapping[int, str],
) -> dict[str, Any]:
    details = {
        "credential": credential,
        "processor_id": processor_id and ids.encode(ids.PROCESSOR, processor_id),
        "terminal_id": terminal_id and ids.encode(ids.TERMINAL, terminal_id),
        "terminal_name": terminal_id and terminal_names.get(terminal_id),
        "wrong_pins": sum(count.wrong for count in counts),
        "attempts": sum(count.attempts for count in counts),
        "window_seconds": WINDOW_SECONDS,
    }
    return {name: value for name, value in details.items() if value is not None}
