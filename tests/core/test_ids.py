import re
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tapgate.core.id_generator import SLOT_COUNT, IdGenerator, first_id_at
from tapgate_client import ids

NOW = int(datetime(2026, 3, 10, tzinfo=UTC).timestamp() * 1000)


PREFIXES = [value for name, value in vars(ids).items() if re.fullmatch("[A-Z][A-Z_]*", name)]


@given(st.integers(0, 2**63 - 1), st.sampled_from(PREFIXES))
def test_encoded_id_can_be_decoded(number: int, prefix: str) -> None:
    text = ids.encode(prefix, number)
    assert len(text) == len(prefix) + 13
    assert ids.decode(prefix, text) == number
    assert ids.get_prefix(text) == prefix
    assert ids.is_id(text) and not ids.is_id(text.removeprefix(prefix))


@given(st.text())
def test_decoding_any_text_yields_a_canonical_id_or_none(text: str) -> None:
    number = ids.decode("sub_", "sub_" + text)
    assert number is None or ids.encode("sub_", number) == "sub_" + text


def test_malformed_id_or_wrong_prefix_is_not_decoded() -> None:
    text = ids.encode(ids.SUBSCRIBER, 5)
    for wrong in ("", "sub_", text[:-1], text + "0", text.upper(), "txn_" + text[4:]):
        assert ids.decode(ids.SUBSCRIBER, wrong) is None
    assert ids.decode(ids.SUBSCRIBER, "sub_zzzzzzzzzzzzz") is None  # more than 63 bits


def test_generated_ids_increase() -> None:
    new_id = IdGenerator(3, lambda: NOW)
    new_ids = [new_id() for _ in range(10_000)]  # more than fit into a millisecond
    assert new_ids == sorted(set(new_ids))


def test_clock_that_steps_back_causes_no_duplicates() -> None:
    times = iter([NOW, NOW + 5, NOW + 1, NOW + 2, NOW + 6])
    new_id = IdGenerator(3, lambda: next(times))
    new_ids = [new_id() for _ in range(5)]
    assert new_ids == sorted(set(new_ids))


def test_large_backward_clock_step_requires_a_new_slot() -> None:
    clock = [NOW]
    new_id = IdGenerator(3, lambda: clock[0])
    new_ids = [new_id() for _ in range(3)]
    clock[0] = NOW - 30 * 60_000
    assert not new_id.is_ahead
    clock[0] -= 1
    assert new_id.is_ahead
    new_id.reset(4)
    assert not new_id.is_ahead
    new_ids += [new_id() for _ in range(3)]
    clock[0] = NOW
    new_ids += [new_id() for _ in range(3)]
    assert len(set(new_ids)) == 9
    assert new_ids[3:6] == sorted(new_ids[3:6])
    assert new_ids[5] < new_ids[0] < new_ids[6]


def test_clock_before_the_id_epoch_causes_no_duplicates() -> None:
    new_id = IdGenerator(3, lambda: 0)
    new_ids = [new_id() for _ in range(10_000)]
    assert new_ids == sorted(set(new_ids))
    assert not new_id.is_ahead


def test_processes_generate_different_ids_at_the_same_time() -> None:
    generators = [IdGenerator(slot, lambda: NOW) for slot in range(SLOT_COUNT)]
    new_ids = {generator() for generator in generators for _ in range(3)}
    assert len(new_ids) == 3 * SLOT_COUNT


def test_ids_sort_by_creation_time() -> None:
    moment = datetime(2026, 3, 10, tzinfo=UTC)
    before = IdGenerator(1023, lambda: NOW - 1)()
    at = IdGenerator(0, lambda: NOW)()
    assert before < first_id_at(moment) <= at < first_id_at(moment + timedelta(seconds=1))
    assert first_id_at(datetime(1970, 1, 1, tzinfo=UTC)) == 0
