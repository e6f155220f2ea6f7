"""Operating system user that runs the embedded PostgreSQL, which refuses to run as root."""

import fcntl
import os
import pwd
import stat
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

_SYSTEM_USER = "tapgate"
_FALLBACK_USER = "nobody"


class ServerUser(NamedTuple):
    uid: int
    gid: int

    @property
    def is_current_user(self) -> bool:
        return self.uid == os.geteuid()

    def popen_arguments(self) -> dict[str, Any]:
        """Return the `subprocess` arguments that start a process as this user."""
        if self.is_current_user:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def chown(self, folder: Path) -> None:
        if not self.is_current_user:
            os.chown(folder, self.uid, self.gid)

    def can_search(self, folder: Path) -> bool:
        """Return whether this user may search `folder`, its resolved path and all their parents."""
        real = folder.resolve()
        return self.is_current_user or all(
            self._has_access(path, search_only=True)
            for path in {folder, *folder.parents, real, *real.parents}
        )

    def can_run(self, programs: Path) -> bool:
        """Return whether this user may read all files in a folder and execute its programs."""
        return self.can_search(programs) and all(
            self._can_use(path) for path in programs.resolve().rglob("*")
        )

    def _can_use(self, path: Path) -> bool:
        if not path.is_symlink():
            return self._has_access(path)
        target = path.resolve()
        if not target.exists():
            return True  # a dangling link is unusable for every user
        if target.is_dir():
            return self.can_run(target)
        return self.can_search(target.parent) and self._has_access(target)

    def _has_access(self, path: Path, *, search_only: bool = False) -> bool:
        """Return whether the mode bits grant access. The server has no supplementary groups."""
        status = path.stat()
        mode = status.st_mode
        shift = 6 if status.st_uid == self.uid else 3 if status.st_gid == self.gid else 0
        granted = mode >> shift & 0o7
        needed = 0o1 if search_only else 0o5 if mode & stat.S_IXUSR else 0o4
        return self.is_current_user or granted & needed == needed


def resolve_server_user(pgdata: Path) -> ServerUser:
    """Return the current user; if that is root, the cluster's owner or a system user."""
    if os.geteuid() != 0:
        return ServerUser(os.geteuid(), os.getegid())
    if pgdata.exists() and (status := pgdata.stat()).st_uid != 0:
        return ServerUser(status.st_uid, status.st_gid)
    return (
        find_user(_SYSTEM_USER)
        or create_user()
        or find_user(_FALLBACK_USER)
        or ServerUser(65534, 65534)
    )


def create_user() -> ServerUser | None:
    """Create the system user. Return None if `useradd` is missing or fails.

    Concurrent runs of `useradd` overwrite each other's entries. A lock ensures that one process
    creates the user and the others find it.
    """
    command = ["useradd", "--system", "--user-group", "--no-create-home"]
    with Path("/etc/passwd").open() as accounts:
        fcntl.flock(accounts, fcntl.LOCK_EX)
        if found := find_user(_SYSTEM_USER):
            return found
        try:
            subprocess.run(  # noqa: S603
                [*command, "--shell", "/usr/sbin/nologin", _SYSTEM_USER],
                capture_output=True,
                check=False,
            )
        except FileNotFoundError:
            return None
        return find_user(_SYSTEM_USER)


def find_user(name: str) -> ServerUser | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return ServerUser(entry.pw_uid, entry.pw_gid)
