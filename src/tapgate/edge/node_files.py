"""Where the processes of one node keep what they count together."""

import os
import tempfile
from hashlib import blake2b
from pathlib import Path

import structlog

_log = structlog.get_logger()


def shared_folder(data_dir: Path) -> Path:
    """A folder in the data folder; in the machine's temporary one when that cannot be written."""
    folder = data_dir / "shared"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        _log.warning("data_dir.not_writable", error=type(error).__name__)
    if os.access(folder, os.W_OK):
        return folder
    name = blake2b(bytes(data_dir.absolute()), digest_size=8).hexdigest()
    folder = Path(tempfile.gettempdir()) / f"tapgate-{os.geteuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} belongs to somebody else")
    return folder


def allocate(file: int, size: int) -> None:
    """All of it now, where the system can: a disk that is full later would kill the process at its
    first write into mapped memory."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    elif os.fstat(file).st_size < size:
        os.truncate(file, size)
