"""The Makefile, Git hooks and the CI workflow run the project's own tools."""

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

from cases import each

ROOT = Path(__file__).parents[2]
TARGETS = re.findall(r"^\.PHONY: (.+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split()
#: Variables that select other commands of a target.
VARIANTS = ("", "CLUSTER=1", "UPGRADE=next")


def read_yaml(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / name).read_text())
    return content


def test_hooks_are_local_and_run_existing_programs() -> None:
    (repository,) = read_yaml(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        program, argument, *_ = hook["entry"].split()
        assert program in (".venv/bin/ruff", ".venv/bin/python"), hook["id"]
        assert argument in ("check", "format") or (ROOT / argument).exists(), hook["id"]
        assert hook["language"] == "system", hook["id"]


def test_workflow_runs_the_ci_script_and_may_only_read() -> None:
    workflow = read_yaml(".github/workflows/ci.yml")
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    assert "permissions" not in job
    assert job["steps"][-1] == {"run": ".ci/run"}
    (checkout,) = [step for step in job["steps"] if "uses" in step]
    assert checkout["with"] == {"fetch-depth": 0, "persist-credentials": False}


def list_make_commands(variables: str) -> str:
    """Return the commands of all targets, with variables expanded, without running them."""
    command = ["make", "--always-make", "--dry-run", *TARGETS, *variables.split()]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@each("variables", VARIANTS)
def test_make_runs_existing_files_and_modules(variables: str) -> None:
    commands = list_make_commands(variables)
    modules = re.findall(r"-m ((?:bench|fuzz|soak|tools|torture)\b[\w.]*)", commands)
    files = [
        f"{name.replace('.', '/')}{end}" for name in modules for end in (".py", "/__main__.py")
    ]
    found = [file for file in files if (ROOT / file).exists() or (ROOT / "tests" / file).exists()]
    assert len(found) == len(modules) > 0
    assert list_missing_files(commands) == []


def test_ci_script_runs_existing_files_and_targets() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert list_missing_files(script) == []
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r'\bmake (?:--\S+ |[A-Z]+=".*?" )*([\w./-]+)', script):
        assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), target


def is_module(name: str) -> bool:
    path = name.replace(".", "/")
    files = (f"{folder}{path}{end}" for folder in ("", "tests/") for end in (".py", "/__main__.py"))
    return any((ROOT / file).exists() for file in files)


def list_missing_files(commands: str) -> list[str]:
    """Return the paths inside the project's folders that do not exist."""
    folders = "bench|clients|deploy|docs|src|tests|tools"
    paths = re.findall(rf"(?<![\w./-])(?:{folders})/[\w./-]*\w", commands)
    assert paths
    return [path for path in paths if not (ROOT / path).exists()]
