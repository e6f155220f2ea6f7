"""Bill of materials (CycloneDX): the packages that a release of the server runs with.

The server's wheel is installed with the locked packages of the image, and CycloneDX's own tool
reads that installation. So the wheel is known to install, and the bill names licenses and what
requires what, which a lock file does not.
"""

import os
import sys
from pathlib import Path

from tools.release import ReleaseError
from tools.release.checks import Commit
from tools.release.commands import run


def install_server(source: Path, packages: Path, environment: Path, version: str) -> Path:
    """Install the server's wheel into a new environment; return the environment's Python."""
    uv = Path(sys.executable).parent / "uv"
    python = environment / "bin" / "python"
    run(uv, "venv", "--quiet", "--python", sys.executable, environment, folder=source)
    install = (uv, "pip", "install", "--quiet", "--system-certs", "--python", python)
    lock = source / "deploy" / "requirements.lock"
    run(*install, "--require-hashes", "--requirement", lock, folder=source)
    wheels = ("--no-index", "--find-links", packages)
    run(*install, "--no-deps", *wheels, f"tapgate=={version}", folder=source)
    run(*install, "--no-deps", *wheels, f"tapgate-client=={version}", folder=source)
    run(uv, "pip", "check", "--python", python, folder=source)
    return python


def require_version(python: Path, version: str, folder: Path) -> None:
    """Require the installed command to name the version."""
    output = run(python.parent / "tapgate", "--version", folder=folder)
    if f"tapgate {version}" not in output.splitlines()[0].lower():
        raise ReleaseError(f"The installed command names another version: {output}")


def write_bill(source: Path, python: Path, file: Path, commit: Commit) -> None:
    """Write the bill of materials of an environment."""
    run(
        Path(sys.executable).parent / "cyclonedx-py",
        *("environment", "--pyproject", source / "pyproject.toml", "--output-reproducible"),
        *("--output-format", "JSON", "--output-file", file, python),
        folder=source,
        SOURCE_DATE_EPOCH=commit.time,
        PATH=os.defpath,
    )
