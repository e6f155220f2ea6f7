"""Every test runs in `make test` or in `make proofs`, and .ci/run runs both."""

import re
from functools import cache
from pathlib import Path

from cases import each
from proofs import JOURNEYS, ONLY_PROOFS, PATHS, WITHOUT_PROOFS, is_irrelevant, is_proof
from suite import list_tests

ROOT = Path(__file__).parents[2]


@cache
def list_tests_by_file() -> dict[str, set[str]]:
    files = (str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))
    return {file: {f"{file}::{name}" for name in list_tests(ROOT / file)} for file in files}


def list_all_tests() -> set[str]:
    return set().union(*list_tests_by_file().values())


def test_collection_skips_only_files_without_a_selected_test() -> None:
    for file, tests in list_tests_by_file().items():
        if is_irrelevant(file, ONLY_PROOFS):
            assert not any(map(is_proof, tests)), file
        if is_irrelevant(file, WITHOUT_PROOFS):
            assert all(map(is_proof, tests)), file
        assert not is_irrelevant(file, "refund"), file


@each("path", PATHS)
def test_declared_path_has_tests(path: str) -> None:
    assert any(test.startswith(path) for test in list_all_tests())


@each("surface", JOURNEYS)
def test_journey_exists_and_is_not_a_proof(surface: str) -> None:
    assert JOURNEYS[surface] in list_all_tests()
    assert not is_proof(JOURNEYS[surface])


def test_every_site_has_a_journey() -> None:
    sites = {path.parent.name for path in (ROOT / "src/tapgate/sites").glob("*/__init__.py")}
    assert sites
    assert sites <= set(JOURNEYS)


def test_commands_divide_all_tests() -> None:
    commands = re.findall(r"pytest -q -n \S+ -m '([^']+)'", (ROOT / "Makefile").read_text())
    assert {*commands} == {WITHOUT_PROOFS, ONLY_PROOFS}
    steps = re.findall(r"^make (\w+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert steps == ["test", "proofs"]
