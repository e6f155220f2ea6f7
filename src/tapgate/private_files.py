"""Files for the eyes of their folder's owner only: there are passwords and keys in them."""

import os
from collections.abc import Iterable
from pathlib import Path


def write(path: Path, lines: Iterable[str]) -> None:
    """In the place of what was there."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write("".join(f"{line}\n" for line in lines))


def read(path: Path) -> list[str]:
    """Nothing where there is no such file, or it is not for these eyes."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
