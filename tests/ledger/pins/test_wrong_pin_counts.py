"""In-memory PIN attempt counts that a node's processes share."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapgate.ledger.pins.wrong_pin_limit import AttemptCount, WrongPinLimit, to_minute

NOW = datetime(2026, 3, 7, 9, 0, 30, tzinfo=UTC)


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(1, 8), st.booleans(), st.integers(0, 200)),
        min_size=20,
        max_size=120,
    )
)
def test_counts_match_a_list_of_all_attempts(
    tmp_path_factory: pytest.TempPathFactory, attempts: list[tuple[str, int, bool, int]]
) -> None:
    """The model keeps every attempt, and counts the last ten minutes.

    A holder's period starts with the first attempt, and the next one ten minutes later. In a
    period, one correct and three wrong PINs count.
    """
    limit = WrongPinLimit(tmp_path_factory.mktemp("pins") / "t", max_wrong=3, max_percent=50)
    now = NOW
    seen: list[tuple[str, int, bool]] = []
    periods: dict[tuple[str, int], tuple[int, list[bool]]] = {}
    try:
        for credential, holder_id, is_wrong, seconds in attempts:
            now += timedelta(seconds=seconds)
            minute = to_minute(now)
            recent = [entry for entry in seen if entry[0] == credential and entry[1] > minute - 10]
            wrong = sum(was_wrong for _, _, was_wrong in recent)
            is_limited = wrong >= 3 and wrong * 100 > 50 * len(recent)
            retry_after = limit.get_retry_seconds(credential, now)
            assert bool(retry_after) == is_limited
            if is_limited:
                assert retry_after <= 600
                continue
            start, counted = periods.get((credential, holder_id), (minute, []))
            if start <= minute - 10:
                start, counted = minute, []
            counts = counted.count(is_wrong) < (3 if is_wrong else 1)
            assert limit.count(credential, holder_id, now, is_wrong=is_wrong) == counts
            periods[credential, holder_id] = start, [*counted, *([is_wrong] if counts else [])]
            if counts:
                seen.append((credential, minute, is_wrong))
    finally:
        limit.close()


def test_unrecorded_attempts_are_returned_once(tmp_path: Path) -> None:
    limit, minute = WrongPinLimit(tmp_path / "t"), to_minute(NOW)
    for is_wrong in (False, True):
        limit.count("key", 1, NOW, is_wrong=is_wrong)
    limit.count("key", 2, NOW + timedelta(minutes=1), is_wrong=False)
    later = NOW + timedelta(minutes=2)
    assert limit.take_unrecorded("key", later) == {minute: 2, minute + 1: 1}
    assert not any(limit.take_unrecorded("key", later).values())
    assert limit.take_unrecorded("unknown", later) == {}
    limit.close()


def test_credential_without_recent_wrong_pins_is_evicted_first(tmp_path: Path) -> None:
    class SmallTable(WrongPinLimit):
        _SET_COUNT = 1

    limit = SmallTable(tmp_path / "t", max_wrong=1, max_percent=0)
    limit.count("attacker", 1, NOW, is_wrong=True)
    for number in range(20):
        limit.count(f"key {number}", 1, NOW, is_wrong=False)
    assert limit.get_retry_seconds("attacker", NOW) > 0
    limit.close()


def test_end_of_the_limit_is_when_enough_wrong_pins_are_old(tmp_path: Path) -> None:
    limit = WrongPinLimit(tmp_path / "t", max_wrong=3, max_percent=50)
    assert limit.find_end([AttemptCount(1, 2, 2)]) == 0
    assert limit.find_end([AttemptCount(2, 2, 2), AttemptCount(1, 1, 1)]) == 11
    assert limit.find_end([AttemptCount(1, 6, 3)]) == 0  # exactly half
    limit.close()
