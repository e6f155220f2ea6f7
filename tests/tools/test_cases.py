"""Combined cases: every case runs, a failed one is named, and an empty list is an error."""

import pytest

from cases import each, run_cases


@pytest.mark.parametrize("failure", [AssertionError, pytest.fail.Exception, pytest.skip.Exception])
async def test_failed_cases_are_named_and_all_cases_run(failure: type[BaseException]) -> None:
    ran: list[int] = []

    def run(number: int) -> None:
        ran.append(number)
        if number % 2:
            raise failure(f"{number} is odd")

    async def run_async(number: int) -> None:
        run(number)

    numbers = range(1, 5)
    with pytest.raises(AssertionError, match=r"^\(1,\).*1 is odd\n\(3,\).*3 is odd$"):
        each("number", numbers)(run)()
    with pytest.raises(AssertionError, match=r"^\(1,\).*1 is odd\n\(3,\).*3 is odd$"):
        await each("number", numbers)(run_async)()
    with pytest.raises(AssertionError, match=r"^'case 1'.*1 is odd\n'case 3'.*3 is odd$"):
        await run_cases((f"case {number}", run_async(number)) for number in numbers)
    assert ran == [*numbers] * 3


async def test_empty_list_of_cases_is_an_error() -> None:
    with pytest.raises(AssertionError, match="no cases"):
        each("number", [])
    with pytest.raises(AssertionError, match="no cases"):
        await run_cases([])


def test_parameters_with_marks_are_rejected() -> None:
    with pytest.raises(AssertionError, match=r"pytest\.param"):
        each("first, second, third", [pytest.param(1, 2, 3, marks=pytest.mark.skip)])


@each("first", [1, 2])
@each("second", ["a", "b"])
async def test_stacked_cases_and_fixtures_are_combined(
    first: int, second: str, request: pytest.FixtureRequest
) -> None:
    assert request.node.name == "test_stacked_cases_and_fixtures_are_combined"
    seen = request.node.stash.setdefault(SEEN, [])
    seen.append((first, second))
    assert len(seen) == len(set(seen))
    if (first, second) == (2, "b"):
        assert len(seen) == 4


SEEN = pytest.StashKey[list[tuple[int, str]]]()
