"""Test selection for `make check`: prints the test files of changed folders.

`tests` mirrors the sources: a change in src/tapgate/ledger selects tests/ledger/test_*.py. Changes
are files that differ from the merge base with BRANCH, and untracked files. On BRANCH itself these
are uncommitted changes. A change that no test folder mirrors is named on stderr.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
BRANCH: Final = "main"
TESTS: Final = Path("tests")
#: Test folders by source folder. The nearest source folder applies.
MIRRORS: Final = {
    "src/tapgate": "tests",
    "src/tapgate_sandbox": "tests/sandbox",
    "clients/python/src/tapgate_client": "tests/client",
    "bench": "tests/bench",
    "deploy": "tests/deploy",
    "docs": "tests/docs",
    "tools": "tests/tools",
    # Packages whose tests are with their main caller.
    "src/tapgate/business/approval_rules": "tests/business/approvals",
    "src/tapgate/http": "tests/http/api",
    "src/tapgate/http/rate_limits": "tests/http/rate_limits",
    "src/tapgate/ledger/rules": "tests/ledger",
    "tools/manual": "tests/docs",
}
#: Folders of shared test code: every test may depend on them.
SHARED: Final = (TESTS, TESTS / "builders", TESTS / "drivers")


def select_tests(path: Path) -> set[Path]:
    """Return the test files to run if the file at `path` changes."""
    if path.is_relative_to(TESTS):
        if path.name.startswith("test_"):
            return {path} if (ROOT / path).exists() else set()
        return set() if path.parent in SHARED else _list_tests(path.parent)
    for folder in path.parents:
        if mirror := MIRRORS.get(str(folder)):
            return _find_mirror(Path(mirror), path.relative_to(folder))
    return set()


def _find_mirror(tests: Path, path: Path) -> set[Path]:
    """Return the tests for the nearest package that has a test folder or a test file."""
    for part in (*path.parents[:-1], path):
        if found := _list_tests(tests / part):
            return found
        named = tests / part.with_name(f"test_{part.stem}.py")
        if (ROOT / named).exists():
            return {named}
    return set() if tests == TESTS else _list_tests(tests)


def _list_tests(folder: Path) -> set[Path]:
    """Return the tests in a folder, or below it if it has none."""
    tests = [*(ROOT / folder).glob("test_*.py")] or (ROOT / folder).rglob("test_*.py")
    return {path.relative_to(ROOT) for path in tests}


def list_changes(branch: str) -> Iterator[Path]:
    base = _run_git("merge-base", "HEAD", branch) or ["HEAD"]
    for name in [
        *_run_git("diff", "--name-only", *base),
        *_run_git("ls-files", "--others", "--exclude-standard"),
    ]:
        yield Path(name)


def _run_git(*arguments: str) -> list[str]:
    """Return the lines that git prints: none if it fails, such as in a clone without BRANCH."""
    command = ["git", "-C", str(ROOT), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return result.stdout.splitlines()


def print_selection(changes: Iterable[Path]) -> None:
    selected: set[Path] = set()
    for path in sorted(changes):
        tests = select_tests(path)
        selected |= tests
        if not tests and path.suffix == ".py":
            print(f"No test folder mirrors {path}: run make test.", file=sys.stderr)
    print(*sorted(selected), sep="\n")


if __name__ == "__main__":
    print_selection(list_changes(*sys.argv[1:] or [BRANCH]))
