"""Choosing a Python interpreter, tested with fake interpreters that report a duration."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHOOSE_SCRIPT = Path(__file__).parents[2] / "tools" / "choose_python.py"
UNSUPPORTED_PYTHON = "exit 1"


def run_choose(*folders: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, folders))
    return subprocess.run(
        [sys.executable, CHOOSE_SCRIPT],
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def create_fake_python(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    loop = f"echo {path}; while read request; do {script}; done"
    path.write_text(f"#!/bin/sh\n{script if script == UNSUPPORTED_PYTHON else loop}\n")
    path.chmod(0o700)
    return path


@pytest.mark.parametrize(
    ("default", "other", "expected"),
    [
        ("echo 0.020", "echo 0.010", "other"),
        ("echo 0.020", "echo 0.019", "default"),  # the gain is too small
        ("echo 0.010", "echo 0.020", "default"),
        (UNSUPPORTED_PYTHON, "echo 0.020", "other"),
        ("echo 0.020", UNSUPPORTED_PYTHON, "default"),
        ("echo 0.020", "echo what", "default"),
    ],
)
def test_default_python_is_chosen_unless_another_is_clearly_faster(
    tmp_path: Path, default: str, other: str, expected: str
) -> None:
    executables = {
        "default": create_fake_python(tmp_path / "first", "python3", default),
        "other": create_fake_python(tmp_path / "second", "python3.12", other),
    }
    result = run_choose(tmp_path / "first", tmp_path / "second")
    assert result.stdout.strip() == str(executables[expected])


def test_same_name_later_on_the_path_is_considered(tmp_path: Path) -> None:
    create_fake_python(tmp_path / "first", "python3", "echo 0.020")
    faster = create_fake_python(tmp_path / "second", "python3", "echo 0.010")
    assert run_choose(tmp_path / "first", tmp_path / "second").stdout.strip() == str(faster)


def test_some_slow_measurements_are_ignored(tmp_path: Path) -> None:
    create_fake_python(tmp_path / "first", "python3", "echo 0.020")
    sometimes_slow = "count=$((count + 1)); [ $((count % 3)) = 0 ] && echo 0.9 || echo 0.010"
    faster = create_fake_python(tmp_path / "second", "python3.12", sometimes_slow)
    assert run_choose(tmp_path / "first", tmp_path / "second").stdout.strip() == str(faster)


def test_no_supported_python_is_an_error(tmp_path: Path) -> None:
    create_fake_python(tmp_path / "only", "python3", UNSUPPORTED_PYTHON)
    result = run_choose(tmp_path / "only")
    assert result.returncode == 1
    assert "Python 3.11 or newer" in result.stderr


def test_chosen_real_python_can_create_environments() -> None:
    python = subprocess.run(
        [sys.executable, CHOOSE_SCRIPT], capture_output=True, text=True, check=True
    ).stdout.strip()
    program = "import ensurepip, sys, venv; assert sys.version_info >= (3, 11)"
    subprocess.run([python, "-c", program], check=True)
