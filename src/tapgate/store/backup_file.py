"""The file of a backup: an archive of `pg_dump`, a line that says what is in it, and its checksum.

`pg_restore` reads an archive to its end and no further, so it opens the file as it is. The last two
lines are text: `tail -n 2` shows them.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from tapgate.store import StoreError

FORMAT = 1
_CHECKSUM = b"tapgate-backup sha256="
_LAST_LINE = len(_CHECKSUM) + 64 + 1
_LONGEST_MANIFEST = 1 << 20
_CHUNK = 1 << 20


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What was saved, all of it as of one moment: what comes back must be the same."""

    tapgate: str
    postgres: str
    #: Whatever was acknowledged before it is in the backup.
    moment: datetime
    #: name -> checksum
    migrations: dict[str, str]
    #: None: nothing was ever started on this database.
    currency: str | None
    secret_fingerprint: str | None
    #: table -> rows
    tables: dict[str, int]
    #: A figure of the books or the audit log -> its value.
    figures: dict[str, str]
    archive_bytes: int
    format: int = FORMAT


class _Format(msgspec.Struct):
    format: int


class BackupWriter:
    """Writes the archive as it comes, then the manifest and the checksum."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.written = 0

    def write(self, data: bytes) -> None:
        self._hash.update(data)
        self._file.write(data)
        self.written += len(data)

    def finish(self, manifest: Manifest) -> None:
        self.write(b"\n" + msgspec.json.encode(manifest) + b"\n")
        self.write(_CHECKSUM + self._hash.hexdigest().encode() + b"\n")
        self._file.flush()


def read_manifest(file: BinaryIO) -> Manifest:
    """What is in the file, every byte of which was read to know that it is as it was written."""
    size = file.seek(0, os.SEEK_END)
    start = max(0, size - _LAST_LINE - _LONGEST_MANIFEST)
    file.seek(start)
    end = file.read()
    last_line = end[-_LAST_LINE:]
    if not last_line.startswith(_CHECKSUM):
        raise StoreError("it is not a backup of Tapgate, or its end is missing")
    if _sha256(file, size - _LAST_LINE) != last_line[len(_CHECKSUM) : -1]:
        raise StoreError("it is damaged: its checksum is not the one it was written with")
    line = end[: -_LAST_LINE - 1].rpartition(b"\n")[2]
    try:
        if msgspec.json.decode(line, type=_Format).format > FORMAT:
            raise StoreError("it was made by a newer Tapgate")
        return msgspec.json.decode(line, type=Manifest)
    except msgspec.MsgspecError:
        raise StoreError("it is damaged: what it contains cannot be read") from None


def _sha256(file: BinaryIO, size: int) -> bytes:
    file.seek(0)
    found = hashlib.sha256()
    while size > 0 and (data := file.read(min(size, _CHUNK))):
        found.update(data)
        size -= len(data)
    return found.hexdigest().encode()


@contextlib.contextmanager
def new_file(path: Path, *, replace: bool) -> Iterator[BinaryIO]:
    """A file for its owner alone that has its name only once all of it is on the disk."""
    if not replace and path.exists():
        raise _exists(path)
    try:
        descriptor, draft = tempfile.mkstemp(".unfinished", f".{path.name}.", path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(descriptor)
            _name(Path(draft), path, replace=replace)
        finally:
            Path(draft).unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error


def _name(draft: Path, path: Path, *, replace: bool) -> None:
    if replace:
        draft.replace(path)
    else:
        try:
            path.hardlink_to(draft)  # unlike a renaming, never over another file
        except FileExistsError:
            raise _exists(path) from None
        except OSError:  # a file system without such links
            draft.rename(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _exists(path: Path) -> StoreError:
    return StoreError(f"{path} exists already; --force replaces it")
