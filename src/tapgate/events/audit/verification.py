"""Verifies the audit log on request: one run at a time, in full or from the last checkpoint.

A checkpoint states that the chain was intact up to an entry. It has a MAC whose key is not in the
database. A checkpoint that was forged together with old entries is therefore detected, and the
whole chain is verified. An attacker can restore an older genuine checkpoint, but the entries that
it covers were verified.

The newest entries are always verified. Changes to entries before the checkpoint are found by a full
verification. A full verification also compares the chain with the checkpoint, which detects a
history that was replaced with all its hashes recomputed.
"""

import asyncio
from datetime import datetime
from typing import Any, Final

import structlog

from tapgate.core.vault import Vault
from tapgate.events.audit.chain import INITIAL_CHECKPOINT, Checkpoint, Link, verify_from_checkpoint
from tapgate.runtime.exclusive_job import AlreadyRunningError, ExclusiveJob
from tapgate.runtime.store.database import Database
from tapgate_client.clock import Clock
from tapgate_client.errors import unavailable
from tapgate_client.schemas.audit import Verification

_log = structlog.get_logger()

#: Maximum number of callers per process that wait for a verification.
MAX_WAITING_CALLERS: Final = 16
#: Maximum wait for a verification in another process. From a checkpoint, it normally takes less.
WAIT_TIMEOUT_SECONDS: Final = 3.0
LOCK_KEY: Final = 0x7467_6175  # "tgau"
_job: Final = ExclusiveJob(LOCK_KEY)
_PURPOSE: Final = "audit checkpoint"


class Verifier:
    def __init__(self, database: Database, vault: Vault, clock: Clock) -> None:
        self._database = database
        self._vault = vault
        self._clock = clock
        self._runs: dict[bool, asyncio.Task[Verification]] = {}
        self._run_lock = asyncio.Lock()
        self._waiting_callers = 0

    async def verify(self, *, full: bool) -> Verification:
        """Verify the log, or join a verification in this process that covers at least as much.

        Raises 503 if too many callers are waiting or another process takes too long to verify.
        """
        if self._waiting_callers >= MAX_WAITING_CALLERS:
            raise _build_busy_error()
        run = self._runs.get(True) or self._runs.get(full)
        if run is None:
            run = asyncio.create_task(self._run(full=full))
            self._runs[full] = run
            run.add_done_callback(lambda _: self._runs.pop(full))
        self._waiting_callers += 1
        try:
            # Do not cancel the run with one caller, because others may have joined it.
            return await asyncio.shield(run)
        finally:
            self._waiting_callers -= 1

    async def _run(self, *, full: bool) -> Verification:
        async with self._run_lock:
            try:
                async with _job.acquire_connection(
                    self._database, wait_seconds=WAIT_TIMEOUT_SECONDS
                ) as connection:
                    known = await self._load_checkpoint(connection)
                    start = INITIAL_CHECKPOINT if full else known
                    result, checkpoint = await verify_from_checkpoint(connection, start, known)
                    if result.valid and checkpoint.link.sequence > known.link.sequence:
                        await self._save_checkpoint(connection, checkpoint, self._clock())
                    return result
            except AlreadyRunningError:
                raise _build_busy_error() from None

    async def _load_checkpoint(self, connection: Any) -> Checkpoint:
        row = await connection.fetchrow("SELECT sequence, hash, entries, mac FROM audit_checkpoint")
        if row is None:
            return INITIAL_CHECKPOINT
        checkpoint = Checkpoint(Link(row["sequence"], row["hash"]), row["entries"])
        if not self._vault.matches_hash(row["mac"], _PURPOSE, _build_mac_input(checkpoint)):
            _log.warning("audit.checkpoint_invalid", sequence=row["sequence"])
            return INITIAL_CHECKPOINT
        return checkpoint

    async def _save_checkpoint(
        self, connection: Any, checkpoint: Checkpoint, now: datetime
    ) -> None:
        await connection.execute(
            """INSERT INTO audit_checkpoint (sequence, hash, entries, mac, verified_at)
               VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (one_row) DO UPDATE
               SET (sequence, hash, entries, mac, verified_at) = ROW (excluded.sequence,
                   excluded.hash, excluded.entries, excluded.mac, excluded.verified_at)""",
            *checkpoint.link,
            checkpoint.entries,
            self._vault.keyed_hash(_PURPOSE, _build_mac_input(checkpoint)),
            now,
        )


async def find_old_mac(connection: Any, vault: Vault) -> bytes | None:
    """Return a new checkpoint MAC if the stored MAC is authentic but uses an older secret key."""
    row = await connection.fetchrow("SELECT sequence, hash, entries, mac FROM audit_checkpoint")
    if row is None:
        return None
    content = _build_mac_input(Checkpoint(Link(row["sequence"], row["hash"]), row["entries"]))
    mac = vault.keyed_hash(_PURPOSE, content)
    is_authentic = vault.matches_hash(row["mac"], _PURPOSE, content)
    return mac if is_authentic and row["mac"] != mac else None


async def renew_mac(connection: Any, vault: Vault) -> None:
    """Recompute an authentic MAC with the newest secret key."""
    async with connection.transaction():
        await connection.execute("SELECT FROM audit_checkpoint FOR NO KEY UPDATE")
        mac = await find_old_mac(connection, vault)
        if mac is not None:
            await connection.execute("UPDATE audit_checkpoint SET mac = $1", mac)


def _build_mac_input(checkpoint: Checkpoint) -> bytes:
    link = checkpoint.link
    return b"%d %d %b" % (link.sequence, checkpoint.entries, link.hash)


def _build_busy_error() -> Exception:
    return unavailable("The audit log is already being verified. Try again shortly.")
