"""Git hooks and the CI workflow run the project's own tools."""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]


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
