"""Ledger batch spans, linked to the requests whose commands they execute."""

import msgspec

from tapgate.core import telemetry
from tapgate.ledger.commands import Command, LedgerCommand
from tapgate.ledger.engine.metrics import BatchReport


def add_traceparent(command: LedgerCommand) -> LedgerCommand:
    """Add the current span to a command, which another process may execute."""
    if not isinstance(command, Command):
        return command
    traceparent = telemetry.get_headers().get("traceparent")
    return msgspec.structs.replace(command, traceparent=traceparent)


def trace_batch(report: BatchReport) -> None:
    """Record the span for a batch that was just committed."""
    assert report.timing is not None
    traceparents = (getattr(command, "traceparent", None) for command in report.commands)
    telemetry.record_phases(
        "ledger batch",
        report.timing._asdict(),
        filter(None, traceparents),
        {"tapgate.batch.size": len(report.commands)},
    )
