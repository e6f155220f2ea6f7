"""Operations on terminals: add, block and unblock."""

from typing import NamedTuple

import msgspec

from tapgate.auth import owner_limits
from tapgate.auth.actors import Actor
from tapgate.auth.hmac_keys import HmacKeys, NewHmacKey
from tapgate.business.merchants.processors import queries as processors
from tapgate.business.merchants.processors.terminals import model, queries
from tapgate.business.merchants.processors.terminals.model import Terminal
from tapgate.business.owners.status_transitions import Transition
from tapgate.events.audit.trail import AuditTrail, Changes
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.schemas.processors import NewTerminal, TerminalStatus

_trail = AuditTrail("terminal")


class AddedTerminal(NamedTuple):
    terminal: Terminal
    key: NewHmacKey


async def add(
    tx: Transaction, actor: Actor, processor_id: int, new: NewTerminal, *, hmac_keys: HmacKeys
) -> AddedTerminal:
    """Add a terminal with its own signing key."""
    terminal = Terminal(
        id=tx.new_id(), processor_id=processor_id, name=new.name, created_at=tx.now()
    )
    await processors.require_exists(tx, processor_id)
    await owner_limits.require_room(tx, owner_limits.TERMINALS, processor_id)
    await queries.add(tx, terminal)
    key = await hmac_keys.create(
        tx, created_by=actor.admin_id, processor_id=processor_id, terminal_id=terminal.id
    )
    terminal = msgspec.structs.replace(terminal, api_key_id=key.id)
    record = model.to_record(terminal)
    changes: Changes = {
        field: (None, getattr(record, field))
        for field in ("processor_id", "name", "status", "api_key_id")
    }
    await _trail.record(tx, actor, record.id, "created", changes=changes)
    return AddedTerminal(terminal, key)


async def change_status(
    tx: Transaction,
    actor: Actor,
    processor_id: int,
    terminal_id: int,
    transition: Transition[TerminalStatus],
    reason: str | None,
    *,
    hmac_keys: HmacKeys,
) -> Terminal:
    """Block or unblock a terminal. A blocked terminal's keys and payments are rejected.

    Waits up to one second for every process to apply the change.
    """
    await processors.require_exists(tx, processor_id)
    before = await queries.get(tx, terminal_id, processor_id=processor_id, for_update=True)
    status = transition.apply(before.status)
    after = msgspec.structs.replace(before, status=status)
    await queries.save_state(tx, after)
    old, new = model.to_record(before), model.to_record(after)
    await _trail.record_change(tx, actor, new.id, transition.event, old, new, reason=reason)
    await hmac_keys.publish_owner_change(tx)
    return after
