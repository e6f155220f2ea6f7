"""As which system user the embedded PostgreSQL runs: it refuses to run as root."""

import os
import pwd
import stat
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

_OWN_USER = "tapgate"
_LAST_RESORT = "nobody"


class ServerUser(NamedTuple):
    uid: int
    gid: int

    @property
    def is_this_process(self) -> bool:
        return self.uid == os.geteuid()

    def popen_arguments(self) -> dict[str, Any]:
        """How `subprocess` starts a process as this user."""
        if self.is_this_process:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def give(self, folder: Path) -> None:
        if not self.is_this_process:
            os.chown(folder, self.uid, self.gid)

    def let_through_to(self, folder: Path) -> None:
        """Let this user pass through the folders above, without letting it list them."""
        if self.is_this_process:
            return
        for above in folder.parents:
            status = above.stat()
            owns_it = status.st_uid == self.uid and status.st_mode & stat.S_IXUSR
            if not owns_it and not status.st_mode & stat.S_IXOTH:
                above.chmod(stat.S_IMODE(status.st_mode) | stat.S_IXOTH)

    def let_run(self, programs: Path) -> None:
        """Let this user run what was installed there, also when it was installed privately."""
        if self.is_this_process:
            return
        self.let_through_to(programs)
        for path in (programs, *programs.rglob("*")):
            mode = stat.S_IMODE(path.stat().st_mode)
            wanted = mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0)
            if mode != wanted:
                path.chmod(wanted)


def server_user(pgdata: Path) -> ServerUser:
    """This process's user; as root the owner of the database there is, else one of our own."""
    if os.geteuid() != 0:
        return ServerUser(os.geteuid(), os.getegid())
    if pgdata.exists() and (status := pgdata.stat()).st_uid != 0:
        return ServerUser(status.st_uid, status.st_gid)
    return _find(_OWN_USER) or _create() or _find(_LAST_RESORT) or ServerUser(65534, 65534)


def _create() -> ServerUser | None:
    command = ["useradd", "--system", "--user-group", "--no-create-home"]
    try:
        subprocess.run(  # noqa: S603
            [*command, "--shell", "/usr/sbin/nologin", _OWN_USER], capture_output=True, check=False
        )
    except FileNotFoundError:
        return None
    # Whatever it answered: another process may have created the user at the same time.
    return _find(_OWN_USER)


def _find(name: str) -> ServerUser | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return ServerUser(entry.pw_uid, entry.pw_gid)
