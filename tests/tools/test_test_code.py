"""Test code can be read one file at a time."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
#: Private attributes of other packages, which have no public equivalent.
PACKAGE_INTERNALS = {
    "databases.py: _termination_listeners",
    "drivers/forked.py: _exit",
    "drivers/forked.py: _idle_semaphore",
    "drivers/forked.py: _threads",
    "http/rate_limits/test_rate_limits_across_nodes.py: _available_connections",
    "http/rate_limits/test_rate_limits_across_nodes.py: _in_use_connections",
    "http/rate_limits/test_rate_limits_across_nodes.py: _process",
    "module_patches.py: _get_local_constants",
    "module_patches.py: _local_constants",
    "rewriting.py: _rewrite_test",
    "rewriting.py: _write_pyc",
    "runtime/store/test_database_url.py: _transport",
    "runtime/store/test_pipeline.py: _protocol",
    "soak/shapes.py: _transport",
}
#: Public methods of named tuples.
NAMED_TUPLE_METHODS = ("_asdict", "_replace")
FILES = sorted(path for path in TESTS.rglob("*.py") if "node_modules" not in path.parts)


def list_broken_assertions(source: str) -> Iterator[str]:
    """Yield the assertions that only the formatter broke into three or more lines.

    Expected data over several lines is fine: its last item ends with a comma or a bracket.
    """
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Assert) or node.end_lineno in (node.lineno, node.lineno + 1):
            continue
        first, *between = lines[node.lineno - 1 : node.end_lineno]
        is_data = between[-2].partition("  #")[0].endswith((",", "}", "]"))
        if first.strip() == "assert (" or not is_data:
            yield f"{node.lineno}: {first.strip()}"


def list_private_attributes(path: Path, folder: Path = TESTS) -> Iterator[str]:
    """Yield the private attributes of other objects and modules that a file uses."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and not _is_own(node.value):
            names = [node.attr]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".setattr"):
            names = [str(item.value) for item in node.args[:2] if isinstance(item, ast.Constant)]
        else:
            continue
        for name in names:
            last = name.rpartition(".")[2]
            if re.match(r"_[^_]", last) and last not in NAMED_TUPLE_METHODS:
                yield f"{path.relative_to(folder)}: {name}"


def _is_own(owner: ast.expr) -> bool:
    return ast.unparse(owner) in ("self", "cls", "super()")


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


def test_assertions_fit_a_line_or_compare_with_data() -> None:
    """Name a part of the condition instead, so that the comparison is in one line."""
    found = [
        f"{path.relative_to(TESTS)}:{assertion}"
        for path in FILES
        for assertion in list_broken_assertions(path.read_text())
    ]
    assert found == []


def test_broken_assertions_are_detected() -> None:
    data = 'assert f(x) == [\n    "first",\n    "second",\n]\n'
    assert list(list_broken_assertions(data)) == []
    for broken in ("assert (\n    f(x) == y\n)\n", "assert f(x) == g(\n    y\n)\n"):
        assert len(list(list_broken_assertions(broken))) == 1


def test_tests_use_no_private_attributes() -> None:
    """A name that a test needs is public."""
    assert {item for path in FILES for item in list_private_attributes(path)} == PACKAGE_INTERNALS


def test_private_attributes_are_detected(tmp_path: Path) -> None:
    source = 'monkeypatch.setattr(clock, "_now", 0)\nclock._now = self._now\nrow._replace(x=1)\n'
    path = tmp_path / "test_clock.py"
    path.write_text(source)
    assert list(list_private_attributes(path, tmp_path)) == ["test_clock.py: _now"] * 2
