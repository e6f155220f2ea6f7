"""Round plans: deterministic per seed, and covering every fault and operation."""

from collections import Counter
from typing import get_args

from torture.plan import FAULT_KINDS, Kind, build_round
from torture.run import WORK
from torture.staff_plan import RELEASE, RETURN, StaffPlan


def test_same_seed_gives_the_same_plan() -> None:
    for number in (1, 2, 17):
        assert build_round(5, number) == build_round(5, number)
        assert build_round(5, number) != build_round(6, number)
    assert build_round(5, 1) != build_round(5, 2)


def test_idempotency_keys_are_unique_across_rounds() -> None:
    names = Counter(
        operation.idempotency_key
        for number in range(1, 9)
        for operation in build_round(5, number).operations
    )
    assert set(names.values()) == {1}


def test_staff_work_is_added_without_changing_the_other_operations() -> None:
    others = build_round(5, 1).operations
    added = build_round(5, 1, add_staff_work=StaffPlan(WORK, 5, 1).add).operations
    keys = {operation.idempotency_key for operation in others}
    assert [operation for operation in added if operation.idempotency_key in keys] == others
    assert len(added) > len(others) + WORK.fundings + WORK.payouts


def test_many_rounds_cover_all_staff_work_after_what_it_follows() -> None:
    kinds: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    for number in range(1, 31):
        plan = build_round(5, number, add_staff_work=StaffPlan(WORK, 5, number).add)
        known = set[str]()
        for operation in plan.operations:
            assert operation.kind == "refund" or operation.original_key in {"", *known}
            known.add(operation.idempotency_key)
            kinds[operation.kind] += 1
            answers[operation.answer] += 1
    assert kinds.keys() == {*get_args(Kind)} - {"batch_line"}
    assert kinds["batch"] == 30
    assert kinds["day_close"] == 26
    assert min(kinds["reversal"], kinds["payout_cancel"], kinds["payout_returned"]) > 30
    assert min(answers[RETURN], answers[RELEASE]) > 30


def test_refund_is_planned_after_its_payment() -> None:
    known = {operation.idempotency_key for operation in build_round(5, 1).operations}
    for operation in build_round(5, 2).operations:
        known.add(operation.idempotency_key)
        assert not operation.original_key or operation.original_key in known


def test_many_rounds_cover_every_fault_and_operation_kind() -> None:
    rounds = [build_round(5, number) for number in range(1, 101)]
    fault_counts = Counter(fault.kind for plan in rounds for fault in plan.faults)
    assert set(fault_counts) == set(FAULT_KINDS)
    assert all(times >= 5 for times in fault_counts.values())
    operations = [operation for plan in rounds for operation in plan.operations]
    assert {operation.cut_point for operation in operations} == {None, "head", "body", "response"}
    assert {operation.duplicates for operation in operations} == {0, 1, 2}
    assert any(operation.wrong_pin for operation in operations)
    assert len({operation.kind for operation in operations}) == 8
    copies = [operation for operation in operations if operation.copied_key]
    assert len(copies) > 1_000
    assert any(copy.duplicates for copy in copies)
    for plan in rounds:
        for fault in plan.faults:
            assert 1 <= fault.after_operations <= len(plan.operations)
