"""Objection to a phone number change, by the number that was replaced."""

from typing import Final

import msgspec

from tapgate.auth.actors import Actor
from tapgate.business.customers.subscribers import operations as subscribers
from tapgate.business.customers.subscribers import phone_changes
from tapgate.business.customers.subscribers import queries as subscriber_queries
from tapgate.business.customers.subscribers.model import STATUS_TEXTS, Subscriber
from tapgate.business.support import operations, queries
from tapgate.business.support.model import SupportRequest
from tapgate.core.message_templates import Notice
from tapgate.core.phone_numbers import mask_phone_number
from tapgate.core.records import SubscriberId
from tapgate.events.notifications.account_notices import send_notice
from tapgate.http.api.access import Access
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.subscribers import (
    PhoneChangeDispute,
    PhoneChangeDisputed,
    SubscriberStatus,
)
from tapgate_client.schemas.support import NewSupportMessage

STATUS_REASON: Final = "phone_change_disputed"

endpoints = Endpoints("Subscribers", "/api/v1/subscribers", owners=NEVER)


@endpoints.post(
    "/{id}/dispute-phone-change",
    access=Access(service=True),
    errors=(Code.FORBIDDEN,),
    effect="sets",
    objects=ObjectAccess.ANY,  # the number that was replaced identifies its owner
    notices=(Notice.WALLET_CHANGED,),
)
async def dispute_phone_change(
    request: RequestContext, tx: Transaction, id: SubscriberId, body: PhoneChangeDispute
) -> PhoneChangeDisputed:
    """Object to a phone number change from the number that was replaced.

    Possible for 24 hours, for every number that was replaced in this time; other numbers get 403.
    The wallet is blocked with the reason `phone_change_disputed`, and an urgent support request
    names who made the change. These people get 403 for unblocking or closing the subscriber, and
    for changing the number, until someone else has unblocked the subscriber.
    """
    subscriber, support = await _veto(tx, request.actor, id, body.phone_number)
    return PhoneChangeDisputed(
        subscriber_id=subscriber.public_id,
        status=subscriber.status,
        status_reason=subscriber.status_reason,
        support_request_id=support.public_id,
    )


async def _veto(
    tx: Transaction, actor: Actor, subscriber_id: int, phone_number: str
) -> tuple[Subscriber, SupportRequest]:
    before = await subscriber_queries.lock(tx, subscriber_id)
    changes = await phone_changes.find_disputable(tx, subscriber_id, phone_number)
    if not changes:
        raise ApiError(
            Code.FORBIDDEN,
            "This number was not replaced in the last 24 hours.",
            details={"required": ["a number replaced in the last 24 hours"]},
        )
    await phone_changes.mark_vetoed(tx, changes)
    after = before
    if before.status != SubscriberStatus.CLOSED and before.status_reason != STATUS_REASON:
        after = msgspec.structs.replace(
            before, status=SubscriberStatus.BLOCKED, status_reason=STATUS_REASON
        )
        after = await subscribers.save(
            tx, actor, before, after, action="blocked", reason=STATUS_REASON
        )
        # The notice about the block goes to the new number, which may not be the customer's.
        text = STATUS_TEXTS[after.language][after.status]
        recipient = after.notice_recipient._replace(phone_number=phone_number)
        await send_notice(tx, recipient, Notice.WALLET_CHANGED, text)
    change = changes[0]
    makers = list(dict.fromkeys(maker for item in changes for maker in item.makers))
    description = (
        f"The customer objects to the change of the phone number from"
        f" {mask_phone_number(change.old_number)} to {mask_phone_number(change.new_number)}"
        f" ({change.changed_at:%Y-%m-%d %H:%M} UTC). The wallet is blocked. Made or approved by:"
        f" {', '.join(await phone_changes.load_maker_names(tx, makers))}."
    )
    message = NewSupportMessage(
        phone_number=phone_number, text=description, message_id=f"veto-{change.id}"
    )
    support, _ = await operations.receive(tx, actor, message, vault=tx.vault)
    await queries.make_urgent(tx, support.id, subscriber_id)
    return after, await queries.get(tx, support.id)
