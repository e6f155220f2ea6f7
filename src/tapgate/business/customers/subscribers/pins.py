"""Subscriber PIN operations."""

from tapgate.auth.actors import Actor
from tapgate.business.customers.subscribers import queries
from tapgate.business.customers.subscribers.model import Subscriber
from tapgate.business.customers.subscribers.restriction import require_editable
from tapgate.business.pins.operations import PinOperations, PinOwner
from tapgate.runtime.store.transaction import Transaction


def build_owner(subscriber: Subscriber) -> PinOwner:
    return PinOwner(
        "subscriber",
        subscriber.public_id,
        subscriber.id,
        subscriber.phone_number,
        subscriber.id,
        subscriber.public_name,
        subscriber.language,
    )


async def _get_owner(tx: Transaction, actor: Actor, subscriber_id: int) -> PinOwner:
    subscriber = await queries.get(tx, subscriber_id)
    await require_editable(tx, actor, subscriber)
    return build_owner(subscriber)


async def _lock_owner(tx: Transaction, actor: Actor, subscriber_id: int) -> PinOwner:
    return build_owner(await queries.lock_editable(tx, actor, subscriber_id))


pin_operations = PinOperations(_get_owner, _lock_owner)
