"""The services of both processes are complete when they are constructed."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tapgate

MODULES = sorted(Path(tapgate.__file__).parent.rglob("*.py"))


def list_assigned_services(tree: ast.AST) -> Iterator[str]:
    """Yield assignments to an attribute of `services`, `request.services` or `self._services`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
            continue
        owner = node.value
        name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
        if name.strip("_") == "services":
            yield ast.unparse(node)


@pytest.mark.parametrize("source", ["services.clock = 1", "self._services.clock: int = 1"])
def test_assignments_are_found(source: str) -> None:
    assert len([*list_assigned_services(ast.parse(source))]) == 1


def test_no_module_assigns_a_service_later() -> None:
    found = {path.name: [*list_assigned_services(ast.parse(path.read_text()))] for path in MODULES}
    assert not {name: assigned for name, assigned in found.items() if assigned}
