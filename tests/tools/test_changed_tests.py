"""tools/changed_tests.py selects the tests of changed folders."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import changed_tests
from tools.changed_tests import MIRRORS, ROOT, select_tests


def test_every_package_has_tests() -> None:
    packages = {path.parent for path in (ROOT / "src/tapgate").glob("*/**/*.py")}
    modules = {package.relative_to(ROOT) / "module.py" for package in packages}
    assert [module for module in sorted(modules) if not select_tests(module)] == []


def test_mirrored_folders_exist() -> None:
    folders = {*MIRRORS, *MIRRORS.values()}
    assert [folder for folder in sorted(folders) if not (ROOT / folder).is_dir()] == []


@pytest.mark.parametrize(
    ("changed", "selected"),
    [
        ("src/tapgate/ledger/decisions/decide.py", "tests/ledger/decisions/test_limits.py"),
        ("src/tapgate/ledger/new/module.py", "tests/ledger/decisions/test_limits.py"),
        ("src/tapgate/server/supervisor.py", "tests/server/test_supervisor.py"),
        ("tools/check_commits.py", "tests/tools/test_check_commits.py"),
        ("tests/ledger/reference_model.py", "tests/ledger/test_against_model.py"),
        ("tests/ledger/decisions/test_limits.py", "tests/ledger/decisions/test_limits.py"),
    ],
)
def test_change_selects_the_tests_beside_it(repository: Path, changed: str, selected: str) -> None:
    for name in (changed, selected, "tests/business/merchants/pos/test_payments.py"):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).touch()
    assert select_tests(Path(changed)) == {Path(selected)}


@pytest.mark.parametrize("changed", ["tests/conftest.py", "tests/builders/money.py", "LICENSE"])
def test_shared_files_select_no_tests(changed: str) -> None:
    assert select_tests(Path(changed)) == set()


def test_deleted_test_is_not_selected() -> None:
    assert select_tests(Path("tests/ledger/test_deleted.py")) == set()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository that contains only the script."""
    monkeypatch.setattr(changed_tests, "ROOT", tmp_path)
    (tmp_path / "tools").mkdir()
    shutil.copy(changed_tests.__file__, tmp_path / "tools")
    run_git(tmp_path, "init", "--quiet", "--initial-branch=main")
    commit(tmp_path)
    return tmp_path


def run_git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True)


def commit(folder: Path, *names: str) -> None:
    write_tests(folder, *names)
    run_git(folder, "add", "--all")
    run_git(folder, "commit", "--quiet", "--message=commit")


def write_tests(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / "tests" / name / f"test_{name}.py"
        path.parent.mkdir(parents=True)
        path.touch()


def run_script(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, folder / "tools/changed_tests.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def test_branch_selects_committed_and_uncommitted_changes(repository: Path) -> None:
    commit(repository, "unchanged")
    run_git(repository, "switch", "--quiet", "--create", "branch")
    commit(repository, "committed")
    write_tests(repository, "staged")
    run_git(repository, "add", "--all")
    write_tests(repository, "untracked")
    assert run_script(repository).stdout.split() == [
        "tests/committed/test_committed.py",
        "tests/staged/test_staged.py",
        "tests/untracked/test_untracked.py",
    ]


def test_clone_without_the_branch_selects_uncommitted_changes(repository: Path) -> None:
    commit(repository, "committed")
    write_tests(repository, "untracked")
    assert run_script(repository, "unknown").stdout.split() == ["tests/untracked/test_untracked.py"]


def test_source_without_tests_is_named(repository: Path) -> None:
    (repository / "src/tapgate").mkdir(parents=True)
    (repository / "src/tapgate/module.py").touch()
    result = run_script(repository)
    assert result.stdout.strip() == ""
    assert result.stderr == "No test folder mirrors src/tapgate/module.py: run make test.\n"
