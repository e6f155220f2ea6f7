"""Operations on the PINs of child cards. Other cards use the subscriber's PIN."""

from tapgate.auth.actors import Actor
from tapgate.business.customers.cards import queries
from tapgate.business.customers.cards.model import Card
from tapgate.business.customers.cards.operations import require_editable_child_card
from tapgate.business.pins.operations import PinOperations, PinOwner
from tapgate.runtime.store.transaction import Transaction


async def _build_owner(tx: Transaction, actor: Actor, card: Card) -> PinOwner:
    parent = await require_editable_child_card(tx, actor, card)
    return PinOwner(
        "card",
        card.serial,
        card.id,
        parent.phone_number,
        parent.id,
        parent.public_name,
        parent.language,
    )


async def _get_owner(tx: Transaction, actor: Actor, serial: str) -> PinOwner:
    return await _build_owner(tx, actor, await queries.get(tx, serial))


async def _lock_owner(tx: Transaction, actor: Actor, serial: str) -> PinOwner:
    return await _build_owner(tx, actor, await queries.lock(tx, serial))


pin_operations = PinOperations(_get_owner, _lock_owner)
