"""Own mount and network namespaces for faults of disks and networks.

They end with the run's processes, so an aborted run leaves no mount and no route behind.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

#: Address at which one gateway reaches the database, so that it alone can lose the way to it.
DATABASE_ADDRESS: Final = "10.77.0.3"
_DISK_BYTES: Final = 768 * 1024 * 1024
#: What the file system may need to record a large file.
_METADATA_BYTES: Final = 1024 * 1024
_VARIABLE: Final = "TAPGATE_TORTURE_ISOLATED"
_CUT_RULE: Final = "pref 10 to 10.77.0.3 lookup 77"
#: Packets that leave by the interface `cut` reach nobody. The rule for local addresses moves down,
#: so that a rule before it can divert packets to one of them.
_NETWORK: Final = f"""
    ip link set lo up
    ip addr add {DATABASE_ADDRESS}/32 dev lo
    ip link add cut type veth peer name void
    ip link set cut up
    ip link set void up
    ip neigh add {DATABASE_ADDRESS} lladdr 02:00:00:00:00:01 dev cut nud permanent
    ip route add {DATABASE_ADDRESS} dev cut table 77
    ip rule add pref 100 lookup local
    ip rule del pref 0
"""


def run_isolated(module: str, arguments: Sequence[str]) -> str:
    """Continue as this module in new namespaces, or return why that is not possible."""
    if is_isolated():
        return ""
    probe = _NETWORK.strip().replace("\n", "&&")
    command = ["unshare", "--mount", "--net"]
    try:
        subprocess.run([*command, "sh", "-c", probe], check=True, capture_output=True)
        os.environ[_VARIABLE] = "1"
        os.execvp(command[0], [*command, sys.executable, "-m", module, *arguments])
    except OSError as error:
        return f"unshare: {error.strerror}"
    except subprocess.CalledProcessError as error:
        return str(error.stderr.decode().strip().splitlines()[-1])


def is_isolated() -> bool:
    return _VARIABLE in os.environ


def prepare_network() -> None:
    for line in _NETWORK.strip().splitlines():
        _run(*line.split())


def cut_database_address() -> None:
    """Let packets between one gateway and the database disappear."""
    _run("ip", "rule", "add", *_CUT_RULE.split())


def restore_database_address() -> None:
    _run("ip", "rule", "del", *_CUT_RULE.split())


class SmallDisk(msgspec.Struct, frozen=True):
    """A file system of its own at a folder."""

    folder: Path

    def mount(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        image = self.folder.with_suffix(".img")
        with image.open("wb") as file:
            file.truncate(_DISK_BYTES)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", str(image))
        _run("mount", "-o", "loop", str(image), str(self.folder))

    def unmount(self) -> None:
        _run("umount", "--lazy", str(self.folder))

    def fill(self) -> None:
        """Leave no free byte."""
        disk = os.statvfs(self.folder)
        free_bytes = disk.f_bavail * disk.f_frsize
        with (self.folder / "filler").open("wb", buffering=0) as file:
            os.posix_fallocate(file.fileno(), 0, max(0, free_bytes - _METADATA_BYTES))
            file.seek(0, os.SEEK_END)
            with contextlib.suppress(OSError):  # at the end of the disk
                while True:
                    file.write(b"\0" * disk.f_frsize)

    def free(self) -> None:
        (self.folder / "filler").unlink(missing_ok=True)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
