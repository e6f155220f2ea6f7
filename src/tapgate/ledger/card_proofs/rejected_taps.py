"""Taps whose proof is rejected, and the alerts about cards that may have been cloned.

Everything here is bounded for each processor, so that a POS key's holder can neither hide clone
traces nor raise alerts without limit.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol

from tapgate.core.id_generator import IdGenerator
from tapgate.ledger.alerts import KeyedAlert, raise_keyed_alerts
from tapgate.ledger.card_proofs.proof_verifier import ProofResult, ProvableCard, is_not_confirmed
from tapgate_client import ids
from tapgate_client.errors import Code
from tapgate_client.schemas.card_proofs import CardTapResult

#: Type of the alert. Each card has at most one unresolved alert, to which further taps are added.
#: So has each UID that belongs to no card, and each processor for taps that name no card.
CLONE_ALERT_TYPE: Final = "CARD_CLONE_SUSPECTED"
#: Number of taps that are kept for each card. Repeated taps are removed first.
MAX_TAPS: Final = 100
#: Above these counts per processor, taps are repeated: equal taps, and all taps.
_MAX_EQUAL_TAPS: Final = 5
_MAX_PROCESSOR_TAPS: Final = 20
#: Number of cards per day that a processor can accuse by proofs that name no card.
MAX_UNNAMED_CARDS: Final = 20
_UNNAMED_PERIOD: Final = timedelta(days=1)

#: Rejected tap results by the proof errors that may indicate a cloned card.
TAP_RESULTS: Final = {
    Code.CARD_NOT_GENUINE: CardTapResult.NOT_GENUINE,
    Code.CARD_PROOF_USED: CardTapResult.USED,
}

#: Taps by cards $1, and whether each is repeated.
SELECT_TAPS: Final = f"""
    SELECT card_id, id, at, counter, terminal_id, result,
           number > {_MAX_EQUAL_TAPS} OR (processor_id IS NOT NULL AND row_number() OVER (
               PARTITION BY card_id, processor_id, number > {_MAX_EQUAL_TAPS} ORDER BY id DESC
           ) > {_MAX_PROCESSOR_TAPS}) AS is_repeated
    FROM (SELECT *, row_number() OVER (PARTITION BY card_id, processor_id, counter, result
                                       ORDER BY id DESC) AS number
          FROM card_taps WHERE card_id = ANY ($1::bigint[])) AS numbered"""
_DELETE_TAPS: Final = f"""
    DELETE FROM card_taps USING (
        SELECT card_id, id, row_number() OVER (
                   PARTITION BY card_id ORDER BY is_repeated, id DESC) AS rank
        FROM ({SELECT_TAPS}) AS tap) AS ranked
    WHERE (card_taps.card_id, card_taps.id) = (ranked.card_id, ranked.id) AND rank > {MAX_TAPS}"""
_INSERT_TAPS: Final = """
    INSERT INTO card_taps (card_id, id, at, counter, terminal_id, result, processor_id)
    SELECT new.card_id, new.id, $7, new.counter, new.terminal_id, new.result, new.processor_id
    FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::bigint[], $5::text[], $6::bigint[])
      AS new (card_id, id, counter, terminal_id, result, processor_id)"""
_SELECT_UNNAMED_CARDS: Final = """
    SELECT DISTINCT processor_id, card_id FROM card_taps
    WHERE processor_id = ANY ($1::bigint[]) AND at > $2 AND counter IS NULL"""


class RejectedTap(NamedTuple):
    """Tap whose proof is not genuine or was used before.

    The card is None if neither the proof nor the request names a card that signs its taps.
    """

    code: Code
    processor_id: int | None
    terminal_id: str | None  # public ID
    card_id: int | None = None
    card_serial: str | None = None
    subscriber_id: int | None = None
    counter: int | None = None  # None if the proof does not name the card
    uid: str | None = None  # of a genuine chip that belongs to no card


class SuspectedClone(NamedTuple):
    """New alert. The card is None if the alert is not about a card."""

    alert_id: int
    card_id: int | None


class _TappedCard(ProvableCard, Protocol):
    @property
    def id(self) -> int: ...
    @property
    def serial(self) -> str: ...


def build_rejected_tap(
    code: Code,
    proof: ProofResult | None,
    card: _TappedCard | None,
    *,
    subscriber_id: int | None,
    processor_id: int | None,
    terminal_id: str | None,
) -> RejectedTap | None:
    """Return what is stored about a rejected proof, or None if it does not indicate a clone.

    A processor's proof that does not name the request's card counts against the card only
    if the card signs its taps. Otherwise, any processor could raise alerts about any card.
    """
    if proof is None or code not in TAP_RESULTS:
        return None
    if card is not None and is_not_confirmed(proof, card):
        return None
    tap = RejectedTap(code, processor_id, terminal_id, uid=proof.uid)
    is_named = card is not None and proof.card_serial == card.serial
    is_relevant = is_named or processor_id is None or (card and card.keyset_id is not None)
    if card is None or not is_relevant:
        return tap
    return tap._replace(
        card_id=card.id,
        card_serial=card.serial,
        subscriber_id=subscriber_id,
        counter=proof.counter if is_named else None,
    )


async def store_rejected_taps(
    tx: Any, taps: Sequence[RejectedTap], now: datetime, new_id: IdGenerator
) -> list[SuspectedClone]:
    """Store rejected taps, raise the alerts about their cards, and return the new alerts."""
    if not taps:
        return []
    taps = await _limit_unnamed_cards(tx, taps, now)
    await _insert_taps(tx, [tap for tap in taps if tap.card_id is not None], now, new_id)
    return await _raise_alerts(tx, taps, now, new_id)


async def _limit_unnamed_cards(
    tx: Any, taps: Sequence[RejectedTap], now: datetime
) -> list[RejectedTap]:
    """Remove the card from a tap if the processor has accused too many cards without proof."""
    processor_ids = {tap.processor_id for tap in taps if _is_unnamed(tap)}
    if not processor_ids:
        return list(taps)
    cards: dict[int | None, set[int | None]] = defaultdict(set)
    for processor_id, card_id in await tx.fetch(
        _SELECT_UNNAMED_CARDS, list(processor_ids), now - _UNNAMED_PERIOD
    ):
        cards[processor_id].add(card_id)
    limited = []
    for tap in taps:
        accused = cards[tap.processor_id]
        if not _is_unnamed(tap) or tap.card_id in accused:
            limited.append(tap)
        elif len(accused) < MAX_UNNAMED_CARDS:
            accused.add(tap.card_id)
            limited.append(tap)
        else:
            limited.append(RejectedTap(tap.code, tap.processor_id, tap.terminal_id))
    return limited


def _is_unnamed(tap: RejectedTap) -> bool:
    return tap.card_id is not None and tap.counter is None and tap.processor_id is not None


async def _insert_taps(
    tx: Any, taps: Sequence[RejectedTap], now: datetime, new_id: IdGenerator
) -> None:
    if not taps:
        return
    card_ids = [tap.card_id for tap in taps]
    await tx.execute(
        _INSERT_TAPS,
        card_ids,
        [new_id() for _ in taps],
        [tap.counter for tap in taps],
        [tap.terminal_id and ids.decode(ids.TERMINAL, tap.terminal_id) for tap in taps],
        [TAP_RESULTS[tap.code] for tap in taps],
        [tap.processor_id for tap in taps],
        now,
    )
    await tx.execute(_DELETE_TAPS, list(set(card_ids)))


async def _raise_alerts(
    tx: Any, taps: Iterable[RejectedTap], now: datetime, new_id: IdGenerator
) -> list[SuspectedClone]:
    by_key: dict[str, list[RejectedTap]] = defaultdict(list)
    for tap in taps:
        by_key[_get_open_key(tap)].append(tap)
    first_taps = {key: _get_first(taps) for key, taps in by_key.items()}
    alerts = [
        KeyedAlert(key, tap.subscriber_id, _build_details(tap), len(by_key[key]))
        for key, tap in first_taps.items()
    ]
    # The first tap that names the card remains in the details. A later tap cannot replace it.
    new = await raise_keyed_alerts(
        tx, CLONE_ALERT_TYPE, alerts, now, new_id, decisive_field="counter"
    )
    return [SuspectedClone(alert_id, first_taps[key].card_id) for key, alert_id in new.items()]


def _get_open_key(tap: RejectedTap) -> str:
    """Return what an alert is about. Serials contain no spaces, so the keys are distinct."""
    if tap.card_serial is not None:
        return tap.card_serial
    if tap.uid is not None:
        return f"uid {tap.uid}"
    return f"processor {tap.processor_id}"


def _get_first(taps: Sequence[RejectedTap]) -> RejectedTap:
    """Return the first tap that names its card, or else the first one."""
    return next((tap for tap in taps if tap.counter is not None), taps[0])


def _build_details(tap: RejectedTap) -> dict[str, Any]:
    processor_id = tap.processor_id
    details = {
        "card_serial": tap.card_serial,
        "uid": tap.uid,
        "processor_id": processor_id and ids.encode(ids.PROCESSOR, processor_id),
        "terminal_id": tap.terminal_id,
        "reason": tap.code,
        "counter": tap.counter,
    }
    return {name: value for name, value in details.items() if value is not None}
