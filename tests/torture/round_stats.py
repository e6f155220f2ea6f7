"""How many operations of a round went which way."""

from collections import Counter

import msgspec


class RoundStats(msgspec.Struct, kw_only=True):
    operations: int = 0
    done: int = 0
    unanswered: int = 0  # operations that were not answered when they were first asked for
    done_before: int = 0  # of those, how many had been carried out all the same
    twins: int = 0
    repeated: int = 0
    altered: int = 0
    not_asked: int = 0  # refunds of payments that were declined
    declines: Counter[str] = msgspec.field(default_factory=Counter)
    longest_silence_seconds: float = 0.0  # the longest time in which nobody was answered
    duration_seconds: float = 0.0
