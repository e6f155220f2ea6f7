"""Benchmark runner, and search for missing values in the results."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


async def run_benchmark(*arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", *arguments),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


def list_missing_values(value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of empty values in the results."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from list_missing_values(item, f"{path}.{name}")
    elif isinstance(value, list):
        if not value:
            yield path
        for number, item in enumerate(value):
            yield from list_missing_values(item, f"{path}[{number}]")
    elif value is None or value == "":
        yield path
