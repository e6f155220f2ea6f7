"""Matching as pure functions: what hypothesis finds about guesses, doubles and order."""

from collections.abc import Iterator
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapgate.business.finance.payouts.model import build_reference
from tapgate.business.finance.reconciliation.matching import (
    MAX_DISTANCE,
    MAX_LINE_REFERENCES,
    MAX_REFERENCES,
    Deposit,
    Effect,
    PayoutCandidate,
    find_all_references,
    find_references,
    match_lines,
)
from tapgate.business.finance.reconciliation.model import Line
from tapgate_client.errors import ApiError
from tapgate_client.schemas.bank_statements import LineStatus
from tapgate_client.schemas.payouts import PayoutStatus

START = date(2026, 1, 15)
REFERENCES = [build_reference(number) for number in range(1 << 58, (1 << 58) + 4)]


def build_line(
    number: int, amount: int, days: int, reference: str | None = None, text: str | None = None
) -> Line:
    return Line(
        id=number,
        statement_id=1,
        day=START + timedelta(days=days),
        amount=amount,
        reference=reference,
        description=text,
        status=LineStatus.UNMATCHED,
        transaction_id=None,
        payout_id=None,
        proposed_payout_id=None,
        moved_payout=False,
        reason=None,
    )


days = st.integers(-6, 6)
lines = st.lists(
    st.tuples(st.sampled_from([-2, -1, 1, 2]), days, st.sampled_from([None, "A", *REFERENCES])),
    max_size=8,
).map(lambda rows: [build_line(number, *row) for number, row in enumerate(rows)])
payouts = st.lists(
    st.tuples(
        st.sampled_from(REFERENCES), st.integers(1, 2), st.sampled_from(list(PayoutStatus)), days
    ),
    unique_by=lambda row: row[0],
).map(
    lambda rows: [
        PayoutCandidate(number, reference, amount, status, START + timedelta(days=day))
        for number, (reference, amount, status, day) in enumerate(rows)
    ]
)
deposits = st.lists(
    st.tuples(st.sampled_from([None, "a", "B"]), st.integers(1, 2), days), max_size=5
).map(
    lambda rows: [
        Deposit(number, reference, amount, START + timedelta(days=day))
        for number, (reference, amount, day) in enumerate(rows)
    ]
)


@given(lines, payouts, deposits)
def test_every_match_agrees_in_amount_status_and_name_or_is_the_only_one(
    statement: list[Line], known: list[PayoutCandidate], funded: list[Deposit]
) -> None:
    matches = match_lines(statement, known, funded)
    by_id = {line.id: line for line in statement}
    assert len({match.line_id for match in matches}) == len(matches)
    targets = [(match.effect, match.target_id) for match in matches]
    assert len(set(targets)) == len(targets)
    for match in matches:
        line = by_id[match.line_id]
        if match.effect == Effect.LINK:
            check_deposit(line, funded[match.target_id], funded, statement)
        else:
            check_payout(line, known[match.target_id], match.effect, known)


def check_payout(
    line: Line, payout: PayoutCandidate, effect: Effect, known: list[PayoutCandidate]
) -> None:
    is_named = line.reference == payout.reference
    names_another = line.reference in {other.reference for other in known} and not is_named
    assert not names_another
    assert line.amount == (payout.amount if effect == Effect.RETURN else -payout.amount)
    if effect == Effect.PAY:
        assert payout.status == PayoutStatus.SUBMITTED
    else:
        assert is_named
        assert payout.status in (PayoutStatus.SUBMITTED, PayoutStatus.PAID)
    if not is_named:
        assert abs(payout.day - line.day) <= MAX_DISTANCE
        rivals = [
            other
            for other in known
            if other.status == PayoutStatus.SUBMITTED
            and other.amount == payout.amount
            and abs(other.day - line.day) <= MAX_DISTANCE
            and other.reference != payout.reference
        ]
        # Rivals that other lines of the statement name are taken, and leave one possibility.
        assert len(rivals) < len(REFERENCES)


def check_deposit(
    line: Line, deposit: Deposit, funded: list[Deposit], statement: list[Line]
) -> None:
    assert line.amount == deposit.amount
    name = (line.reference or "").upper()
    if deposit.reference is not None and deposit.reference.upper() == name:
        same = [
            each
            for each in funded
            if each.amount == line.amount and (each.reference or "").upper() == name
        ]
        assert same == [deposit]
        named = [
            each.id
            for each in statement
            if each.amount == line.amount and (each.reference or "").upper() == name
        ]
        assert named == [line.id]
    else:
        assert abs(deposit.day - line.day) <= MAX_DISTANCE


def test_two_lines_with_one_candidate_and_an_earlier_open_line_are_no_guess() -> None:
    payout = PayoutCandidate(7, REFERENCES[0], 5, PayoutStatus.SUBMITTED, START)
    first, second = build_line(1, -5, 0), build_line(2, -5, 1)
    assert match_lines([first], [payout], [])[0].target_id == 7
    assert match_lines([first, second], [payout], []) == []
    assert match_lines([first], [payout], [], others=[second]) == []
    named = build_line(3, -5, 1, text=f"to {REFERENCES[0]}")
    assert [match.line_id for match in match_lines([first, named], [payout], [])] == [3]


def test_line_with_too_many_references_is_left_to_a_person() -> None:
    payout = PayoutCandidate(7, REFERENCES[0], 5, PayoutStatus.SUBMITTED, START)
    for count, expected in ((MAX_LINE_REFERENCES, [1]), (MAX_LINE_REFERENCES + 1, [])):
        names = [build_reference((1 << 58) + number) for number in range(count)]
        line = build_line(1, -5, 0, text=" ".join(names))
        assert [match.line_id for match in match_lines([line], [payout], [])] == expected
    other = build_line(2, -5, 1)
    assert match_lines([other, line], [payout], []) == []  # both could be the payment


def test_number_of_references_is_limited() -> None:
    assert find_all_references(["POABPOCD" * 250] * 4_000) == set()
    numbers = iter(range(1 << 58, 1 << 59))

    def build_texts(count: int) -> Iterator[str]:
        for _ in range(count):
            yield "".join(build_reference(next(numbers)) for _ in range(MAX_LINE_REFERENCES))

    allowed = MAX_REFERENCES // MAX_LINE_REFERENCES
    assert len(find_all_references(build_texts(allowed))) == MAX_REFERENCES
    with pytest.raises(ApiError) as rejection:
        find_all_references(build_texts(allowed + 1))
    assert set((rejection.value.details or {})["fields"]) == {"file"}


def test_reference_is_found_in_any_case_and_broken_anywhere() -> None:
    reference = REFERENCES[0]
    for text in (reference.lower(), f"X{reference}X", f"{reference[:7]}\n{reference[7:]}"):
        assert reference in find_references(text), text
    assert find_references("PO 12") == set()


def test_many_equal_lines_and_candidates_take_linear_time() -> None:
    many = [build_line(number, -5, 0) for number in range(20_000)]
    candidates = [
        PayoutCandidate(number, f"PO{number:013}", 5, PayoutStatus.SUBMITTED, START)
        for number in range(20_000)
    ]
    assert match_lines(many, candidates, []) == []
