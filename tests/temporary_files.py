"""Temporary files in memory.

A new database has more than a thousand files. On a disk, creating and deleting them takes ten times
the CPU time that it takes in memory.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

import psutil

_MEMORY_FOLDER: Final = Path("/dev/shm")
_MIN_FREE_BYTES: Final = 8 << 30


def keep_in_memory() -> None:
    """Use memory for temporary files if there is plenty of it and TMPDIR is not set."""
    if "TMPDIR" in os.environ or not _MEMORY_FOLDER.is_dir():
        return
    free_bytes = min(shutil.disk_usage(_MEMORY_FOLDER).free, psutil.virtual_memory().available)
    is_executable = not os.statvfs(_MEMORY_FOLDER).f_flag & os.ST_NOEXEC
    if free_bytes > _MIN_FREE_BYTES and is_executable:
        os.environ["TMPDIR"] = str(_MEMORY_FOLDER)  # also for the processes that tests start
        tempfile.tempdir = None
