"""`tapgate verify`: check and print every ledger and audit log invariant.

The ledger verification is recorded if the database allows writes. The console and the API show the
latest one.
"""

import contextlib
from collections.abc import Sequence
from time import perf_counter

import asyncpg
from rich.console import Console

from tapgate.core.vault import Vault
from tapgate.events.audit import chain
from tapgate.ledger.verification import verifications
from tapgate.ledger.verification.checkpoints import save_progress, verify_with_checkpoints
from tapgate.ledger.verification.verify import Verification
from tapgate.runtime.store.database import Database
from tapgate_client.clock import system_clock


async def verify_installation(url: str, vault: Vault, *, full: bool, jobs: int = 1) -> bool:
    database = await Database.connect(url)
    try:
        async with contextlib.AsyncExitStack() as stack:
            connections = [
                await stack.enter_async_context(database.dedicated_connection())
                for _ in range(jobs)
            ]
            verification, recorded = await _verify_and_record(connections, vault, full=full)
        audit = await chain.verify(database)
    finally:
        await database.close()
    console = Console(highlight=False)
    _print_verification(console, verification)
    check = f"the audit log is intact ({audit.entries} entries, {audit.unsealed} not sealed yet)"
    _print_check(console, check, holds=audit.valid)
    if audit.first_broken is not None:
        console.print(f"      {audit.first_broken}")
    if not recorded:
        console.print("Result not recorded: the database or its user is read-only.")
    return verification.is_valid and audit.valid


async def _verify_and_record(
    connections: Sequence[asyncpg.Connection], vault: Vault, *, full: bool
) -> tuple[Verification, bool]:
    """Verify the ledger and return the result, and whether it was recorded.

    A read-only replica can be verified too, but cannot store the result.
    """
    connection, *helpers = connections
    started_at, started = system_clock(), perf_counter()
    verification, progress = await verify_with_checkpoints(
        connection, vault, full=full, helpers=helpers
    )
    try:
        if verification.is_valid:
            await save_progress(connection, vault, progress, started_at)
        await verifications.record(
            connection, verification, started_at=started_at, seconds=perf_counter() - started
        )
    except (asyncpg.ReadOnlySQLTransactionError, asyncpg.InsufficientPrivilegeError):
        return verification, False
    return verification, True


def _print_verification(console: Console, verification: Verification) -> None:
    console.print(
        f"{verification.transactions:,} transactions, {verification.entries:,} entries, "
        f"{verification.accounts:,} accounts"
    )
    for finding in verification.findings:
        _print_check(console, finding.invariant, holds=finding.broken == 0)
        for example in finding.examples:
            console.print(f"      {example}", markup=False)
        if finding.broken > len(finding.examples):
            console.print(f"      and {finding.broken - len(finding.examples)} more")


def _print_check(console: Console, check: str, *, holds: bool) -> None:
    console.print(f"{'[green]passed[/green]' if holds else '[red]FAILED[/red]'} {check}")
