"""What must hold before a release is built: its commit, its version and its changelog section."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tapgate_client import VERSION
from tools.manual.version import list_outdated
from tools.release import ReleaseError
from tools.release.commands import run

_CHANGELOG: Final = "CHANGELOG.md"
_HEADING: Final = re.compile(r"^## (\S+)(?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)
_UNRELEASED: Final = "Unreleased"
_MAX_LISTED_FILES: Final = 5


class Section(NamedTuple):
    #: None in the section of unreleased changes.
    date: str | None
    text: str


class Commit(NamedTuple):
    id: str
    #: Unix time, for files that contain a time.
    time: str


def get_tag(version: str) -> str:
    return f"v{version}"


def check_release(root: Path, version: str) -> tuple[Commit, str]:
    """Return the commit to release, and the version's release notes.

    Raise ReleaseError with all problems, one per line.
    """
    commit_id, time = run("git", "log", "-1", "--format=%H %ct", folder=root).split()
    sections = read_changelog((root / _CHANGELOG).read_text())
    problems = [
        *_check_tree(root),
        *_check_version(root, version),
        *_check_changelog(sections, version),
        *_check_tag(root, version, commit_id),
    ]
    if problems:
        raise ReleaseError("\n".join(problems))
    return Commit(commit_id, time), sections[version].text


def read_changelog(text: str) -> dict[str, Section]:
    """Return the changelog's sections by version, without their headings."""
    headings = [*_HEADING.finditer(text)]
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    return {
        heading[1]: Section(heading[2], text[heading.end() : end].strip())
        for heading, end in zip(headings, ends, strict=True)
    }


def _check_tree(root: Path) -> Iterator[str]:
    changed = run("git", "status", "--porcelain", folder=root).splitlines()
    if changed:
        names = [line[3:] for line in changed[:_MAX_LISTED_FILES]]
        more = f" and {len(changed) - len(names)} more" if len(changed) > len(names) else ""
        yield f"The working tree has uncommitted changes: {', '.join(names)}{more}. Commit them."


def _check_version(root: Path, version: str) -> Iterator[str]:
    if version != VERSION:
        yield (
            f"VERSION is {version}, but clients/python/src/tapgate_client/__init__.py declares"
            f" {VERSION}. Change it there and run `make docs`."
        )
    outdated = [str(file.relative_to(root)) for file in list_outdated(root)]
    if outdated:
        yield f"Files with another version: {', '.join(outdated)}. Run `make docs`."


def _check_changelog(sections: dict[str, Section], version: str) -> Iterator[str]:
    section = sections.get(version)
    heading = f"`## {version} - YYYY-MM-DD`"
    if section is None:
        yield f"{_CHANGELOG} has no section {heading}. Move the unreleased changes there."
    elif section.date is None:
        yield f"The heading of {version} in {_CHANGELOG} has no date: write {heading}."
    elif "\n- " not in section.text:
        yield f"The section {version} in {_CHANGELOG} lists no changes."
    if section and sections.get(_UNRELEASED, Section(None, "")).text:
        yield f"{_CHANGELOG} has unreleased changes. Move them to the section {version}."


def _check_tag(root: Path, version: str, commit_id: str) -> Iterator[str]:
    tag = get_tag(version)
    if run("git", "tag", "--list", tag, folder=root).strip():
        tagged = run("git", "rev-parse", f"{tag}^{{commit}}", folder=root).strip()
        if tagged != commit_id:
            yield f"The tag {tag} is another commit, {tagged[:12]}. Choose a new version."
