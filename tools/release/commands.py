"""Programs that a release build runs."""

import os
import subprocess
from pathlib import Path

from tools.release import ReleaseError


def run(*command: str | Path, folder: Path, **environ: str) -> str:
    """Run a program; return its output. A failure has the program's output."""
    result = subprocess.run(  # noqa: S603
        command,
        cwd=folder,
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode:
        name = " ".join(map(str, command))
        raise ReleaseError(f"{name} failed with status {result.returncode}:\n{result.stdout}")
    return result.stdout
