"""`python -m fuzz`: ask both services whatever their descriptions allow, and more."""

import argparse
import asyncio
import secrets
import sys
from time import monotonic

from fuzz.installation import installed
from fuzz.run import fuzzed
from fuzz.tally import Tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    arguments = parser.parse_args()
    print(f"Seed {arguments.seed}, {arguments.requests} requests", flush=True)
    tally = asyncio.run(run(arguments.requests, arguments.seed))
    for finding in tally.findings:
        print(finding)
    for line in tally.summary():
        print(line)
    return 1 if tally.found else 0


async def run(count: int, seed: int) -> Tally:
    started = monotonic()
    async with installed() as installation:
        tally = await fuzzed(installation, count, seed, _say)
        for line in tally.table():
            print(line)
        await installation.require_sound()
        print(f"The books balance and no error was logged, after {monotonic() - started:.0f} s")
    return tally


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
