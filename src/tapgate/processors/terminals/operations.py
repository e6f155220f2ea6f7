"""Operations on terminals: add, block and unblock."""

from typing import NamedTuple

import asyncpg
import msgspec

from tapgate.api.request_context import RequestContext
from tapgate.api.transitions import Transition
from tapgate.audit.changes import diff_records
from tapgate.audit.trail import AuditTrail, Changes
from tapgate.auth.hmac_keys import NewHmacKey
from tapgate.processors import queries as processors
from tapgate.processors.terminals import model, queries
from tapgate.processors.terminals.model import Terminal
from tapgate.schemas.processors import NewTerminal, TerminalStatus

_trail = AuditTrail("terminal")


class AddedTerminal(NamedTuple):
    terminal: Terminal
    key: NewHmacKey


async def add(request: RequestContext, processor_id: int, new: NewTerminal) -> AddedTerminal:
    """Add a terminal with its own signing key."""
    services = request.services
    terminal = Terminal(
        id=services.new_id(),
        processor_id=processor_id,
        name=new.name,
        created_at=services.clock(),
    )
    async with services.transaction() as tx:
        await processors.require_exists(tx, processor_id)
        await queries.add(tx, terminal)
        key = await services.authenticator.hmac_keys.create_for_processor(
            tx, processor_id, terminal.id
        )
        terminal = msgspec.structs.replace(terminal, key_id=key.id)
        record = model.to_record(terminal)
        changes: Changes = {
            field: (None, getattr(record, field))
            for field in ("processor_id", "name", "status", "api_key_id")
        }
        await _record_audit_entry(tx, request, terminal, "created", changes=changes)
    return AddedTerminal(terminal, key)


async def block(
    request: RequestContext, processor_id: int, terminal_id: int, reason: str | None
) -> Terminal:
    """Block a terminal: its keys are rejected, and so are payments that name it.

    Waits up to one second for every process to apply the change.
    """
    return await _change_status(request, processor_id, terminal_id, model.BLOCK, reason)


async def unblock(
    request: RequestContext, processor_id: int, terminal_id: int, reason: str | None
) -> Terminal:
    return await _change_status(request, processor_id, terminal_id, model.UNBLOCK, reason)


async def _change_status(
    request: RequestContext,
    processor_id: int,
    terminal_id: int,
    transition: Transition[TerminalStatus],
    reason: str | None,
) -> Terminal:
    services = request.services
    async with services.transaction() as tx:
        await processors.require_exists(tx, processor_id)
        before = await queries.lock(tx, terminal_id, processor_id=processor_id)
        after = model.apply_transition(before, transition)
        await queries.save_state(tx, after)
        changes = diff_records(model.to_record(before), model.to_record(after))
        await _record_audit_entry(
            tx, request, after, transition.event, reason=reason, changes=changes
        )
        ticket = await services.authenticator.hmac_keys.publish_owner_change(tx)
    await services.signals.wait_for_acks(ticket)
    return after


async def _record_audit_entry(
    tx: asyncpg.Connection,
    request: RequestContext,
    terminal: Terminal,
    action: str,
    *,
    reason: str | None = None,
    changes: Changes,
) -> None:
    await _trail.record(
        tx,
        request.actor,
        model.to_record(terminal).id,
        action,
        reason=reason,
        changes=changes,
    )
