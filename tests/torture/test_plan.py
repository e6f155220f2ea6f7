"""The plan: the same for the same seed, and with everything in it."""

from collections import Counter

from torture.plan import DISASTERS, round_of


def test_a_seed_gives_the_same_plan_again() -> None:
    for number in (1, 2, 17):
        assert round_of(5, number) == round_of(5, number)
        assert round_of(5, number) != round_of(6, number)
    assert round_of(5, 1) != round_of(5, 2)


def test_names_are_used_once() -> None:
    names = Counter(
        operation.name for number in range(1, 9) for operation in round_of(5, number).operations
    )
    assert set(names.values()) == {1}


def test_a_refund_comes_after_its_payment() -> None:
    known = {operation.name for operation in round_of(5, 1).operations}
    for operation in round_of(5, 2).operations:
        known.add(operation.name)
        assert not operation.of or operation.of in known


def test_everything_happens_within_many_rounds() -> None:
    rounds = [round_of(5, number) for number in range(1, 101)]
    struck = Counter(disaster.kind for plan in rounds for disaster in plan.disasters)
    assert set(struck) == set(DISASTERS)
    assert all(times >= 5 for times in struck.values())
    operations = [operation for plan in rounds for operation in plan.operations]
    assert {operation.cut for operation in operations} == {None, "head", "body", "answer"}
    assert {operation.twins for operation in operations} == {0, 1, 2}
    assert any(operation.wrong_pin for operation in operations)
    assert len({operation.kind for operation in operations}) == 8
    for plan in rounds:
        for disaster in plan.disasters:
            assert 1 <= disaster.after <= len(plan.operations)
