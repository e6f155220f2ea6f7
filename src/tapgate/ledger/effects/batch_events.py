"""A batch's webhook events, enqueued by one statement in its database transaction.

Only the event's type, subject ID and time are stored here. The record is loaded when the event is
first sent. If no webhook endpoint receives any of the batch's events, no statement is executed.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from tapgate.core.id_generator import IdGenerator
from tapgate.ledger import chart
from tapgate.ledger.card_proofs.rejected_taps import SuspectedClone
from tapgate.ledger.decisions.state import Decision, NewTransaction, State, StoredTransaction
from tapgate.ledger.effects.low_float import LowFloat
from tapgate.ledger.rules.loaded_rules import (
    AGENT_FLOAT_LOW,
    ALERT_CREATED,
    CARD_CLONE_SUSPECTED,
    TRANSACTION_REFUNDED,
    TRANSACTION_REVERSED,
)

#: Event about the original transaction, by the type of the transaction that undoes it.
_UNDO_EVENTS: Final[Mapping[str, str]] = {
    chart.REFUND: TRANSACTION_REFUNDED,
    chart.REVERSAL: TRANSACTION_REVERSED,
}

_INSERT_EVENTS: Final = """
    WITH candidates AS (
        SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $5::bigint[], $6::bigint[])
            AS new (id, type, subject_id, payer_id, payee_id)
    ), subscribed AS (
        SELECT candidates.id AS event_id, endpoint.id AS endpoint_id
        FROM candidates JOIN webhook_endpoints endpoint
          ON endpoint.deleted_at IS NULL AND endpoint.status <> 'disabled'
         AND (candidates.type = ANY (endpoint.events) OR '*' = ANY (endpoint.events))
         AND (endpoint.owner_id IS NULL
              OR endpoint.owner_id IN (candidates.subject_id, payer_id, payee_id))
    ), written AS (
        INSERT INTO events (id, type, subject_id, occurred_at)
        SELECT id, type, subject_id, $4 FROM candidates
        WHERE id IN (SELECT event_id FROM subscribed)
    )
    INSERT INTO deliveries (event_id, endpoint_id, next_attempt_at, created_at)
    SELECT event_id, endpoint_id, $4, $4 FROM subscribed ORDER BY event_id"""


class LedgerEvent(NamedTuple):
    type: str
    subject_id: int  # the transaction, alert, agent or card
    #: Holders of a transaction's accounts. A processor's, partner's or agent's webhook endpoint
    #: receives the event only if it is one of them, or the subject.
    payer_id: int | None = None
    payee_id: int | None = None


async def enqueue_events(
    tx: Any,
    state: State,
    decisions: Sequence[Decision],
    new_alerts: Sequence[int],
    low_floats: Sequence[LowFloat],
    clones: Sequence[SuspectedClone],
    new_id: IdGenerator,
) -> None:
    subscribed = state.rules.subscribed_events
    if not subscribed:
        return
    events = [
        event
        for event in _iter_events(state, decisions, new_alerts, low_floats, clones)
        if event.type in subscribed
    ]
    await _insert_events(tx, events, state.now, new_id)


async def enqueue_alert_events(
    tx: Any, new_alerts: Sequence[int], now: datetime, new_id: IdGenerator
) -> None:
    """Enqueue events for alerts that were raised outside a batch."""
    await _insert_events(
        tx, [LedgerEvent(ALERT_CREATED, alert) for alert in new_alerts], now, new_id
    )


async def enqueue_clone_events(
    tx: Any, clones: Sequence[SuspectedClone], now: datetime, new_id: IdGenerator
) -> None:
    """Enqueue events for clones that were suspected outside a batch."""
    await _insert_events(tx, list(_iter_clone_events(clones)), now, new_id)


def _iter_clone_events(clones: Sequence[SuspectedClone]) -> Iterator[LedgerEvent]:
    for clone in clones:
        yield LedgerEvent(ALERT_CREATED, clone.alert_id)
        if clone.card_id is not None:
            yield LedgerEvent(CARD_CLONE_SUSPECTED, clone.card_id)


async def _insert_events(
    tx: Any, events: Sequence[LedgerEvent], now: datetime, new_id: IdGenerator
) -> None:
    if events:
        await tx.execute(
            _INSERT_EVENTS,
            [new_id() for _ in events],
            [event.type for event in events],
            [event.subject_id for event in events],
            now,
            [event.payer_id for event in events],
            [event.payee_id for event in events],
        )


def _iter_events(
    state: State,
    decisions: Sequence[Decision],
    new_alerts: Sequence[int],
    low_floats: Sequence[LowFloat],
    clones: Sequence[SuspectedClone],
) -> Iterator[LedgerEvent]:
    for decision in decisions:
        yield from _iter_transaction_events(state, decision)
    yield from (LedgerEvent(ALERT_CREATED, alert_id) for alert_id in new_alerts)
    yield from (LedgerEvent(AGENT_FLOAT_LOW, low_float.agent_id) for low_float in low_floats)
    yield from _iter_clone_events(clones)


def _iter_transaction_events(state: State, decision: Decision) -> Iterator[LedgerEvent]:
    created, change = decision.transaction, decision.change
    if created is not None:
        holders = _get_holders(state, created)
        yield LedgerEvent(f"transaction.{created.status}", created.id, *holders)
    if change is not None:
        yield LedgerEvent(
            f"transaction.{change.status}" if created is None else _UNDO_EVENTS[created.type],
            change.transaction_id,
            *_get_holders(state, state.transactions.get(change.transaction_id) or created),
        )


def _get_holders(
    state: State, transaction: NewTransaction | StoredTransaction | None
) -> tuple[int | None, int | None]:
    """Return the holders of the payer's and the payee's account."""
    if transaction is None:
        return None, None
    payer, payee = (
        None if account_id is None else state.accounts.get(account_id)
        for account_id in (transaction.from_account, transaction.to_account)
    )
    return (None if payer is None else payer.owner_id), (None if payee is None else payee.owner_id)
