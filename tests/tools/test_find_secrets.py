"""Project secret scan, with and without the secret in the baseline."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FIND_SCRIPT = ROOT / "tools" / "find_secrets.py"
SCAN_COMMAND = [Path(sys.executable).with_name("detect-secrets"), "scan", "--no-verify"]
# Written in two parts, so that this repository's scan does not report it.
KEY = "AKIA" + "IOSFODNN7EXAMPLQ"


def run_find(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, FIND_SCRIPT], cwd=folder, capture_output=True, text=True, check=False
    )


def create_project(folder: Path, **files: str) -> None:
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    baseline = json.loads((ROOT / ".secrets.baseline").read_text()) | {"results": {}}
    (folder / ".secrets.baseline").write_text(json.dumps(baseline))
    for name, text in files.items():
        (folder / name).write_text(text)
    subprocess.run(["git", "add", "--all"], cwd=folder, check=True)


def test_key_in_a_file_is_reported_by_location_without_its_value(tmp_path: Path) -> None:
    create_project(tmp_path, clean="nothing\n", notes=f"first line\nkey {KEY}\n")
    result = run_find(tmp_path)
    assert result.returncode == 1
    assert result.stdout == "notes:2: AWS Access Key\n"
    assert KEY not in result.stdout + result.stderr


def test_secret_in_the_baseline_may_move_only_within_its_file(tmp_path: Path) -> None:
    create_project(tmp_path, notes=f"key {KEY}\n")
    subprocess.run([*SCAN_COMMAND, "--baseline", ".secrets.baseline"], cwd=tmp_path, check=True)
    (tmp_path / "notes").write_text(f"first line\nkey {KEY}\n")
    assert run_find(tmp_path).returncode == 0

    (tmp_path / "copy").write_text(f"key {KEY}\n")
    subprocess.run(["git", "add", "--all"], cwd=tmp_path, check=True)
    result = run_find(tmp_path)
    assert (result.returncode, result.stdout) == (1, "copy:1: AWS Access Key\n")


def test_baseline_file_is_not_reported_as_a_secret(tmp_path: Path) -> None:
    create_project(tmp_path, notes=f"key {KEY}\n")
    baseline = subprocess.run(SCAN_COMMAND, cwd=tmp_path, capture_output=True, check=True).stdout
    (tmp_path / ".secrets.baseline").write_bytes(baseline)
    assert run_find(tmp_path).returncode == 0
