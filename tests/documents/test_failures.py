"""docs/failures.md names tests that are there, and every test of tests/field is in it."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
DOCUMENT = TESTS.parent / "docs" / "failures.md"
FIELD = sorted(TESTS.glob("field/test_*.py"))

_NAMED = re.compile(r"`([\w/]+\.py)(?:::(test_\w+))?`")


def _tests_in(path: Path) -> set[str]:
    return set(re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE))


def _place(file: str) -> Path:
    return TESTS.parent / file if "/" in file else TESTS / "field" / file


def test_what_is_named_is_there() -> None:
    named = _NAMED.findall(DOCUMENT.read_text())
    assert named
    for file, name in named:
        assert _place(file).exists(), file
        assert not name or name in _tests_in(_place(file)), f"{file}::{name}"


@pytest.mark.parametrize("path", FIELD, ids=lambda path: path.name)
def test_every_test_of_the_field_is_named(path: Path) -> None:
    named = {name for file, name in _NAMED.findall(DOCUMENT.read_text()) if _place(file) == path}
    assert "" in named or _tests_in(path) <= named
