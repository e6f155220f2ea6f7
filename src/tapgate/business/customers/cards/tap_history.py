"""Card tap history: accepted and rejected proofs."""

from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from tapgate.auth.terminals import find_terminal_names
from tapgate.business.customers.cards.model import Card
from tapgate.core.id_generator import first_id_at
from tapgate.ledger.card_proofs.proof_verifier import (
    NOT_CONFIRMED_DETAILS,
    ProofResult,
    is_not_confirmed,
)
from tapgate.ledger.card_proofs.rejected_taps import (
    MAX_TAPS,
    SELECT_TAPS,
    build_rejected_tap,
    store_rejected_taps,
)
from tapgate.ledger.effects.batch_events import enqueue_clone_events
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.id_ranges import IdRange, fetch_newest
from tapgate.runtime.store.rows import insert_values
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import clock, ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.card_proofs import CardTapRecord, CardTapResult

#: Transaction context field with the counter from the tap that it consumed.
COUNTER_FIELD: Final = "card_counter"

_SELECT_TRANSACTIONS: Final = f"""
    SELECT created_at, (context ->> '{COUNTER_FIELD}')::integer, context ->> 'terminal_id'
    FROM transactions
    WHERE card_serial = $1 AND context ? '{COUNTER_FIELD}' AND id >= $3 AND id < $4"""


class _Tap(NamedTuple):
    at: datetime
    counter: int | None
    terminal_id: str | None
    result: CardTapResult
    is_repeated: bool = False


async def list_taps(database: Database, card: Card, now: datetime) -> list[CardTapRecord]:
    """Return a card's last taps, newest first. Repeated ones are omitted first."""
    rows = await database.fetch(
        f"SELECT at, counter, terminal_id, result, is_repeated"
        f" FROM ({SELECT_TAPS}) AS tap ORDER BY id DESC",
        [card.id],
    )
    found = [
        _Tap(at, counter, terminal and ids.encode(ids.TERMINAL, terminal), result, is_repeated)
        for at, counter, terminal, result, is_repeated in rows
    ]
    # The account's transactions have an index. An unlinked card's taps have no account.
    sources: list[tuple[str, int | None]] = [("from_account IS NULL AND $2::bigint IS NULL", None)]
    if card.account_id is not None:
        sources.append(("from_account = $2", card.account_id))
    for condition, account_id in sources:
        sql = f"{_SELECT_TRANSACTIONS} AND {condition} ORDER BY id DESC LIMIT $5"
        paid = await fetch_newest(
            partial(_fetch_range, database, sql, card.serial, account_id),
            MAX_TAPS,
            newest=first_id_at(now),
        )
        found += [
            _Tap(at, counter, terminal, CardTapResult.ACCEPTED) for at, counter, terminal in paid
        ]
    found.sort(key=lambda tap: (not tap.is_repeated, tap.at), reverse=True)
    listed = sorted(found[:MAX_TAPS], key=lambda tap: tap.at, reverse=True)
    names = await find_terminal_names(database, (tap.terminal_id for tap in listed))
    return [
        CardTapRecord(
            at=clock.format_rfc3339(tap.at),
            counter=tap.counter,
            terminal_id=tap.terminal_id,
            terminal_name=names.get(tap.terminal_id),
            result=tap.result,
        )
        for tap in listed
    ]


async def _fetch_range(
    database: Database,
    sql: str,
    serial: str,
    account_id: int | None,
    id_range: IdRange,
    limit: int,
) -> list[Any]:
    return await database.fetch(sql, serial, account_id, *id_range, limit)


async def store_accepted(tx: Transaction, card: Card) -> None:
    """Store the tap that a card has consumed last, if no transaction records it."""
    await insert_values(
        tx,
        "card_taps",
        card_id=card.id,
        id=tx.new_id(),
        at=tx.now(),
        counter=card.last_counter,
        result=CardTapResult.ACCEPTED,
    )


async def reject(
    tx: Transaction,
    card: Card | None,
    proof: ProofResult | None,
    code: Code,
    *,
    processor_id: int | None = None,
    terminal_id: str | None = None,
) -> ApiError:
    """Store a rejected tap, raise the alert about its card, and return the error."""
    tap = build_rejected_tap(
        code,
        proof,
        card,
        subscriber_id=None if card is None else card.subscriber_id,
        processor_id=processor_id,
        terminal_id=terminal_id,
    )
    if tap is not None:
        clones = await store_rejected_taps(tx, [tap], tx.now(), tx.new_id)
        await enqueue_clone_events(tx, clones, tx.now(), tx.new_id)
    if card is not None and proof is not None and is_not_confirmed(proof, card):
        return ApiError(code, details=NOT_CONFIRMED_DETAILS)
    return ApiError(code)
