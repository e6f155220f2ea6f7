"""Replacement of a lost card: block it, and link a new one with a code from the holder's phone.

The code takes the place of the PIN, which customers would otherwise enter on a clerk's screen.
"""

from tapgate.auth.actors import Actor
from tapgate.business.customers.cards import model, operations, queries
from tapgate.business.customers.cards.model import Card
from tapgate.business.customers.subscribers import queries as subscribers
from tapgate.business.customers.subscribers.model import Subscriber
from tapgate.business.customers.subscribers.pins import build_owner
from tapgate.business.customers.subscribers.restriction import require_editable
from tapgate.business.pins.operations import require_settled_phone
from tapgate.core.settings import Settings
from tapgate.core.vault import Vault
from tapgate.events.audit.trail import AuditTrail
from tapgate.events.notifications import codes
from tapgate.ledger.one_time_codes.codes import CodeRequest
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.cards import CardStatus, CardType

_trail = AuditTrail("card")


async def begin(
    tx: Transaction, actor: Actor, serial: str, reason: str, *, vault: Vault, settings: Settings
) -> Card:
    """Block a card permanently, unless it is already, and send a code to the holder's phone."""
    card = await queries.lock(tx, serial)
    holder = await _get_holder(tx, actor, card)
    if card.status_at(tx.now()) in (CardStatus.ACTIVE, CardStatus.BLOCKED):
        card = await operations.block(tx, actor, serial, reason, settings=settings)
    await codes.send(
        tx,
        _build_code_request(actor, holder),
        holder.phone_number,
        language=holder.language,
        vault=vault,
    )
    await _trail.record(tx, actor, serial, "replacement_requested", reason=reason)
    return card


async def confirm(
    tx: Transaction,
    actor: Actor,
    serial: str,
    new_serial: str,
    code: str,
    *,
    vault: Vault,
    settings: Settings,
) -> Card:
    """Link another card to the holder of a blocked one, with the code."""
    old = await queries.get(tx, serial)
    holder = await _get_holder(tx, actor, old)
    if old.status_at(tx.now()) in (CardStatus.ACTIVE, CardStatus.BLOCKED):
        raise ApiError(Code.NOT_BLOCKED, "Block the card permanently before it is replaced.")
    # The code is locked before the subscriber, as for a PIN reset.
    await codes.redeem(
        tx,
        actor,
        _build_code_request(actor, holder),
        holder.phone_number,
        code,
        trail=_trail,
        resource_id=serial,
        action="replaced",
        vault=vault,
    )
    holder = await subscribers.lock(tx, holder.id)
    card = await queries.lock_for_linking(tx, new_serial)
    operations.raise_after_commit(model.get_link_error(card, holder, tx.now()))
    linked = await operations.save(
        tx, actor, card, model.link(card, holder, tx.now()), tx.now(), "linked", settings=settings
    )
    await _trail.record(
        tx, actor, serial, "replaced", changes={"card_serial": (serial, new_serial)}
    )
    return linked


async def _get_holder(tx: Transaction, actor: Actor, card: Card) -> Subscriber:
    """Return the holder whose phone gets the code. A child card has its own PIN and no phone."""
    if card.subscriber_id is None or card.status == CardStatus.UNASSIGNED:
        raise ApiError(Code.CARD_NOT_LINKED)
    if card.type == CardType.CHILD:
        raise ApiError(Code.CARD_NOT_LINKED, "Block a child card and create a new one instead.")
    holder = await subscribers.get(tx, card.subscriber_id)
    await require_editable(tx, actor, holder)
    await require_settled_phone(tx, build_owner(holder))
    return holder


def _build_code_request(actor: Actor, holder: Subscriber) -> CodeRequest:
    """Only the caller who requested a code can use it."""
    requester = "" if actor.principal is None else actor.principal.id
    return CodeRequest("replace_card", holder.id, requester=requester)
