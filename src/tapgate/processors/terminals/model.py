"""Terminal records, their public representation, and status transitions."""

from datetime import datetime
from typing import Final

import msgspec

from tapgate import clock, ids
from tapgate.api.transitions import Transition
from tapgate.errors import Code
from tapgate.schemas.processors import TerminalRecord, TerminalStatus


class Terminal(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    processor_id: int
    name: str
    created_at: datetime
    status: TerminalStatus = TerminalStatus.ACTIVE
    #: The newest key that is not deleted; None if all are deleted.
    key_id: int | None = None
    last_seen_at: datetime | None = None


def to_record(terminal: Terminal) -> TerminalRecord:
    key_id, last_seen_at = terminal.key_id, terminal.last_seen_at
    return TerminalRecord(
        id=ids.encode(ids.TERMINAL, terminal.id),
        processor_id=ids.encode(ids.PROCESSOR, terminal.processor_id),
        name=terminal.name,
        status=terminal.status,
        api_key_id=None if key_id is None else ids.encode(ids.KEY, key_id),
        last_seen_at=None if last_seen_at is None else clock.format_rfc3339(last_seen_at),
        created_at=clock.format_rfc3339(terminal.created_at),
    )


BLOCK: Final[Transition[TerminalStatus]] = Transition(
    "blocked", {TerminalStatus.ACTIVE: TerminalStatus.BLOCKED}, Code.ALREADY_BLOCKED
)
UNBLOCK: Final[Transition[TerminalStatus]] = Transition(
    "unblocked", {TerminalStatus.BLOCKED: TerminalStatus.ACTIVE}, Code.NOT_BLOCKED
)
