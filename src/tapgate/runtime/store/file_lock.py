"""File lock that is released when the last process holding it exits, even after a crash."""

import fcntl
import os
import weakref
from pathlib import Path


class FileLock:
    """A lock that its process holds until it is released or nothing refers to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.descriptor: int | None = None

    def acquire(self) -> bool:
        """Acquire the lock without waiting; return whether this object now holds it."""
        if self.descriptor is not None:
            return True
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self.descriptor = descriptor
        self._close = weakref.finalize(self, os.close, descriptor)
        self._close.atexit = False
        return True

    def fileno(self) -> int:
        if self.descriptor is None:
            raise RuntimeError("the lock is not held")
        return self.descriptor

    def release(self) -> None:
        """Release the lock. A process that inherited the descriptor still holds it."""
        if self.descriptor is not None:
            self._close()
            self.descriptor = None
