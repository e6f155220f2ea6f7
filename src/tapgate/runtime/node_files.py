"""Memory-mapped files with numbers that a node's processes share."""

import mmap
import os
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import structlog

from tapgate.runtime.store.file_lock import FileLock

_log = structlog.get_logger()

_MAX_WORKERS = 1024
_MAX_SOCKET_PATH_BYTES = 100


def get_shared_folder(data_dir: Path) -> Path:
    """Return the folder for shared files, created if necessary.

    It is in the data folder, or in the system's temporary folder if the data folder is not
    writable. Raise PermissionError if that temporary folder is not private.
    """
    folder = data_dir / "shared"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        _log.warning("data_dir.not_writable", error=type(error).__name__)
    if os.access(folder, os.W_OK):
        return folder
    return _get_temporary_folder(data_dir)


def get_socket_path(data_dir: Path, name: str) -> Path:
    """Return the path for a Unix socket that a node's processes share.

    It is in the shared folder, unless the path would be too long for the operating system.
    """
    path = get_shared_folder(data_dir).absolute() / name
    if len(bytes(path)) <= _MAX_SOCKET_PATH_BYTES:
        return path
    return _get_temporary_folder(data_dir) / name


def _get_temporary_folder(data_dir: Path) -> Path:
    name = blake2b(bytes(data_dir.absolute()), digest_size=8).hexdigest()
    folder = Path(tempfile.gettempdir()) / f"tapgate-{os.geteuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise PermissionError(f"{folder} is not private to this user")
    return folder


def allocate(file: int, size: int) -> None:
    """Allocate disk space for the whole file if the system supports it, or else only extend it.

    Without allocated space, a write to mapped memory would kill the process when the disk is full.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    elif os.fstat(file).st_size < size:
        os.truncate(file, size)


class WorkerFile:
    """Memory-mapped numbers that one worker writes and all workers on the node read.

    The worker locks the file while it runs, so a write needs no further lock and no system call. A
    new worker takes over a dead worker's file, so the number of files does not grow with restarts.
    The first number in the file identifies the layout of the others.
    """

    def __init__(self, folder: Path, layout: float, numbers: int) -> None:
        self._folder = folder
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._layout = layout
        self._size = 8 * (1 + numbers)
        self._lock = self._lock_file()
        self._map = mmap.mmap(self._lock.fileno(), self._size)
        self._cells = memoryview(self._map).cast("d")
        #: This worker's numbers, without the layout.
        self.values = self._cells[1:]

    def read_all(self) -> Iterator[Sequence[float]]:
        """Yield the numbers of each file with the same layout, including dead workers' files."""
        for path in self._folder.glob("*.counts"):
            cells = self._read_file(path)
            if cells is not None:
                yield cells[1:]

    def close(self) -> None:
        self.values.release()
        self._cells.release()
        self._map.close()
        self._lock.release()

    def _lock_file(self) -> FileLock:
        """Lock the first file that no live worker uses. Reset it if its layout differs."""
        for number in range(_MAX_WORKERS):
            path = self._folder / f"{number}.counts"
            lock = FileLock(path)
            if lock.acquire():
                if self._read_file(path) is None:
                    os.truncate(lock.fileno(), 0)
                    allocate(lock.fileno(), self._size)
                    os.pwrite(lock.fileno(), array("d", [self._layout]).tobytes(), 0)
                return lock
        raise RuntimeError("too many workers share this folder")

    def _read_file(self, path: Path) -> Sequence[float] | None:
        cells = array("d")
        data = path.read_bytes()
        if len(data) != self._size:
            return None
        cells.frombytes(data)
        return cells if cells[0] == self._layout else None
