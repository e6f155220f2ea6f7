"""Programs that tests of deployment files run."""

import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def find_program(name: str) -> str:
    # Debian installs servers in /usr/sbin, outside a user's PATH.
    folders = (Path(sys.executable).parent, os.environ.get("PATH", ""), "/usr/local/sbin:/usr/sbin")
    program = shutil.which(name, path=":".join(map(str, folders)))
    if program is None:
        pytest.skip(f"{name} is not installed")
    return program
