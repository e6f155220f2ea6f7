"""Rolling upgrade to the next release and back, under load, without a failed payment.

`make torture UPGRADE=next` does the same with more nodes and operations.
"""

from collections import Counter
from pathlib import Path

import pytest

from tapgate import VERSION
from torture.upgrade.releases import build_next_release, get_this_release
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
