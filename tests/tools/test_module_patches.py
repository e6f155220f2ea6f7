"""Modules are patched for tests when they are imported, and not before."""

import ast
import importlib
import sys
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest

import module_patches
from tapgate.runtime.store import database, embedded

CONFTEST = Path(__file__).parents[1] / "conftest.py"
#: Packages that take long to import.
SLOW = {"asyncpg", "databases", "drivers", "harness", "httpx2", "hypothesis", "structlog"}


def test_conftest_imports_no_slow_package_at_the_start() -> None:
    modules = set()
    for node in ast.parse(CONFTEST.read_text()).body:  # not in functions
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(str(node.module).partition(".")[0])
    assert len(modules) > 10
    assert modules & {*SLOW, "tapgate", "tapgate_sandbox"} == set()


def test_every_patched_module_exists() -> None:
    for name in module_patches.PATCHES:
        assert importlib.import_module(name).__name__ == name


def test_imported_modules_are_patched() -> None:
    assert database.DATABASE_TIMEOUT_SECONDS == 30
    assert hypothesis.settings().deadline is None
    assert embedded.__spec__ is not None
    assert type(embedded.__spec__.loader).__module__ != "module_patches"


def test_module_is_patched_at_each_import(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "patched_example.py").write_text("value = 1")
    monkeypatch.syspath_prepend(tmp_path)

    def patch(module: ModuleType) -> None:
        module.value += 1

    monkeypatch.setitem(module_patches.PATCHES, "patched_example", patch)
    for _ in range(2):
        assert importlib.import_module("patched_example").value == 2
        del sys.modules["patched_example"]
