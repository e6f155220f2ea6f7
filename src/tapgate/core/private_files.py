"""Files that only their owner can read, because they contain passwords and keys."""

import os
from collections.abc import Iterable
from pathlib import Path


def write(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a private file, replacing an existing file."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write("".join(f"{line}\n" for line in lines))


def read(path: Path) -> list[str]:
    """Return a file's lines, or an empty list if it is missing or not readable."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
