"""The search for secrets, on a project with a key in it."""

import subprocess
import sys
from pathlib import Path

FIND_SCRIPT = Path(__file__).parents[2] / "tools" / "find_secrets.py"
SCAN_COMMAND = [Path(sys.executable).with_name("detect-secrets"), "scan", "--no-verify"]
# In two parts: else the search would find it here.
KEY = "AKIA" + "IOSFODNN7EXAMPLQ"


def run_find(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, FIND_SCRIPT], cwd=folder, capture_output=True, text=True, check=False
    )


def create_project(folder: Path, **files: str) -> None:
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    made_known = subprocess.run(SCAN_COMMAND, cwd=folder, capture_output=True, check=True).stdout
    (folder / ".secrets.baseline").write_bytes(made_known)
    for name, text in files.items():
        (folder / name).write_text(text)
    subprocess.run(["git", "add", "--all"], cwd=folder, check=True)


def test_a_key_in_a_file_is_told_with_its_place_and_without_itself(tmp_path: Path) -> None:
    create_project(tmp_path, clean="nothing\n", notes=f"first line\nkey {KEY}\n")
    done = run_find(tmp_path)
    assert done.returncode == 1
    assert done.stdout == "notes:2: AWS Access Key\n"
    assert KEY not in done.stdout + done.stderr


def test_a_known_one_may_move_within_its_file_and_nowhere_else(tmp_path: Path) -> None:
    create_project(tmp_path, notes=f"key {KEY}\n")
    subprocess.run([*SCAN_COMMAND, "--baseline", ".secrets.baseline"], cwd=tmp_path, check=True)
    (tmp_path / "notes").write_text(f"first line\nkey {KEY}\n")
    assert run_find(tmp_path).returncode == 0

    (tmp_path / "copy").write_text(f"key {KEY}\n")
    subprocess.run(["git", "add", "--all"], cwd=tmp_path, check=True)
    done = run_find(tmp_path)
    assert (done.returncode, done.stdout) == (1, "copy:1: AWS Access Key\n")


def test_the_list_of_known_ones_is_no_secret_itself(tmp_path: Path) -> None:
    create_project(tmp_path, notes=f"key {KEY}\n")
    made_known = subprocess.run(SCAN_COMMAND, cwd=tmp_path, capture_output=True, check=True).stdout
    (tmp_path / ".secrets.baseline").write_bytes(made_known)
    assert run_find(tmp_path).returncode == 0
