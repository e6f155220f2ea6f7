"""`python -m fuzz`: fuzz both services with requests generated from their OpenAPI documents."""

import argparse
import asyncio
import secrets
import sys
from time import monotonic

from fuzz.findings import Finding
from fuzz.fixtures import FuzzFixtures, create_fixtures
from fuzz.forgery import build_forgeries, digest_tables, find_accepted, wait_until_idle
from fuzz.installation import Installation, create_installation
from fuzz.results import Results
from fuzz.run import fetch_openapi_documents, open_connections, run_fuzzing
from fuzz.signed_requests import build_each_kind
from fuzz.unsupported_methods import find_wrong_responses


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000, help="number of requests")
    parser.add_argument(
        "--seed", type=int, default=secrets.randbelow(1_000_000), help="seed (default: random)"
    )
    arguments = parser.parse_args()
    print(f"Seed {arguments.seed}, {arguments.requests} requests", flush=True)
    results = asyncio.run(run_all(arguments.requests, arguments.seed))
    for line in results.format_summary():
        print(line)
    return 1 if results.finding_count else 0


async def run_all(count: int, seed: int) -> Results:
    started = monotonic()
    async with create_installation() as installation:
        fixtures = await create_fixtures(installation)
        problems = await run_forgeries(fixtures) + await run_wrong_methods(installation)
        results = await run_fuzzing(fixtures, count, seed, _print_line)
        for problem in problems:
            results.add_finding(problem)
        for line in results.format_table():
            print(line)
        for finding in results.findings:  # before the checks below, which may fail
            print(finding)
        await installation.require_no_failures()
        print(f"Ledger verified, no errors logged, {monotonic() - started:.0f} s")
    return results


async def run_forgeries(fixtures: FuzzFixtures) -> list[Finding]:
    """Send every mutation of each kind of signed request, and return a finding per failure."""
    installation = fixtures.installation
    url = installation.deployment.database_url
    findings: list[Finding] = []
    signed_requests = await build_each_kind(fixtures)
    before = await wait_until_idle(url)
    async with open_connections(installation) as pools:
        for signed in signed_requests:
            forgeries = list(build_forgeries(signed))
            findings += [Finding(signed.kind, "forger", "not rejected", item, "") for item in
                      await find_accepted(forgeries, pools)]  # fmt: skip
            _print_line(f"{len(forgeries)} forgeries sent: {signed.kind}")
    if await digest_tables(url) != before:
        findings.append(Finding("all", "forger", "changed stored data", "", ""))
    return findings


async def run_wrong_methods(installation: Installation) -> list[Finding]:
    documents = await fetch_openapi_documents(installation)
    async with open_connections(installation) as pools:
        return [
            Finding(problem, "anonymous", "not 405 with the allowed methods", "", "")
            async for problem in find_wrong_responses(documents, pools)
        ]


def _print_line(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
