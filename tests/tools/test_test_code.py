"""Test code can be read one file at a time."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
FILES = sorted(path for path in TESTS.rglob("*.py") if "node_modules" not in path.parts)


def list_imported_modules(path: Path) -> Iterator[str]:
    """Yield the full names of everything that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (item.name for item in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{item.name}" for item in node.names)


def test_shared_helpers_are_not_in_test_modules() -> None:
    """What several files use is in tests/builders, tests/drivers or a conftest.py."""
    modules = {path.stem for path in FILES if path.name.startswith("test_")}
    found = [
        f"{path.relative_to(TESTS)} imports {name}"
        for path in FILES
        for name in list_imported_modules(path)
        if not modules.isdisjoint(name.split(".")) and not name.startswith(("tapgate", "tools"))
    ]
    assert found == []
