"""Runs the `tapgate` command."""

import asyncio
import re
import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from drivers.forked import ForkedProcess, become, start_forked
from drivers.processes import (
    TAPGATE_EXECUTABLE,
    build_environ,
)
from tapgate.runtime.store.server_user import ServerUser

#: Printed on a slow machine.
_PROGRESS_LINES = re.compile(r"^(?:Saving|Checking|Restoring): .*\n", re.MULTILINE)


async def run_tapgate(
    data: Path,
    *arguments: str | Path,
    url: str = "",
    cwd: Path | None = None,
    user: ServerUser | None = None,
    while_running: Callable[[ForkedProcess], Any] | None = None,
    max_file_bytes: int | None = None,
    stdout: int = asyncio.subprocess.PIPE,
    **variables: str,
) -> tuple[int | None, bytes, str]:
    """Run a command and return its exit status, output and error output without progress."""
    process_options: dict[str, Any] = {}
    if user is not None:
        process_options["preexec_fn"] = partial(become, user)
    if max_file_bytes is not None:
        sizes = (max_file_bytes, max_file_bytes)
        process_options["preexec_fn"] = partial(resource.setrlimit, resource.RLIMIT_FSIZE, sizes)
    process = await start_forked(
        TAPGATE_EXECUTABLE,
        *arguments,
        cwd=cwd,
        env=build_environ(data, TAPGATE_DATABASE_URL=url, **variables),
        stdout=stdout,
        stderr=asyncio.subprocess.PIPE,
        **process_options,
    )
    if while_running is not None:
        await while_running(process)
    output, error = await process.communicate()
    return process.returncode, output, _PROGRESS_LINES.sub("", error.decode())
