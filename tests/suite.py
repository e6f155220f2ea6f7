"""The tests in a file, found without importing the file."""

import ast
from functools import cache
from pathlib import Path


@cache
def list_tests(path: Path) -> set[str]:
    """Return the test names in a file, with methods prefixed by their class."""
    tree = ast.parse(path.read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return _list_tests_in(tree, "").union(
        *(_list_tests_in(item, f"{item.name}::") for item in classes)
    )


def _list_tests_in(container: ast.Module | ast.ClassDef, prefix: str) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node.name for node in container.body if isinstance(node, kinds)]
    return {prefix + name for name in functions if name.startswith("test_")}
