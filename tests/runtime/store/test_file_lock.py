"""File locks: one holder at a time, and no descriptor remains open without a holder."""

import os
from pathlib import Path

from tapgate.runtime.store.file_lock import FileLock


def test_only_one_lock_holds_a_file(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.acquire()
    assert first.acquire()
    assert not second.acquire()
    first.release()
    assert second.acquire()


def test_lock_without_references_is_released(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.acquire()
    descriptor = lock.fileno()
    del lock
    assert FileLock(tmp_path / "lock").acquire()
    assert FileLock(tmp_path / "lock").acquire()  # not held by the line before
    assert os.open(tmp_path / "lock", os.O_RDONLY) == descriptor
    os.close(descriptor)
