"""Assertion rewriting, divided between the test processes.

In a fresh clone, each process would rewrite and compile every test file, which takes longer than
the rest of the collection. Instead, each process rewrites its share and reads the other files from
the cache.
"""

import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


def rewrite_share(config: pytest.Config) -> None:
    """Rewrite this process's share of the test files, unless they are in the cache."""
    workerinput = getattr(config, "workerinput", None)  # only set in processes of xdist
    if workerinput is None or sys.dont_write_bytecode:
        return
    number = int(workerinput["workerid"].removeprefix("gw"))
    state = config.stash[rewrite.assertstate_key]
    for path in _list_test_files(config)[number :: workerinput["workercount"]]:
        cached = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
        if not cached.exists():
            cached.parent.mkdir(exist_ok=True)
            source_hash, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(state, code, source_hash, cached)


def _list_test_files(config: pytest.Config) -> list[Path]:
    folders = [Path(config.invocation_params.dir, argument) for argument in config.args]
    return [path for folder in folders for path in sorted(folder.rglob("test_*.py"))]
