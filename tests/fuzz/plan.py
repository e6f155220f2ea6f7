"""What is asked, decided by the seed alone: cases out of the descriptions, in an order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

from fuzz.openapi import AnyCase, Operation

#: Of ten cases of an operation, how many keep to the description.
_POSITIVE_CASES = 7
#: How often a case is sent, each time by somebody else and with something else filled in. To draw
#: one takes longer than to send and check it.
_SENDS_PER_CASE = 2
_HYPOTHESIS_SETTINGS = settings(
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@dataclass
class PlannedRequest:
    """One request to be, and the chance that decides what is left open in it."""

    operation: Operation
    case: AnyCase
    positive: bool
    rng: Random

    def copy_case(self) -> AnyCase:
        """The case, to be changed: a case that is drawn once may be planned more than once."""
        drawn = self.case
        return self.operation.source.Case(
            path_parameters=dict(drawn.path_parameters),
            headers=dict(drawn.headers),
            query=dict(drawn.query),
            body=drawn.body,
            media_type=drawn.media_type,
        )


def plan_rounds(
    operations: Sequence[Operation], count: int, seed: int
) -> Iterator[list[PlannedRequest]]:
    """In rounds, so that the first are sent before the last are made."""
    rounds = max(1, count // (len(operations) * 40))
    for turn in range(rounds):
        size = count * (turn + 1) // rounds - count * turn // rounds
        yield _plan_round(operations, size, seed * 1000 + turn)


def _plan_round(operations: Sequence[Operation], size: int, seed: int) -> list[PlannedRequest]:
    rng = Random(seed)
    made: list[PlannedRequest] = []
    for place, operation in enumerate(operations):
        share = size * (place + 1) // len(operations) - size * place // len(operations)
        positive = -(-share * _POSITIVE_CASES // 10)
        for mode, number in ((True, positive), (False, share - positive)):
            cases = generate_cases(operation, number, seed + place, positive=mode)
            made += [
                PlannedRequest(operation, case, mode, Random(rng.getrandbits(64))) for case in cases
            ]
    rng.shuffle(made)
    return made


def generate_cases(operation: Operation, count: int, seed: int, *, positive: bool) -> list[AnyCase]:
    """As many cases as there are, where there are few."""
    mode = GenerationMode.POSITIVE if positive else GenerationMode.NEGATIVE
    if count == 0:
        return []
    found: list[AnyCase] = []

    @seeded(seed)
    @settings(_HYPOTHESIS_SETTINGS, max_examples=-(-count // _SENDS_PER_CASE))
    @given(operation.source.as_strategy(generation_mode=mode))
    def collect(case: Any) -> None:
        found.append(case)

    try:
        collect()
    except Unsatisfiable:
        return []
    return _repeat_to_count(found, count)


def _repeat_to_count(found: list[AnyCase], count: int) -> list[AnyCase]:
    """As often as it takes: some operations can be called in few ways."""
    return [found[number % len(found)] for number in range(count)] if found else []
