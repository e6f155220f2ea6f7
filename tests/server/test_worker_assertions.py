"""Workers run without assertions (`python -O`), so none may have an effect."""

import ast
import sys
from pathlib import Path

import tapgate
import tapgate_client
import tapgate_sandbox
from tapgate.server.child_process import build_command

PACKAGES = (tapgate, tapgate_client, tapgate_sandbox)
EFFECTS = (ast.Await, ast.NamedExpr, ast.Yield, ast.YieldFrom)


def list_assertions(source: str) -> list[ast.Assert]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]


def has_effect(assertion: ast.Assert) -> bool:
    for node in ast.walk(assertion.test):
        if isinstance(node, EFFECTS):
            return True
        if isinstance(node, ast.Call) and ast.unparse(node.func) != "isinstance":
            return True
    return False


def test_no_assertion_has_an_effect() -> None:
    paths = [
        path for package in PACKAGES for path in Path(str(package.__file__)).parent.rglob("*.py")
    ]
    assertions = {path: list_assertions(path.read_text()) for path in paths}
    assert sum(map(len, assertions.values())) > 50
    found = [
        f"{path}:{each.lineno}"
        for path, several in assertions.items()
        for each in several
        if has_effect(each)
    ]
    assert found == []


def test_effects_are_found() -> None:
    source = "assert f(1)\nassert (x := 1)\nassert x is not None and isinstance(x, int)\n"
    assert [has_effect(each) for each in list_assertions(source)] == [True, True, False]
    (awaited,) = list_assertions("async def f():\n    assert (await g) == 1\n")
    assert has_effect(awaited)


def test_workers_run_without_assertions() -> None:
    assert build_command("module")[:3] == [sys.executable, "-O", "-m"]
