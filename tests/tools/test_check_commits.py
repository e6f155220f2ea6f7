"""tools/check_commits.py accepts `area: Imperative summary` and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "check_commits.py"


def run_check(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def check(folder: Path, *subjects: str) -> subprocess.CompletedProcess[str]:
    """Commit each subject to a new repository and check all but the first."""
    git = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.com"]
    subprocess.run([*git, "init", "--quiet", folder], check=True)
    for subject in ("first", *subjects):
        command = [*git, "commit", "--quiet", "--allow-empty", "--message", subject]
        subprocess.run(command, cwd=folder, check=True)
    return run_check(folder, f"HEAD~{len(subjects)}")


def test_well_formed_subjects_pass(tmp_path: Path) -> None:
    result = check(
        tmp_path,
        "ledger: Stop counting rejected payments",
        "tests/pos: Address slow machines",
        "docs: Bring the glossary up to date",
        "store: Need one connection less",
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("subject", "problem"),
    [
        ("Stop counting rejected payments", "is not of the form"),
        ("ledger: stop counting rejected payments", "is not of the form"),
        ("ledger: Stop counting rejected payments.", "is not of the form"),
        ("ledger: Added a check", "starts with 'Added'"),
        ("ledger: Adds a check", "starts with 'Adds'"),
        ("ledger: Adding a check", "starts with 'Adding'"),
        ("ledger: Stop " + "c" * 60, "has 73 characters"),
    ],
)
def test_malformed_subject_is_reported(tmp_path: Path, subject: str, problem: str) -> None:
    result = check(tmp_path, "ledger: Pass this one", subject)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert problem in line
    assert line.endswith(subject)


def test_unknown_revision_is_an_error(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    result = run_check(tmp_path, "unknown")
    assert result.returncode == 1
    assert "Cannot list the commits since unknown" in result.stderr


def test_clone_without_the_history_is_not_checked(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    result = run_check(tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.endswith("Commit messages are not checked.\n")
