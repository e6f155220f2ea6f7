"""Rolling upgrade under load: `python -m torture.upgrade`.

Replaces an installation's nodes one by one by another release, and verifies that no operation
fails at the first try, and that none is lost, duplicated or changed.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tapgate.runtime.store.embedded import EmbeddedPostgres
from tapgate.runtime.store.migrate import migrate
from torture.report import print_line
from torture.upgrade.releases import (
    Release,
    build_next_release,
    check_out,
    get_this_release,
    unpack_last_1x,
)
from torture.upgrade.run import (
    UpgradeRun,
    build_steps,
    count_by_release,
    list_tables,
    start_upgrade_run,
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="torture.upgrade", description=__doc__)
    parser.add_argument(
        "--from",
        dest="reference",
        help="release to upgrade to this one: 1.1 or a Git reference (default: upgrade this release"
        " to a generated one, which adds a column to every table)",
    )
    parser.add_argument("--operations", type=int, default=5_000)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--rate", type=float, default=40.0, help="operations per second")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    options = parser.parse_args(arguments)
    print_line(f"Seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="tapgate-upgrade-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL may run as another user
        postgres = EmbeddedPostgres(folder / "database")
        postgres.start()
        try:
            return asyncio.run(_run(folder, postgres.url, options))
        finally:
            postgres.stop()


async def _run(folder: Path, url: str, options: argparse.Namespace) -> int:
    if options.reference is None:
        old = get_this_release()
        await migrate(url)
        new = build_next_release(folder / "next", await list_tables(url))
    else:
        old, new = _get_earlier_release(options.reference, folder / "old"), get_this_release()
    began = time.monotonic()

    def report(line: str) -> None:
        print_line(f"{time.monotonic() - began:6.1f} s  {line}")

    async with start_upgrade_run(
        folder, url, old, workers=[2] * options.nodes, rate=options.rate, seed=options.seed
    ) as run:
        steps = build_steps(run.target, old, new, is_thorough=True)
        await run.run_steps(steps, operations=options.operations, report=report)
        await _print_result(run, new, url)
    return 1 if run.findings.all or run.failed_attempts else 0


def _get_earlier_release(reference: str, folder: Path) -> Release:
    return unpack_last_1x(folder) if reference == "1.1" else check_out(reference, folder)


async def _print_result(run: UpgradeRun, new: Release, url: str) -> None:
    declines = sum((stats.declines for stats in run.stats), Counter[str]())
    print_line(f"operations            {run.operation_count}")
    print_line(f"  succeeded           {sum(stats.succeeded for stats in run.stats)}")
    print_line(f"  declined            {declines.total()}")
    print_line(f"  duplicates          {sum(stats.duplicates for stats in run.stats)}")
    print_line(f"  replays             {sum(stats.replays for stats in run.stats)}")
    print_line(f"failed attempts       {run.failed_attempts.total()} {dict(run.failed_attempts)}")
    print_line(f"longest request       {max(s.longest_wait_seconds for s in run.stats):.1f} s")
    print_line(f"events received       {run.event_receiver.event_count}")
    print_line(f"findings              {len(run.findings.all)}")
    if new.has_contract:
        print_line(f"written by release    {await count_by_release(url)}")


if __name__ == "__main__":
    sys.exit(main())
