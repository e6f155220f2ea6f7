"""What `make release` requires before it builds anything."""

import shutil
from pathlib import Path

import pytest

from cases import each
from tapgate import VERSION
from tools.manual.version import PLACES
from tools.release import ReleaseError
from tools.release.__main__ import build_release
from tools.release.checks import check_release, read_changelog
from tools.release.commands import run

ROOT = Path(__file__).parents[2]
NOTES = "### Added\n\n- Cards have colors."
CHANGELOG = f"# Changelog\n\n## Unreleased\n\n## {VERSION} - 2026-11-19\n\n{NOTES}\n"


def git(folder: Path, *arguments: str) -> str:
    names = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    return run("git", *names, *arguments, folder=folder).strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a repository with the files that contain the version, and a changelog."""
    for name in PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, CHANGELOG)
    return tmp_path


def commit(folder: Path, changelog: str) -> None:
    (folder / "CHANGELOG.md").write_text(changelog)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "test: Change the changelog")


def list_problems(folder: Path, version: str = VERSION) -> list[str]:
    with pytest.raises(ReleaseError) as raised:
        check_release(folder, version)
    return str(raised.value).splitlines()


def test_release_is_the_current_commit_with_its_notes(project: Path) -> None:
    git(project, "tag", f"v{VERSION}")  # building a tagged release again is fine
    commit_to_release, notes = check_release(project, VERSION)
    assert commit_to_release.id == git(project, "rev-parse", "HEAD")
    assert notes == NOTES


def test_uncommitted_changes_are_named(project: Path) -> None:
    (project / "forgotten.py").touch()
    (project / "pyproject.toml").touch()
    expected = ["The working tree has uncommitted changes: forgotten.py. Commit them."]
    assert list_problems(project) == expected
    for number in range(6):
        (project / f"file-{number}").touch()
    assert list_problems(project)[0].endswith("file-4 and 2 more. Commit them.")


def test_another_version_is_refused(project: Path) -> None:
    package = project / "clients" / "typescript" / "package.json"
    package.write_text(package.read_text().replace(f'"{VERSION}"', '"1.0.0"'))
    commit(project, CHANGELOG.replace(f"## {VERSION}", "## 9.9.9"))
    assert list_problems(project, "9.9.9") == [
        "VERSION is 9.9.9, but clients/python/src/tapgate_client/__init__.py declares"
        f" {VERSION}. Change it there and run `make docs`.",
        "Files with another version: clients/typescript/package.json. Run `make docs`.",
    ]


@each(
    "changelog, problem",
    [
        (
            f"# Changelog\n\n## Unreleased\n\n{NOTES}\n",
            f"CHANGELOG.md has no section `## {VERSION} - YYYY-MM-DD`. Move the unreleased changes"
            " there.",
        ),
        (
            CHANGELOG.replace(" - 2026-11-19", ""),
            f"The heading of {VERSION} in CHANGELOG.md has no date: write"
            f" `## {VERSION} - YYYY-MM-DD`.",
        ),
        (
            CHANGELOG.replace(NOTES, "### Added"),
            f"The section {VERSION} in CHANGELOG.md lists no changes.",
        ),
        (
            CHANGELOG.replace("## Unreleased\n", "## Unreleased\n\n- Another change.\n"),
            f"CHANGELOG.md has unreleased changes. Move them to the section {VERSION}.",
        ),
    ],
)
def test_changelog_must_have_the_section_of_the_version(
    project: Path, changelog: str, problem: str
) -> None:
    commit(project, changelog)
    assert list_problems(project) == [problem]


def test_tag_of_another_commit_is_refused(project: Path) -> None:
    git(project, "tag", f"v{VERSION}")
    tagged = git(project, "rev-parse", "HEAD")
    commit(project, CHANGELOG)
    problem = f"The tag v{VERSION} is another commit, {tagged[:12]}. Choose a new version."
    assert list_problems(project) == [problem]


def test_folder_with_other_files_is_not_replaced(project: Path, tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "letter").touch()
    with pytest.raises(ReleaseError, match="has other files than a release"):
        build_release(project, VERSION, documents)
    assert [*documents.iterdir()] == [documents / "letter"]


def test_changelog_of_the_project_can_be_read() -> None:
    sections = read_changelog((ROOT / "CHANGELOG.md").read_text())
    assert sections["1.0.0"].date == "2026-11-16"
    assert sections["1.0.0"].text.startswith("First release")
    assert {"Unreleased", "1.1.0", "1.0.0"} <= sections.keys()


def test_client_licenses_are_the_license_of_the_project() -> None:
    """Copies, because links into parent folders break in source distributions."""
    for client in ("python", "typescript"):
        file = ROOT / "clients" / client / "LICENSE"
        assert not file.is_symlink() and file.read_text() == (ROOT / "LICENSE").read_text()
