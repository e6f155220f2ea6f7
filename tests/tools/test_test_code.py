"""Test code can be read one file at a time."""

import ast
import gc
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

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


class Findings(NamedTuple):
    """What one file has; nodes of syntax trees are not kept, because there are millions."""

    broken_assertions: list[str]
    private_attributes: list[str]
    #: Full names of everything that the file imports.
    imports: list[str]


@cache
def inspect_file(path: Path) -> Findings:
    gc.disable()
    try:
        return inspect_source(path.read_text())
    finally:
        gc.enable()


def inspect_source(source: str) -> Findings:
    lines, found = source.splitlines(), Findings([], [], [])
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Assert() if is_broken(node, lines):
                line = lines[node.lineno - 1].strip()
                found.broken_assertions.append(f"{node.lineno}: {line}")
            case ast.Attribute(value, name) if is_private(name) and not is_own(value):
                found.private_attributes.append(name)
            case ast.Call(ast.Attribute(attr="setattr"), [*arguments]):
                names = [str(item.value) for item in arguments if isinstance(item, ast.Constant)]
                found.private_attributes.extend(filter(is_private, names[:2]))
            case ast.Import(names=aliases):
                found.imports.extend(item.name for item in aliases)
            case ast.ImportFrom(module, aliases):
                found.imports.extend(f"{module}.{item.name}" for item in aliases)
    return found


def is_broken(node: ast.Assert, lines: list[str]) -> bool:
    """Return whether only the formatter broke an assertion into three or more lines.

    Expected data over several lines is fine: its last item ends with a comma or a bracket.
    """
    if node.end_lineno in (node.lineno, node.lineno + 1):
        return False
    first, *between = lines[node.lineno - 1 : node.end_lineno]
    is_data = between[-2].partition("  #")[0].endswith((",", "}", "]"))
    return first.strip() == "assert (" or not is_data


def is_private(name: str) -> bool:
    last = name.rpartition(".")[2]
    return re.match(r"_[^_]", last) is not None and last not in NAMED_TUPLE_METHODS


def is_own(owner: ast.expr) -> bool:
    return ast.unparse(owner) in ("self", "cls", "super()")


def test_shared_helpers_are_not_in_test_modules() -> None:
    """What several files use is in tests/builders, tests/drivers or a conftest.py."""
    modules = {path.stem for path in FILES if path.name.startswith("test_")}
    found = [
        f"{path.relative_to(TESTS)} imports {name}"
        for path in FILES
        for name in inspect_file(path).imports
        if not modules.isdisjoint(name.split(".")) and not name.startswith(("tapgate", "tools"))
    ]
    assert found == []


def test_assertions_fit_a_line_or_compare_with_data() -> None:
    """Name a part of the condition instead, so that the comparison is in one line."""
    found = [
        f"{path.relative_to(TESTS)}:{assertion}"
        for path in FILES
        for assertion in inspect_file(path).broken_assertions
    ]
    assert found == []


def test_broken_assertions_are_detected() -> None:
    data = 'assert f(x) == [\n    "first",\n    "second",\n]\n'
    assert inspect_source(data).broken_assertions == []
    for broken in ("assert (\n    f(x) == y\n)\n", "assert f(x) == g(\n    y\n)\n"):
        assert len(inspect_source(broken).broken_assertions) == 1


def test_tests_use_no_private_attributes() -> None:
    """A name that a test needs is public."""
    found = {
        f"{path.relative_to(TESTS)}: {name}"
        for path in FILES
        for name in inspect_file(path).private_attributes
    }
    assert found == PACKAGE_INTERNALS


def test_private_attributes_are_detected() -> None:
    source = 'monkeypatch.setattr(clock, "_now", 0)\nclock._now = self._now\nrow._replace(x=1)\n'
    assert inspect_source(source).private_attributes == ["_now", "_now"]
