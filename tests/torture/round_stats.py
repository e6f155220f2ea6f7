"""Outcome counts for a round."""

from collections import Counter

import msgspec

from torture.client_ledger import OperationState


class ReadinessStats(msgspec.Struct, frozen=True, kw_only=True):
    """What `/ready` of all gateways showed of one fault."""

    gateways: int = 0
    #: By gateway that noticed the fault: seconds from its start until `/ready` changed.
    seconds_until_not_ready: dict[str, float] = {}
    #: By gateway: seconds from the end of the fault until `/ready` returned 200 again.
    seconds_until_ready: dict[str, float] = {}
    reasons: list[str] = []

    def __str__(self) -> str:
        noticed = self.seconds_until_not_ready
        if not noticed:
            return "/ready unchanged"
        text = (
            f"/ready 503 on {len(noticed)} of {self.gateways} after {max(noticed.values()):.1f} s"
        )
        if self.seconds_until_ready:
            text += (
                f", 200 again {max(0.0, *self.seconds_until_ready.values()):.1f} s after the end"
            )
        return f"{text} ({', '.join(self.reasons)})"


class RoundStats(msgspec.Struct, kw_only=True):
    operations: int = 0
    succeeded: int = 0
    unanswered: int = 0  # operations with an attempt that got no final response
    succeeded_unacknowledged: int = 0  # successes whose response was lost after execution
    #: Attempts that got no final response, by reason.
    failed_attempts: Counter[str] = msgspec.field(default_factory=Counter)
    duplicates: int = 0
    replays: int = 0
    conflicts: int = 0
    overtaken_taps: int = 0  # taps sent after the card's later tap was used
    skipped: int = 0  # operations that follow one that did not succeed
    declines: Counter[str] = msgspec.field(default_factory=Counter)
    longest_silence_seconds: float = 0.0  # longest time without any response
    longest_wait_seconds: float = 0.0  # longest time from a first attempt to the acknowledgment
    duration_seconds: float = 0.0
    readiness: ReadinessStats | None = None  # of a cluster's gateways

    def add(self, state: OperationState) -> None:
        """Count an operation's outcome."""
        self.operations += 1
        if state.acknowledgment is None:
            return
        if state.acknowledgment.succeeded:
            self.succeeded += 1
        else:
            self.declines[state.acknowledgment.code] += 1
        self.unanswered += state.unanswered_attempts > 0
        self.succeeded_unacknowledged += state.succeeded_unacknowledged
