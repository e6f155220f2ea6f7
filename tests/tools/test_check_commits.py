"""tools/check_commits.py accepts `area: Imperative summary` with a reason for large changes."""

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


def create_repository(folder: Path) -> None:
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    commit(folder, "first")


def commit(folder: Path, message: str) -> None:
    git = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.com"]
    command = [*git, "commit", "--quiet", "--allow-empty", "--message", message]
    subprocess.run(["git", "add", "--all"], cwd=folder, check=True)
    subprocess.run(command, cwd=folder, check=True)


def check(folder: Path, *subjects: str) -> subprocess.CompletedProcess[str]:
    """Commit each subject to a new repository and check all but the first."""
    create_repository(folder)
    for subject in subjects:
        commit(folder, subject)
    return run_check(folder, f"HEAD~{len(subjects)}")


def check_change(
    folder: Path, lines: int, message: str = "ledger: Count entries"
) -> subprocess.CompletedProcess[str]:
    """Commit a file with this number of lines to a new repository and check the commit."""
    create_repository(folder)
    (folder / "file").write_text("line\n" * lines)
    commit(folder, message)
    return run_check(folder, "HEAD~1")


def test_well_formed_subjects_pass(tmp_path: Path) -> None:
    result = check(
        tmp_path,
        "ledger: Stop counting rejected payments",
        "tests/business/merchants/pos: Address slow machines",
        "docs: Bring the glossary up to date",
        "store: Need one connection less",
        "console: Show a list of accounts at the end of the day",
        "http: Close one of the sockets instead of the listener",
        "release: Write a bill of materials for the source of the last release",
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
        ("settings: Read the settings of connections", "genitive 'settings of connections'"),
        ("console: Keep the role of an admin", "genitive 'role of an admin'"),
        ("docs: Update the pictures of the README", "genitive 'pictures of the README'"),
    ],
)
def test_malformed_subject_is_reported(tmp_path: Path, subject: str, problem: str) -> None:
    result = check(tmp_path, "ledger: Pass this one", subject)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert problem in line
    assert line.endswith(subject)


def test_small_change_needs_no_body(tmp_path: Path) -> None:
    assert check_change(tmp_path, lines=50).returncode == 0


@pytest.mark.parametrize(
    "body", ["", "\n\nAs discussed.", "\n\nSigned-off-by: Ada Lovelace <ada.lovelace@example.com>"]
)
def test_large_change_without_a_reason_is_reported(tmp_path: Path, body: str) -> None:
    result = check_change(tmp_path, lines=51, message=f"ledger: Count entries{body}")
    assert result.returncode == 1
    assert "changes 51 lines without a body that says why" in result.stderr


def test_large_change_with_a_reason_passes(tmp_path: Path) -> None:
    reason = "Reports counted rows instead, which locked the table for a second."
    result = check_change(tmp_path, lines=51, message=f"ledger: Count entries\n\n{reason}")
    assert (result.returncode, result.stderr) == (0, "")


def test_renamed_file_needs_no_body(tmp_path: Path) -> None:
    check_change(tmp_path, lines=51)
    (tmp_path / "file").rename(tmp_path / "renamed")
    commit(tmp_path, "ledger: Rename a file")
    assert run_check(tmp_path, "HEAD~1").returncode == 0


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
