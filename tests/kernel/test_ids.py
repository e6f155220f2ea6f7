from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tapgate import ids

NOW = int(datetime(2026, 3, 10, tzinfo=UTC).timestamp() * 1000)


@given(st.integers(0, 2**63 - 1), st.sampled_from([ids.SUBSCRIBER, ids.TRANSACTION, ids.ACCOUNT]))
def test_encoded_id_can_be_decoded(number: int, prefix: str) -> None:
    text = ids.encode(prefix, number)
    assert len(text) == len(prefix) + 13
    assert ids.decode(prefix, text) == number


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
    generate = ids.IdGenerator(3, lambda: NOW)
    created = [generate() for _ in range(10_000)]  # more than fit into a millisecond
    assert created == sorted(set(created))


def test_clock_that_steps_back_causes_no_duplicates() -> None:
    times = iter([NOW, NOW + 5, NOW + 1, NOW + 2, NOW + 6])
    generate = ids.IdGenerator(3, lambda: next(times))
    created = [generate() for _ in range(5)]
    assert created == sorted(set(created))


def test_clock_that_steps_back_far_requires_another_slot() -> None:
    clock = [NOW]
    generate = ids.IdGenerator(3, lambda: clock[0])
    created = [generate() for _ in range(3)]
    clock[0] = NOW - 30 * 60_000
    assert not generate.is_ahead
    clock[0] -= 1
    assert generate.is_ahead
    generate.reset(4)
    assert not generate.is_ahead
    created += [generate() for _ in range(3)]
    clock[0] = NOW
    created += [generate() for _ in range(3)]
    assert len(set(created)) == 9
    assert created[3:6] == sorted(created[3:6])
    assert created[5] < created[0] < created[6]


def test_ids_are_generated_when_the_clock_is_at_1970() -> None:
    generate = ids.IdGenerator(3, lambda: 0)
    created = [generate() for _ in range(10_000)]
    assert created == sorted(set(created))
    assert not generate.is_ahead


def test_processes_generate_different_ids_at_the_same_time() -> None:
    generators = [ids.IdGenerator(slot, lambda: NOW) for slot in range(ids.SLOT_COUNT)]
    created = {generate() for generate in generators for _ in range(3)}
    assert len(created) == 3 * ids.SLOT_COUNT


def test_ids_sort_by_creation_time() -> None:
    moment = datetime(2026, 3, 10, tzinfo=UTC)
    before = ids.IdGenerator(1023, lambda: NOW - 1)()
    at = ids.IdGenerator(0, lambda: NOW)()
    assert before < ids.first_id_at(moment) <= at < ids.first_id_at(moment + timedelta(seconds=1))
    assert ids.first_id_at(datetime(1970, 1, 1, tzinfo=UTC)) == 0
