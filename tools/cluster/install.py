"""Unpack Debian's etcd and HAProxy into a private folder: `python -m tools.cluster.install FOLDER`.

Installing the packages would start system services and requires root. Unpacking does neither.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.cluster import ClusterError
from tools.cluster.programs import PACKAGES, find_system_program

_INSTALL_PATTERN = re.compile(r"^Inst (\S+)", re.MULTILINE)


def main(arguments: Sequence[str]) -> int:
    missing = [package for name, package in PACKAGES.items() if find_system_program(name) is None]
    try:
        if missing:
            unpack(missing, Path(arguments[0]))
    except ClusterError as error:
        print(f"make cluster: {error}", file=sys.stderr)
        return 1
    return 0


def unpack(packages: Sequence[str], folder: Path) -> None:
    """Download the packages and their missing dependencies, and unpack them into the folder."""
    hint = f"{' and '.join(packages)} cannot be downloaded"
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise ClusterError(f"{hint}: install them with your system's package manager")
    advice = f"{hint}: run `sudo apt-get update`, or `sudo apt-get install {' '.join(packages)}`"
    plan = _run("apt-get", "-s", "-qq", "--no-install-recommends", "install", *packages)
    names = _INSTALL_PATTERN.findall(plan.stdout)
    if plan.returncode or not names:
        raise ClusterError(advice)
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)  # apt drops root privileges to download
        if _run("apt-get", "-qq", "download", *names, folder=Path(name)).returncode:
            raise ClusterError(advice)
        folder.mkdir(parents=True, exist_ok=True)
        for archive in sorted(Path(name).glob("*.deb")):
            if _run("dpkg-deb", "-x", str(archive), str(folder)).returncode:
                raise ClusterError(f"{archive.name} cannot be unpacked into {folder}")


def _run(*command: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        command, cwd=folder, capture_output=True, text=True, check=False
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
