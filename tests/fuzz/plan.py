"""Deterministic request plan: cases generated from the OpenAPI documents, by seed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

from fuzz.openapi import AnyCase, Operation

#: How many of ten cases conform to the schema.
_POSITIVE_CASES = 7
#: How often each case is sent; caller and values are chosen each time. Generating a case
#: takes longer than sending and checking it.
_SENDS_PER_CASE = 2
_HYPOTHESIS_SETTINGS = settings(
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@dataclass
class PlannedRequest:
    """A generated request, and the random generator that chooses its caller and values."""

    operation: Operation
    case: AnyCase
    positive: bool
    rng: Random
    #: Whether the caller is permitted, and all that success requires exists.
    complete: bool = False

    def copy_case(self) -> AnyCase:
        """Return a mutable copy, because one generated case may be planned several times."""
        case = self.case
        return self.operation.source.Case(
            path_parameters=dict(case.path_parameters),
            headers=dict(case.headers),
            query=dict(case.query),
            body=case.body,
            media_type=case.media_type,
        )


def plan_rounds(
    operations: Sequence[Operation], count: int, seed: int
) -> Iterator[list[PlannedRequest]]:
    """Yield requests in rounds, so that sending starts before all of them are generated."""
    rounds = max(1, count // (len(operations) * 40))
    for index in range(rounds):
        size = count * (index + 1) // rounds - count * index // rounds
        yield _plan_round(operations, size, seed * 1000 + index)


def _plan_round(operations: Sequence[Operation], size: int, seed: int) -> list[PlannedRequest]:
    rng = Random(seed)
    planned: list[PlannedRequest] = []
    for index, operation in enumerate(operations):
        request_count = size * (index + 1) // len(operations) - size * index // len(operations)
        positive = -(-request_count * _POSITIVE_CASES // 10)
        for mode, number in ((True, positive), (False, request_count - positive)):
            cases = generate_cases(operation, number, seed + index, positive=mode)
            planned += [
                PlannedRequest(operation, case, mode, Random(rng.getrandbits(64))) for case in cases
            ]
    rng.shuffle(planned)
    return planned


def generate_cases(operation: Operation, count: int, seed: int, *, positive: bool) -> list[AnyCase]:
    """Generate cases and repeat them up to `count`; return [] if the schema is unsatisfiable."""
    mode = GenerationMode.POSITIVE if positive else GenerationMode.NEGATIVE
    if count == 0:
        return []
    cases: list[AnyCase] = []

    @seeded(seed)
    @settings(_HYPOTHESIS_SETTINGS, max_examples=-(-count // _SENDS_PER_CASE))
    @given(operation.source.as_strategy(generation_mode=mode))
    def collect(case: Any) -> None:
        cases.append(case)

    try:
        collect()
    except Unsatisfiable:
        return []
    return _repeat_to_count(cases, count)


def plan_complete(operations: Sequence[Operation], seed: int) -> list[PlannedRequest]:
    """Plan a valid request to each operation, with all that success requires."""
    return [
        PlannedRequest(operation, case, True, Random(seed + index), complete=True)
        for index, operation in enumerate(operations)
        for case in generate_cases(operation, 1, seed + index, positive=True)
    ]


def _repeat_to_count(cases: list[AnyCase], count: int) -> list[AnyCase]:
    """Repeat the cases, because some operations have few distinct ones."""
    return [cases[number % len(cases)] for number in range(count)] if cases else []
