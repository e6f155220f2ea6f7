"""Writes the version into package files, deployment templates and documents that contain it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tapgate_client import VERSION

_NUMBER: Final = r"\d+\.\d+\.\d+"
#: Files relative to the project, and what precedes each version in them.
PLACES: Final = {
    "pyproject.toml": (r'^version = "', "tapgate-client=="),
    "clients/python/pyproject.toml": (r'^version = "',),
    "clients/typescript/package.json": (r'^  "version": "',),
    "clients/typescript/package-lock.json": (r'^(?:      |  )"name": "tapgate",\n *"version": "',),
    ".containerignore": ("tapgate-", "tapgate_client-"),
    "deploy/Containerfile": ("tapgate:", "tapgate-", "tapgate_client-"),
    "deploy/compose/compose.yaml": ("tapgate:",),
    "deploy/helm/tapgate/Chart.yaml": (r"^version: ", r'^appVersion: "'),
    "docs/deploying.md": (r"tapgate[-:]", "tapgate_client-"),
    "docs/sdk.md": ("tapgate_client-",),
    "docs/typescript.md": ("tapgate-",),
}


def write_version(root: Path) -> Iterator[Path]:
    """Write the version into all places; yield changed files."""
    for file, text in _iter_changes(root):
        file.write_text(text)
        yield file


def list_outdated(root: Path) -> list[Path]:
    """Return the files that contain another version."""
    return [file for file, _ in _iter_changes(root)]


def _iter_changes(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files with another version, and what they must contain."""
    for name, prefixes in PLACES.items():
        file = root / name
        text = file.read_text()
        changed = text
        for prefix in prefixes:
            pattern = re.compile(f"({prefix}){_NUMBER}", re.MULTILINE)
            changed, count = pattern.subn(rf"\g<1>{VERSION}", changed)
            if count == 0:
                raise ValueError(f"{name} has no version after {prefix!r}")
        if changed != text:
            yield file, changed
