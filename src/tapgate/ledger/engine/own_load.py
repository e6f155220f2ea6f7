"""Decides whether a worker executes its commands itself or sends them to the node's writer.

Sharing the writer makes batches large, so a payment costs less CPU time. Separate batches use
cores that are idle while all clients wait for the same batch. Sharing is therefore the rule, and
a worker writes its own batches in two cases:

- They are so large that larger ones save little.
- Cores are idle although the writer is shared. PostgreSQL must run on the same machine: otherwise
  idle cores do not show whether PostgreSQL has time for more batches. With separate batches the
  cores are busy in any case, so from time to time the worker shares again to measure.

Decision 38 has the measurements.
"""

from time import monotonic
from typing import Final

from tapgate.runtime.idle_cores import IdleCores

#: Commands in progress at once. A worker with so many executes them itself, and stops doing so
#: below the second number.
MIN_OWN_BATCH: Final = 128
MIN_OWN_BATCH_KEPT: Final = 112
#: While cores are idle, this many suffice. Batches of one or two would hardly share anything.
MIN_OWN_BATCH_IF_IDLE: Final = 3
MIN_IDLE_SHARE: Final = 0.2
#: How long idle cores justify separate batches before they are measured again.
IDLE_VALID_SECONDS: Final = 5.0
PEAK_SECONDS: Final = 0.2


class OwnLoad:
    """Commands that requests to this worker have in progress, and where to execute them."""

    def __init__(self, idle_cores: IdleCores | None = None) -> None:
        self._idle_cores = idle_cores
        self._count = self._peak = 0
        self._measured_until = self._shares_from = 0.0
        self.has_own_batches = False

    def __enter__(self) -> None:
        self._count += 1
        self._peak = max(self._peak, self._count)
        now = monotonic()
        if now > self._measured_until:
            self.has_own_batches = self._choose(now)
            self._measured_until = now + PEAK_SECONDS
            self._peak = self._count

    def __exit__(self, *exception: object) -> None:
        self._count -= 1

    def _choose(self, now: float) -> bool:
        # Cores were idle in a pause between requests, which says nothing about the load.
        is_pause = now > self._measured_until + PEAK_SECONDS
        idle_share = 0.0 if self._idle_cores is None else self._idle_cores.measure()
        if self._peak >= (MIN_OWN_BATCH_KEPT if self.has_own_batches else MIN_OWN_BATCH):
            return True
        if self._peak < MIN_OWN_BATCH_IF_IDLE:
            self._shares_from = now
            return False
        if not self.has_own_batches and idle_share >= MIN_IDLE_SHARE and not is_pause:
            self._shares_from = now + IDLE_VALID_SECONDS
        return now < self._shares_from
