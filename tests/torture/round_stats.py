"""Outcome counts of a round."""

from collections import Counter

import msgspec


class RoundStats(msgspec.Struct, kw_only=True):
    operations: int = 0
    done: int = 0
    unanswered: int = 0  # operations without a response to their first attempt
    done_before: int = 0  # how many of them had been executed anyway
    twins: int = 0
    repeated: int = 0
    altered: int = 0
    not_asked: int = 0  # refunds of payments that were declined
    declines: Counter[str] = msgspec.field(default_factory=Counter)
    longest_silence_seconds: float = 0.0  # longest time without any response
    duration_seconds: float = 0.0
