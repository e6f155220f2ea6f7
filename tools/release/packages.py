"""Packages of a release: server and client for Python, and the TypeScript client.

They are built in an export of the commit, so ignored and untracked files cannot get in. Wheels are
built from the source distribution, so it is complete. Two builds of a commit give the same files.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.release import ReleaseError
from tools.release.checks import Commit
from tools.release.commands import run

_PYTHON_CLIENT: Final = Path("clients/python")
_TYPESCRIPT_CLIENT: Final = Path("clients/typescript")
_SOURCE_DATE: Final = "SOURCE_DATE_EPOCH"


def export_commit(root: Path, commit: Commit, folder: Path) -> Path:
    """Unpack the commit's files into a new folder; return the folder."""
    archive = folder / "source.tar"
    run("git", "archive", "--output", archive, commit.id, folder=root)
    source = folder / "source"
    source.mkdir()
    run("tar", "-xf", archive, folder=source)
    return source


def build_packages(source: Path, output: Path, scratch: Path, time: str) -> Iterator[Path]:
    """Build all packages of the project in `source`; yield their files."""
    yield from build_python_package(source, output, scratch, time)
    yield from build_python_package(source / _PYTHON_CLIENT, output, scratch, time)
    yield build_typescript_package(source / _TYPESCRIPT_CLIENT, output)


def build_python_package(
    project: Path, output: Path, scratch: Path, time: str
) -> tuple[Path, Path]:
    """Build a source distribution, and a wheel from it."""
    sdist = _build("sdist", project, output, time)
    unpacked = scratch / sdist.name.removesuffix(".tar.gz")
    run("tar", "-xzf", sdist, folder=scratch)
    return sdist, _build("wheel", unpacked, output, time)


def _build(target: str, project: Path, output: Path, time: str) -> Path:
    before = {*output.iterdir()}
    command = (sys.executable, "-m", "hatchling", "build", "--target", target)
    run(*command, "--directory", output, folder=project, **{_SOURCE_DATE: time})
    (file,) = {*output.iterdir()} - before
    return file


def build_typescript_package(project: Path, output: Path) -> Path:
    if shutil.which("npm") is None:
        raise ReleaseError("npm is required for the TypeScript package. Install Node 20 or newer.")
    quiet = ("--no-audit", "--no-fund", "--silent")
    run("npm", "ci", "--ignore-scripts", *quiet, folder=project)
    packed = run("npm", "pack", *quiet, "--pack-destination", output, folder=project)
    return output / packed.splitlines()[-1]
