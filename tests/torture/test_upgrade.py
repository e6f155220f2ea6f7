"""Rolling upgrades from the last 1.x release and to the next release, without a failed payment.

`make torture UPGRADE=1.1` and `UPGRADE=next` do the same with more nodes and operations.
"""

import io
import subprocess
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from tapgate import VERSION
from torture.upgrade.releases import (
    LAST_1X_ARCHIVE,
    LAST_1X_COMMIT,
    SOURCE_PATHS,
    build_next_release,
    get_this_release,
    unpack_last_1x,
)
from torture.upgrade.run import build_steps, count_by_release, list_tables, start_upgrade_run

pytestmark = [pytest.mark.failures, pytest.mark.refund]


async def test_no_payment_fails_while_two_releases_run_side_by_side(
    public_tmp_path: Path, database_url: str
) -> None:
    old = get_this_release()
    new = build_next_release(public_tmp_path / "next", await list_tables(database_url))
    async with start_upgrade_run(
        public_tmp_path, database_url, old, workers=[1, 1], rate=4, seed=5
    ) as run:
        steps = build_steps(run.target, old, new, is_thorough=False)
        await run.run_steps(steps, operations=40, report=print)
        assert run.findings.all == []
        assert run.failed_attempts == Counter()
        written = await count_by_release(database_url)
        assert written.keys() == {VERSION, new.version} and min(written.values()) > 10


async def test_no_payment_fails_during_the_upgrade_from_the_last_1x_release(
    public_tmp_path: Path, empty_database_url: str
) -> None:
    old, new = unpack_last_1x(public_tmp_path / "old"), get_this_release()
    assert old.schema < new.schema
    async with start_upgrade_run(
        public_tmp_path, empty_database_url, old, workers=[1, 1], rate=4, seed=6
    ) as run:
        steps = build_steps(run.target, old, new, is_thorough=False)
        await run.run_steps(steps, operations=40, report=print)
        assert run.findings.all == []
        assert run.failed_attempts == Counter()


def test_stored_source_is_the_commit_of_the_last_1x_release() -> None:
    command = ["git", "archive", "--format=tar", LAST_1X_COMMIT, SOURCE_PATHS]
    result = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, check=False
    )
    if result.returncode:
        pytest.skip("the clone does not contain the commit")
    assert read_files(LAST_1X_ARCHIVE.read_bytes()) == read_files(result.stdout)


def read_files(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        files = {item.name: members.extractfile(item) for item in members if item.isfile()}
        return {name: file.read() for name, file in files.items() if file}
