"""Worker process open-file limit."""

import subprocess
import sys

_SCRIPT = """
import resource
from tapgate.http import worker

resource.setrlimit(resource.RLIMIT_NOFILE, (64, {hard}))

async def main():
    print(*resource.getrlimit(resource.RLIMIT_NOFILE))

worker.run(main)
"""


def test_worker_raises_the_soft_limit_to_the_hard_limit() -> None:
    for hard in (64, 512):
        result = subprocess.run(
            [sys.executable, "-c", _SCRIPT.format(hard=hard)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert result.stdout.split() == [str(hard)] * 2
