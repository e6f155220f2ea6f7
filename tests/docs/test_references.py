"""Files and tests referenced in documents exist.

docs/failures.md must reference every test in tests/failure_modes, by its name or by its file.
"""

import re
from pathlib import Path

from cases import each
from suite import list_tests

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FAILURE_MODE_TESTS = sorted(TESTS.glob("failure_modes/test_*.py"))
FAILURES_DOC = ROOT / "docs" / "failures.md"

#: A path relative to the project, or a Python file relative to the package; `::` names a test.
REFERENCE = re.compile(
    r"(?<![\w/.<-])((?:src|clients|tests|tools|docs|bench)/[\w./-]*\w|(?:\w+/)+\w+\.py)(?:::([\w:]+))?"
)
REFERENCE_ROOTS = (
    ROOT,
    ROOT / "src",
    ROOT / "src" / "tapgate",
    ROOT / "clients/python/src/tapgate_client",
)


def is_broken(reference: tuple[str, str]) -> bool:
    """Return whether the path does not exist or does not contain the named test."""
    path, name = reference
    file = next((root / path for root in REFERENCE_ROOTS if (root / path).exists()), None)
    return file is None or (bool(name) and name not in list_tests(file))


@each("document", DOCUMENTS)
def test_referenced_files_and_tests_exist(document: Path) -> None:
    references = set(REFERENCE.findall(document.read_text()))
    missing = sorted("::".join(filter(None, item)) for item in references if is_broken(item))
    assert not missing, f"{document.name} has broken references: {', '.join(missing)}"


def test_broken_references_are_detected() -> None:
    text = (
        "`tests/nothing.py`, `tests/conftest.py::test_nothing`, `edge/nothing.py`,"
        " `src/tapgate`, `http/api/app.py`,"
        " `tests/cli/test_cli.py::test_help_shows_the_command_usage`"
    )
    assert [is_broken(item) for item in REFERENCE.findall(text)] == [True] * 3 + [False] * 3


@each("path", FAILURE_MODE_TESTS)
def test_every_failure_mode_test_is_referenced(path: Path) -> None:
    relative_path = str(path.relative_to(ROOT))
    referenced = {
        name for file, name in REFERENCE.findall(FAILURES_DOC.read_text()) if file == relative_path
    }
    assert "" in referenced or list_tests(path) <= referenced
