"""Crash test for a running gateway: `python -m torture`.

Repeatedly kills processes under load and verifies that no acknowledged operation is lost,
duplicated or changed.
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

from torture.findings import Findings
from torture.installation import Installation
from torture.report import Report, print_line
from torture.run import run_rounds, start_run

_EPILOG = """
Each round plans about 270 operations and one or two faults. The plan depends only on the seed and
the round number, so the same seed repeats it exactly, except for the machine's timing. If there are
findings, the exit status is 1, and the data folder and the logs are kept.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="torture", description=__doc__, epilog=_EPILOG)
    parser.add_argument("--rounds", type=int, default=20, help="number of rounds (default: 20)")
    parser.add_argument("--seed", type=int, help="seed of the plan (default: random)")
    parser.add_argument("--keep", action="store_true", help="always keep the data and logs")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1_000_000)
    report = Report(seed, options.rounds)
    folder = Path(tempfile.mkdtemp(prefix="tapgate-torture-"))
    installation, findings = Installation(folder), Findings(print_line)
    interrupted = False
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stop as on Ctrl-C
    try:
        asyncio.run(_run_torture(installation, seed, options.rounds, report, findings))
    except KeyboardInterrupt:
        interrupted = True
        print_line("Interrupted.")
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # already stopping
        installation.stop()
    report.print_summary(findings, folder)
    if options.keep:
        print_line(f"Data and logs: {folder}")
    elif not findings.all:
        shutil.rmtree(folder, ignore_errors=True)
    if findings.all:
        return 1
    return 130 if interrupted else 0  # the shell's exit status for Ctrl-C


async def _run_torture(
    installation: Installation, seed: int, rounds: int, report: Report, findings: Findings
) -> None:
    async with start_run(installation, findings) as run:
        await run_rounds(run, seed, rounds, report)


if __name__ == "__main__":
    sys.exit(main())
