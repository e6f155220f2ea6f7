"""Whether the node's payments are committed: known from the latest batches, or from a tiny write.

While payments commit, their commits are the evidence, which costs one write to shared memory per
batch. Otherwise one worker per node probes at most once a second. A failure keeps the node out of
service until a payment commits, or until no probe and no batch has failed for a while: the balancer
sends no payments to a node that is not ready, so it cannot wait for one.
"""

import mmap
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic
from typing import Final

import structlog

from tapgate.runtime.node_files import allocate
from tapgate.runtime.store.commit_probe import classify_commit_failure
from tapgate_client.schemas.health import NotReadyReason

_log = structlog.get_logger()

PROBE_INTERVAL_SECONDS: Final = 1.0
#: While a payment committed this recently, there is no probe.
RECENT_COMMIT_SECONDS: Final = 0.5
#: At least two probes must succeed after one that failed.
RECOVERY_SECONDS: Final = 2.5
#: After a batch that found a disk full: the tablespace may be one that the probe does not write to.
DISK_RECOVERY_SECONDS: Final = 10.0

_REASONS: Final = tuple(NotReadyReason)
_COMMITTED_AT, _PROBED_AT, _FAILED_AT, _FAILED_UNTIL, _REASON = range(5)
_SIZE: Final = 8 * 5

CommitProbe = Callable[[], Awaitable[NotReadyReason | None]]


class CommitMonitor:
    """Commit state that a node's workers share in a memory-mapped file.

    The times are those of the machine's monotonic clock, which all processes share. Times in the
    future are from before a restart of the machine.
    """

    def __init__(self, path: Path, probe: CommitProbe) -> None:
        self.probe = probe
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            allocate(file, _SIZE)
            self._map = mmap.mmap(file, _SIZE)
        finally:
            os.close(file)
        self._cells = memoryview(self._map).cast("d")
        self._reported: NotReadyReason | None = None

    def record_commit(self) -> None:
        self._cells[_COMMITTED_AT] = monotonic()

    def record_failure(self, error: BaseException) -> None:
        """Record why a batch was not committed.

        Only a full disk counts. A lock may concern a single account, and the probe finds all other
        reasons: after a lost connection, the next batch usually succeeds.
        """
        if classify_commit_failure(error) is NotReadyReason.DATABASE_DISK_FULL:
            self._fail(NotReadyReason.DATABASE_DISK_FULL, DISK_RECOVERY_SECONDS)

    async def get_problem(self) -> NotReadyReason | None:
        """Return why payments cannot be committed, or None if they can."""
        now, cells = monotonic(), self._cells
        has_recent_commit = 0 <= now - cells[_COMMITTED_AT] < RECENT_COMMIT_SECONDS
        was_probed = 0 <= now - cells[_PROBED_AT] < PROBE_INTERVAL_SECONDS
        if not has_recent_commit and not was_probed:
            cells[_PROBED_AT] = now
            reason = await self.probe()
            if reason is not None:
                self._fail(reason, RECOVERY_SECONDS)
        problem = self._get_failure()
        self._report(problem)
        return problem

    def close(self) -> None:
        self._cells.release()
        self._map.close()

    def _fail(self, reason: NotReadyReason, seconds: float) -> None:
        cells, now = self._cells, monotonic()
        is_longer = now + seconds > cells[_FAILED_UNTIL] or cells[_FAILED_AT] > now
        if is_longer or cells[_FAILED_AT] < cells[_COMMITTED_AT]:
            cells[_FAILED_UNTIL] = now + seconds
            cells[_REASON] = _REASONS.index(reason)
        cells[_FAILED_AT] = now

    def _get_failure(self) -> NotReadyReason | None:
        cells, now = self._cells, monotonic()
        failed_at = cells[_FAILED_AT]
        if failed_at <= cells[_COMMITTED_AT] <= now:
            return None
        if not failed_at <= now < min(cells[_FAILED_UNTIL], failed_at + DISK_RECOVERY_SECONDS):
            return None
        return _REASONS[int(cells[_REASON])]

    def _report(self, problem: NotReadyReason | None) -> None:
        if problem is self._reported:
            return
        self._reported = problem
        if problem is None:
            _log.info("database.commits_recovered")
        else:
            _log.error("database.commits_failing", reason=problem.value)
