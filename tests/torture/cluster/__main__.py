"""Crash test for a cluster: `python -m torture.cluster`.

Kills and pauses cluster nodes under load and verifies that no acknowledged operation is
lost, duplicated or changed.
"""

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.cluster import ClusterError
from torture.cluster.faults import FAULT_KINDS
from torture.cluster.isolation import is_isolated, run_isolated
from torture.cluster.report import ClusterReport
from torture.cluster.run import run_cluster_rounds, start_cluster_run
from torture.findings import Findings
from torture.report import print_line


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="torture.cluster", description=__doc__)
    parser.add_argument("--rounds", type=int, help="number of rounds (default: one per kind)")
    parser.add_argument("--seed", type=int, help="seed of the plan (default: random)")
    parser.add_argument("--keep", action="store_true", help="always keep the data and logs")
    parser.add_argument(
        "--fault",
        choices=FAULT_KINDS,
        action="append",
        default=[],
        help="kind of fault, can be repeated (default: all)",
    )
    options = parser.parse_args(arguments)
    obstacle = run_isolated("torture.cluster", sys.argv[1:] if arguments is None else arguments)
    kinds = options.fault or list(FAULT_KINDS)
    skipped = [] if is_isolated() else [kind for kind in kinds if FAULT_KINDS[kind].is_isolated]
    for kind in skipped:
        print_line(f"Skipped: {kind}: needs mount and network namespaces ({obstacle})")
    kinds = [kind for kind in kinds if kind not in skipped]
    if not kinds:
        return 0
    if options.fault or skipped:
        options.fault = kinds
    if options.rounds is None:
        options.rounds = len(kinds)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1_000_000)
    report, findings = ClusterReport(seed, options.rounds), Findings(print_line)
    folder = Path(tempfile.mkdtemp(prefix="tapgate-torture-"))
    status = 0
    try:
        asyncio.run(_run(folder, seed, options, report, findings))
    except ClusterError as error:
        print(f"make torture CLUSTER=1: {error}", file=sys.stderr)
        status = 1
    except asyncio.CancelledError:
        print_line("Interrupted.")
        status = 130
    report.print_summary(findings, folder)
    if not options.keep and not findings.all and status != 1:
        shutil.rmtree(folder, ignore_errors=True)
    elif options.keep:
        print_line(f"Data and logs: {folder}")
    return 1 if findings.all else status


async def _run(
    folder: Path,
    seed: int,
    options: argparse.Namespace,
    report: ClusterReport,
    findings: Findings,
) -> None:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    async with start_cluster_run(folder, findings) as run:
        await run_cluster_rounds(run, seed, options.rounds, report, options.fault)


if __name__ == "__main__":
    sys.exit(main())
