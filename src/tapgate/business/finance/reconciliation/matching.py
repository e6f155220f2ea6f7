"""Matching of statement lines with payouts and deposits, as pure functions.

A line that names a payout belongs to that payout or to nothing. Any other match must be the only
possible one, for the line and for its candidate.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from enum import StrEnum
from operator import itemgetter
from typing import Any, Final, NamedTuple

from tapgate.business.finance.reconciliation.model import Line
from tapgate_client.errors import invalid_field
from tapgate_client.schemas.payouts import PayoutStatus

MAX_DISTANCE: Final = timedelta(days=3)
#: What `build_reference` returns. Its letters after *PO* have no O, so a text has at most one
#: reference per 14 letters. Overlapping ones are found too, because the text around is arbitrary.
_PAYOUT_REFERENCE: Final = re.compile(r"(?=(PO[0-7][0-9A-HJKMNP-TV-Z]{12}))")
#: A line that names more payouts than this is about none of them in particular.
MAX_LINE_REFERENCES: Final = 50
MAX_REFERENCES: Final = 100_000


class Effect(StrEnum):
    PAY = "pay"  # the payout becomes paid
    RETURN = "return"  # the payout becomes returned
    LINK = "link"  # the deposit has moved the money already


class PayoutCandidate(NamedTuple):
    id: int
    reference: str
    amount: int
    status: PayoutStatus
    day: date  # on which it was submitted


class Deposit(NamedTuple):
    """Agent or partner funding that no line belongs to yet."""

    transaction_id: int
    reference: str | None
    amount: int
    day: date


class Match(NamedTuple):
    line_id: int
    effect: Effect
    target_id: int  # of the payout, or for a link of the transaction


def find_references(text: str) -> set[str]:
    """Return what could be payout references. Banks break texts anywhere."""
    return set(_PAYOUT_REFERENCE.findall("".join(text.split()).upper()))


def find_all_references(texts: Iterable[str]) -> set[str]:
    """Return the references of lines that can be matched by name.

    Raises 422 if there are so many that looking for them would take seconds.
    """
    references: set[str] = set()
    for text in texts:
        found = find_references(text)
        if len(found) <= MAX_LINE_REFERENCES:
            references |= found
        if len(references) > MAX_REFERENCES:
            raise invalid_field(
                "file", f"must not name more than {MAX_REFERENCES} payouts. Split it"
            )
    return references


def fold_reference(reference: str | None) -> str:
    return "".join((reference or "").split()).upper()


def match_lines(
    lines: Sequence[Line],
    payouts: Iterable[PayoutCandidate],
    deposits: Iterable[Deposit],
    *,
    others: Sequence[Line] = (),
) -> list[Match]:
    """Return the matches of open lines, payments before returns.

    `others` are open lines of earlier statements, which could belong to the same candidates. A line
    with too many references is left to a person, and could belong to the same candidates too.
    """
    by_reference = {payout.reference: payout for payout in payouts}
    found = {line.id: find_references(line.text) for line in lines}
    crowded = [line for line in lines if len(found[line.id]) > MAX_LINE_REFERENCES]
    lines = [line for line in lines if len(found[line.id]) <= MAX_LINE_REFERENCES]
    named = {
        line.id: [by_reference[name] for name in found[line.id] & by_reference.keys()]
        for line in lines
    }
    matches = _match_named_payouts(lines, named)
    moved = {match.target_id for match in matches}
    unnamed = [line for line in lines if not named[line.id]]
    rivals = [line for line in others if not find_references(line.text) & by_reference.keys()]
    rivals += crowded
    open_payouts = [
        (payout.id, -payout.amount, payout.day)
        for payout in by_reference.values()
        if payout.status == PayoutStatus.SUBMITTED and payout.id not in moved
    ]
    matches += [
        Match(line_id, Effect.PAY, payout_id)
        for line_id, payout_id in _match_by_amount(unnamed, open_payouts, rivals)
    ]
    return sorted([*matches, *_match_deposits(unnamed, list(deposits), rivals)], key=_get_order)


def _get_order(match: Match) -> int:
    return (Effect.PAY, Effect.LINK, Effect.RETURN).index(match.effect)


def _match_named_payouts(
    lines: Sequence[Line], named: Mapping[int, Sequence[PayoutCandidate]]
) -> list[Match]:
    """Match payments, and then returns, also of payouts whose payment is in the same statement."""
    matches: list[Match] = []
    statuses = {payout.id: payout.status for found in named.values() for payout in found}
    for effect, sign, before, after in (
        (Effect.PAY, -1, PayoutStatus.SUBMITTED, PayoutStatus.PAID),
        (Effect.RETURN, 1, PayoutStatus.PAID, PayoutStatus.RETURNED),
    ):
        for line in lines:
            fitting = [
                payout.id
                for payout in named[line.id]
                if line.amount == sign * payout.amount and statuses[payout.id] == before
            ]
            if len(fitting) == 1:
                statuses[fitting[0]] = after
                matches.append(Match(line.id, effect, fitting[0]))
    return matches


def _match_deposits(
    lines: Sequence[Line], deposits: Sequence[Deposit], rivals: Sequence[Line]
) -> list[Match]:
    by_reference: dict[tuple[str, int], list[Deposit]] = defaultdict(list)
    for deposit in deposits:
        if deposit.reference is not None:
            by_reference[fold_reference(deposit.reference), deposit.amount].append(deposit)
    keys = {line.id: (fold_reference(line.reference), line.amount) for line in lines}
    uses = Counter(keys.values())
    matches, remaining = [], []
    for line in lines:
        found = by_reference.get(keys[line.id], [])
        if len(found) == 1 and uses[keys[line.id]] == 1:
            matches.append(Match(line.id, Effect.LINK, found[0].transaction_id))
        elif not found:
            remaining.append(line)
    taken = {match.target_id for match in matches}
    candidates = [
        (deposit.transaction_id, deposit.amount, deposit.day)
        for deposit in deposits
        if deposit.transaction_id not in taken
    ]
    return matches + [
        Match(line_id, Effect.LINK, transaction_id)
        for line_id, transaction_id in _match_by_amount(remaining, candidates, rivals)
    ]


def _match_by_amount(
    lines: Sequence[Line], candidates: Sequence[tuple[int, int, date]], rivals: Sequence[Line]
) -> list[tuple[int, int]]:
    """Return the pairs of a line and a candidate that are each other's only possibility."""
    targets: dict[int, list[tuple[date, int]]] = defaultdict(list)
    for target_id, amount, day in candidates:
        targets[amount].append((day, target_id))
    line_days: dict[int, list[date]] = defaultdict(list)
    for line in (*lines, *rivals):
        line_days[line.amount].append(line.day)
    for near_targets in targets.values():
        near_targets.sort()
    for days in line_days.values():
        days.sort()
    pairs = []
    for line in lines:
        near = _slice_near(targets.get(line.amount, []), line.day, key=itemgetter(0))
        if len(near) != 1:
            continue
        day, target_id = targets[line.amount][near.start]
        if len(_slice_near(line_days[line.amount], day)) == 1:
            pairs.append((line.id, target_id))
    return pairs


def _slice_near(
    ordered: Sequence[Any], day: date, key: Callable[[Any], date] | None = None
) -> range:
    """Return the positions of what is near a day."""
    return range(
        bisect_left(ordered, day - MAX_DISTANCE, key=key),
        bisect_right(ordered, day + MAX_DISTANCE, key=key),
    )
