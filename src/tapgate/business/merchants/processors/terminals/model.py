"""Terminal records, their public representation, and status transitions."""

from datetime import datetime
from typing import Final

import msgspec

from tapgate.business.owners.status_transitions import Transition
from tapgate.core.records import build_record
from tapgate_client import ids
from tapgate_client.errors import Code
from tapgate_client.schemas.processors import TerminalRecord, TerminalStatus


class Terminal(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    processor_id: int
    name: str
    created_at: datetime
    status: TerminalStatus = TerminalStatus.ACTIVE
    #: The newest key that is not deleted; None if all are deleted.
    api_key_id: int | None = None
    last_seen_at: datetime | None = None


def to_record(terminal: Terminal) -> TerminalRecord:
    return build_record(TerminalRecord, terminal, id=ids.encode(ids.TERMINAL, terminal.id))


BLOCK: Final[Transition[TerminalStatus]] = Transition(
    "blocked", {TerminalStatus.ACTIVE: TerminalStatus.BLOCKED}, Code.ALREADY_BLOCKED
)
UNBLOCK: Final[Transition[TerminalStatus]] = Transition(
    "unblocked", {TerminalStatus.BLOCKED: TerminalStatus.ACTIVE}, Code.NOT_BLOCKED
)
