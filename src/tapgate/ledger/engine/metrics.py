"""Ledger metrics for Prometheus: transactions by outcome, and the batches that execute them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tapgate.ledger.commands import (
    Command,
    LedgerCommand,
    Outcome,
    RecallDecision,
    RecallRequest,
    Reversal,
    ReviewDecision,
)
from tapgate.runtime.shared_metrics import Counter, Histogram, RenderedFamily, SharedMetrics
from tapgate_client.errors import Code
from tapgate_client.schemas.transactions import TransactionStatus, TransactionType

_SIZE_BOUNDS: Final = (1, 2, 5, 10, 25, 50, 100, 250, 500)
_SECONDS_BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
#: Type labels for commands that are not transactions.
_OTHER_LABELS: Final = {
    ReviewDecision: "review",
    Reversal: TransactionType.REVERSAL.value,
    RecallRequest: "recall",
    RecallDecision: "recall_decision",
}
#: Held in a constant, because the attribute lookup on an enum class is slow in Python 3.11.
_UNDER_REVIEW: Final = TransactionStatus.UNDER_REVIEW.value
_FAILURE_CODES: Final = frozenset({Code.INTERNAL_ERROR, Code.SERVICE_UNAVAILABLE})


class OutcomeLabel(StrEnum):
    COMPLETED = "completed"
    HELD = "held"
    REPLAYED = "replayed"
    DECLINED = "declined"
    REJECTED = "rejected"
    FAILED = "failed"


_COMPLETED: Final = OutcomeLabel.COMPLETED
_HELD: Final = OutcomeLabel.HELD
_REPLAYED: Final = OutcomeLabel.REPLAYED
_DECLINED: Final = OutcomeLabel.DECLINED
_REJECTED: Final = OutcomeLabel.REJECTED
_FAILED: Final = OutcomeLabel.FAILED


class BatchTiming(NamedTuple):
    """Seconds per batch phase. Loading includes opening the transaction."""

    load: float
    decide: float
    write: float
    commit: float


class BatchReport(NamedTuple):
    """Commands that the ledger has processed. `timing` is None if they failed."""

    commands: Sequence[LedgerCommand]
    outcomes: Sequence[Outcome]
    timing: BatchTiming | None = None
    #: With all attempts.
    seconds: float = 0.0
    retries: int = 0
    #: Why the database did not execute them.
    outage: BaseException | None = None


@cache
def _list_series() -> Sequence[tuple[str, str, str]]:
    """Return every possible combination of type, outcome and code. Only some have a code."""
    types = list(dict.fromkeys([*TransactionType, *_OTHER_LABELS.values()]))
    refusals = [code for code in Code if code not in _FAILURE_CODES]
    combinations = [
        *((outcome, "") for outcome in (_COMPLETED, _HELD, _REPLAYED)),
        *((outcome, code) for outcome in (_DECLINED, _REJECTED) for code in refusals),
        *((_FAILED, code) for code in sorted(_FAILURE_CODES)),
    ]
    return [(str(kind), *combination) for kind in types for combination in combinations]


@cache
def _index_series() -> Mapping[tuple[str, str, str], int]:
    return {labels: index for index, labels in enumerate(_list_series())}


class LedgerMetrics:
    """Ledger counters. `on_commit` gets each committed batch's size and duration."""

    def __init__(self, folder: Path, on_commit: Callable[[int, float], None]) -> None:
        self._on_commit = on_commit
        self._indexes = _index_series()
        self._transactions = Counter(
            "tapgate_ledger_transactions",
            "Ledger commands by transaction type, outcome and error code",
            ["type", "outcome", "code"],
            _list_series(),
        )
        self._sizes = Histogram(
            "tapgate_ledger_batch_size", "Commands in a committed batch", _SIZE_BOUNDS
        )
        self._phases = Histogram(
            "tapgate_ledger_batch_seconds",
            "Committed batch duration by phase",
            _SECONDS_BOUNDS,
            ["phase"],
            [(phase,) for phase in BatchTiming._fields],
        )
        self._retries = Counter(
            "tapgate_ledger_batch_retries", "Batches executed again after a conflict"
        )
        families = [self._transactions, self._sizes, self._phases, self._retries]
        self._shared = SharedMetrics(folder / "ledger", families)

    def count(self, report: BatchReport) -> None:
        for command, outcome in zip(report.commands, report.outcomes, strict=True):
            self._count_outcome(command, outcome)
        if report.retries:
            self._retries.add(amount=report.retries)
        if report.timing is not None:
            self._on_commit(len(report.commands), report.seconds)
            self._sizes.observe(len(report.commands))
            for phase, seconds in enumerate(report.timing):
                self._phases.observe(seconds, phase)

    def _count_outcome(self, command: LedgerCommand, outcome: Outcome) -> None:
        code = outcome.code
        if outcome.replayed:
            label, code = _REPLAYED, None
        elif code is None:
            is_held = outcome.result is not None and outcome.result.status == _UNDER_REVIEW
            label = _HELD if is_held else _COMPLETED
        elif code in _FAILURE_CODES:
            label = _FAILED
        else:
            label = _REJECTED if outcome.result is None else _DECLINED
        kind = command.type if isinstance(command, Command) else _OTHER_LABELS[type(command)]
        index = self._indexes.get((kind, label, code or ""))
        if index is not None:
            self._transactions.add(index)

    async def update(self) -> None:
        """Do nothing: the counters are always up to date."""

    def collect(self) -> Iterator[RenderedFamily]:
        return self._shared.collect()

    def close(self) -> None:
        self._shared.close()
