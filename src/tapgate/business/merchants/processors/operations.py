"""Operations on processors and their keys."""

from typing import NamedTuple

import msgspec

from tapgate.auth.actors import Actor
from tapgate.auth.hmac_keys import HmacKeys, NewHmacKey
from tapgate.business.merchants.processors import model, queries
from tapgate.business.merchants.processors.model import Processor
from tapgate.business.merchants.processors.terminals import queries as terminals
from tapgate.business.owners import status_transitions
from tapgate.business.owners.signing_keys import create_signing_key
from tapgate.business.owners.status_transitions import Transition
from tapgate.events.audit.trail import AuditTrail
from tapgate.events.webhooks import webhook_events
from tapgate.ledger import chart
from tapgate.ledger.accounts import open_account
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.schemas.common import SigningKeyCreated
from tapgate_client.schemas.processors import NewProcessor, ProcessorStatus

_trail = AuditTrail("processor")


class CreatedProcessor(NamedTuple):
    processor: Processor
    key: NewHmacKey


async def create(
    tx: Transaction, actor: Actor, new: NewProcessor, *, currency: str, hmac_keys: HmacKeys
) -> CreatedProcessor:
    """Create a processor with its first signing key."""
    now = tx.now()
    processor = Processor(
        id=tx.new_id(),
        account_id=tx.new_id(),
        **msgspec.structs.asdict(new),
        currency=currency,
        created_at=now,
        updated_at=now,
    )
    await open_account(
        tx,
        id=processor.account_id,
        kind=chart.SETTLEMENT,
        owner_id=processor.id,
        holder_name=processor.name,
        currency=currency,
    )
    await queries.add(tx, processor)
    key = await hmac_keys.create(tx, created_by=actor.admin_id, processor_id=processor.id)
    changes = {
        "name": (None, processor.name),
        "status": (None, processor.status),
        "api_key_id": (None, ids.encode(ids.KEY, key.id)),
    }
    public_id = ids.encode(ids.PROCESSOR, processor.id)
    await _trail.record(tx, actor, public_id, "created", changes=changes)
    return CreatedProcessor(processor, key)


async def change_status(
    tx: Transaction,
    actor: Actor,
    processor_id: int,
    transition: Transition[ProcessorStatus],
    reason: str | None,
    *,
    hmac_keys: HmacKeys,
) -> Processor:
    """Suspend or activate a processor, with its terminals, and publish a suspension."""
    processor = await status_transitions.change_status(
        tx,
        actor,
        queries.TABLE,
        processor_id,
        transition,
        reason,
        to_record=model.to_record,
        hmac_keys=hmac_keys,
    )
    if transition is model.SUSPEND:
        await webhook_events.publish(tx, "processor.suspended", model.to_record(processor))
    return processor


async def create_key(
    tx: Transaction,
    actor: Actor,
    processor_id: int,
    terminal_id: int | None,
    *,
    hmac_keys: HmacKeys,
) -> SigningKeyCreated:
    """Create a signing key for the processor, or for one of its terminals."""
    await queries.require_exists(tx, processor_id)
    if terminal_id is not None:
        await terminals.get(tx, terminal_id, processor_id=processor_id, for_update=True)
    return await create_signing_key(
        tx, actor, hmac_keys, processor_id=processor_id, terminal_id=terminal_id
    )
