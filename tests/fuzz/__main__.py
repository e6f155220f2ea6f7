"""`python -m fuzz`: ask both services whatever their descriptions allow, and more."""

import argparse
import asyncio
import secrets
import sys
from time import monotonic

from fuzz.findings import Finding
from fuzz.forgery import accepted, at_rest, everything_written, forgeries
from fuzz.installation import Installation, installed
from fuzz.methods import wrong_answers
from fuzz.run import descriptions, fuzzed, ways_to
from fuzz.signed import each_kind
from fuzz.stock import Stock, stocked
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
        stock = await stocked(installation)
        wrong = await forged(stock) + await wrong_methods(installation)
        tally = await fuzzed(stock, count, seed, _say)
        for problem in wrong:
            tally.find(problem)
        for line in tally.table():
            print(line)
        await installation.require_sound()
        print(f"The books balance and no error was logged, after {monotonic() - started:.0f} s")
    return tally


async def forged(stock: Stock) -> list[Finding]:
    """Each signed request with each byte changed in each way."""
    installation = stock.installation
    url = installation.platform.database_url
    found: list[Finding] = []
    genuine = await each_kind(stock)
    before = await at_rest(url)
    async with ways_to(installation) as ways:
        for signed in genuine:
            tries = list(forgeries(signed))
            found += [Finding(signed.kind, "a forger", "accepted", one, "") for one in
                      await accepted(tries, ways)]  # fmt: skip
            _say(f"{len(tries)} forgeries of a request of the kind {signed.kind}")
    if await everything_written(url) != before:
        found.append(Finding("all", "a forger", "wrote something", "", ""))
    return found


async def wrong_methods(installation: Installation) -> list[Finding]:
    documents = await descriptions(installation)
    async with ways_to(installation) as ways:
        return [
            Finding(wrong, "nobody", "not 405 with what is allowed", "", "")
            async for wrong in wrong_answers(documents, ways)
        ]


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
