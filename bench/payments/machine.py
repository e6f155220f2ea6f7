"""Machine description, without which results cannot be interpreted."""

import os
import platform
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import psutil

from bench.payments.results import Machine

_FLUSH_COUNT = 200
_PAGE = b"\0" * 8192


def describe_machine(folder: Path, postgres_version: str) -> Machine:
    return Machine(
        processor=_get_processor(),
        cores=os.cpu_count() or 1,
        memory_gb=round(psutil.virtual_memory().total / 1e9, 1),
        disk=_get_disk(folder),
        flush_us=_measure_flush_us(folder),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        postgres=postgres_version,
        python=platform.python_version(),
        load_before=round(os.getloadavg()[0], 2),
    )


def _get_processor() -> str:
    if sys.platform == "darwin":
        return _run_program("sysctl", "-n", "machdep.cpu.brand_string") or platform.processor()
    for line in _run_program("lscpu").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "Model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _run_program(program: str, *arguments: str) -> str:
    if shutil.which(program) is None:
        return ""
    result = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    return result.stdout.strip()


def _get_disk(folder: Path) -> str:
    ancestors = {str(folder), *map(str, folder.parents)}
    partitions = [part for part in psutil.disk_partitions(all=True) if part.mountpoint in ancestors]
    if not partitions:
        return "unknown"
    nearest = max(partitions, key=lambda part: len(part.mountpoint))
    return f"{nearest.fstype} on {nearest.device}"


def _measure_flush_us(folder: Path) -> float:
    flush = getattr(os, "fdatasync", os.fsync)
    path, durations = folder / "flush", []
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        for _ in range(_FLUSH_COUNT):
            os.pwrite(file, _PAGE, 0)
            started = perf_counter()
            flush(file)
            durations.append(perf_counter() - started)
    finally:
        os.close(file)
        path.unlink()
    return round(statistics.median(durations) * 1e6, 1)
