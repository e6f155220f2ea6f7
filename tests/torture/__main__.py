"""`python -m torture`: kill a running gateway under load, again and again, and see whether anything
that was acknowledged is lost, doubled or different afterwards."""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from torture.installation import Installation
from torture.report import Report, say
from torture.run import Run

_EPILOG = """
Each round plans some 200 operations and one or two disasters. The plan comes from the seed and the
number of the round alone: the same seed repeats it exactly. The machine's timing is not repeated.
Exit status 1 when anything was found; data folder and logs are kept then.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="torture", description=__doc__, epilog=_EPILOG)
    parser.add_argument("--rounds", type=int, default=20, help="how many rounds (20)")
    parser.add_argument("--seed", type=int, help="what the plan comes from; by chance unless given")
    given = parser.parse_args(arguments)
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1_000_000)
    folder = Path(tempfile.mkdtemp(prefix="tapgate-torture-"))
    folder.chmod(0o755)  # PostgreSQL may run as another user
    report = Report(seed, given.rounds)
    run = Run(Installation(folder), seed)
    try:
        asyncio.run(_all(run, given.rounds, report))
    except KeyboardInterrupt:
        say("interrupted")
    finally:
        run.installation.stop()
    report.of_all(run.findings, folder)
    if run.findings.all:
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


async def _all(run: Run, rounds: int, report: Report) -> None:
    await run.begin()
    await run.rounds(rounds, report)


if __name__ == "__main__":
    sys.exit(main())
