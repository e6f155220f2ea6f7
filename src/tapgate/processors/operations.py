"""Operations on processors: create, suspend and activate."""

from typing import NamedTuple

import msgspec

from tapgate import ids
from tapgate.api.request_context import RequestContext
from tapgate.api.transitions import Transition
from tapgate.audit.changes import diff_records
from tapgate.audit.trail import AuditTrail
from tapgate.auth.hmac_keys import NewHmacKey
from tapgate.ledger import chart
from tapgate.ledger.accounts import open_account
from tapgate.notifications import events
from tapgate.processors import model, queries
from tapgate.processors.model import Processor
from tapgate.schemas.processors import NewProcessor, ProcessorStatus

_trail = AuditTrail("processor")


class CreatedProcessor(NamedTuple):
    processor: Processor
    key: NewHmacKey


async def create(request: RequestContext, new: NewProcessor) -> CreatedProcessor:
    """Create a processor with its first signing key."""
    services, now = request.services, request.services.clock()
    processor = Processor(
        id=services.new_id(),
        account_id=services.new_id(),
        name=new.name,
        phone_number=new.phone_number,
        email=new.email,
        currency=services.settings.currency,
        created_at=now,
        updated_at=now,
    )
    async with services.transaction() as tx:
        await open_account(
            tx,
            id=processor.account_id,
            kind=chart.SETTLEMENT,
            owner_id=processor.id,
            holder_name=processor.name,
            public_name=processor.name,
            currency=processor.currency,
        )
        await queries.add(tx, processor)
        key = await services.authenticator.hmac_keys.create_for_processor(tx, processor.id)
        await _trail.record(
            tx,
            request.actor,
            ids.encode(ids.PROCESSOR, processor.id),
            "created",
            changes={
                "name": (None, processor.name),
                "status": (None, processor.status),
                "api_key_id": (None, ids.encode(ids.KEY, key.id)),
            },
        )
    return CreatedProcessor(processor, key)


async def suspend(request: RequestContext, processor_id: int, reason: str) -> Processor:
    """Suspend a processor: all of its keys are rejected.

    Waits up to one second for every process to apply the change.
    """
    return await _change_status(request, processor_id, model.SUSPEND, reason)


async def activate(request: RequestContext, processor_id: int, reason: str | None) -> Processor:
    return await _change_status(request, processor_id, model.ACTIVATE, reason)


async def _change_status(
    request: RequestContext,
    processor_id: int,
    transition: Transition[ProcessorStatus],
    reason: str | None,
) -> Processor:
    services = request.services
    async with services.transaction() as tx:
        before = await queries.lock(tx, processor_id)
        after = msgspec.structs.replace(
            model.apply_transition(before, transition, reason), updated_at=services.clock()
        )
        await queries.save_state(tx, after)
        record = model.to_record(after)
        await _trail.record(
            tx,
            request.actor,
            record.id,
            transition.event,
            reason=reason,
            changes=diff_records(model.to_record(before), record),
        )
        if transition is model.SUSPEND:
            await events.publish(tx, "processor.suspended", record)
        ticket = await services.authenticator.hmac_keys.publish_owner_change(tx)
    await services.signals.wait_for_acks(ticket)
    return after
