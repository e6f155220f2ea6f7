"""`tapgate verify`: check and print every claim about the ledger and the audit log.

The proof of the ledger is recorded if the database allows writes. The console and the API show the
latest proof.
"""

from time import perf_counter

import asyncpg
from rich.console import Console

from tapgate.audit import chain
from tapgate.clock import system_clock
from tapgate.ledger import proofs
from tapgate.ledger.verify import Proof, verify
from tapgate.store.database import Database


async def verify_installation(url: str) -> bool:
    database = await Database.connect(url)
    try:
        async with database.dedicated_connection() as connection:
            proof, recorded = await _verify_and_record(connection)
        audit = await chain.verify(database)
    finally:
        await database.close()
    console = Console(highlight=False)
    _print_proof(console, proof)
    claim = f"the audit log is intact ({audit.entries} entries, {audit.unsealed} not sealed yet)"
    _print_claim(console, claim, holds=audit.valid)
    if audit.first_broken is not None:
        console.print(f"      {audit.first_broken}")
    if not recorded:
        console.print("Result not recorded: the database or its user is read-only.")
    return proof.is_valid and audit.valid


async def _verify_and_record(connection: asyncpg.Connection) -> tuple[Proof, bool]:
    """Verify the ledger and return the proof, and whether it was recorded.

    A read-only replica can be verified too, but cannot store the result.
    """
    started_at, started = system_clock(), perf_counter()
    proof = await verify(connection)
    try:
        await proofs.record(
            connection, proof, started_at=started_at, seconds=perf_counter() - started
        )
    except (asyncpg.ReadOnlySQLTransactionError, asyncpg.InsufficientPrivilegeError):
        return proof, False
    return proof, True


def _print_proof(console: Console, proof: Proof) -> None:
    console.print(
        f"{proof.transactions:,} transactions, {proof.entries:,} entries, "
        f"{proof.accounts:,} accounts"
    )
    for finding in proof.findings:
        _print_claim(console, finding.claim, holds=finding.broken == 0)
        for example in finding.examples:
            console.print(f"      {example}", markup=False)
        if finding.broken > len(finding.examples):
            console.print(f"      and {finding.broken - len(finding.examples)} more")


def _print_claim(console: Console, claim: str, *, holds: bool) -> None:
    console.print(f"{'[green]passed[/green]' if holds else '[red]FAILED[/red]'} {claim}")
