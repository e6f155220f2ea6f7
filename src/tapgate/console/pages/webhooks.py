"""Webhooks: who is told about events, and what came of telling them."""

import asyncio
from typing import Final

from tapgate.console.acts import Act, Field
from tapgate.console.rendering import words
from tapgate.console.site import Pages
from tapgate.console.visit import Visit, at
from tapgate.edge.endpoint import Reply
from tapgate.notifications.events import TYPES
from tapgate.notifications.webhooks.model import EVERYTHING, PAUSES

pages = Pages()

_ALL = "/api/v1/admin/webhook-endpoints"
_ONE = f"{_ALL}/{{id}}"
_DELIVERIES = f"{_ONE}/deliveries"

#: How long is waited after a failed try, in words.
_WAITS: Final = tuple(
    f"{seconds // 3600} hours"
    if seconds >= 3600
    else f"{seconds // 60} minutes"
    if seconds >= 60
    else f"{seconds} seconds"
    for seconds in PAUSES
)

ACTS = (
    Act(
        name="webhook.create",
        endpoint=f"POST {_ALL}",
        title="Add a webhook",
        explains="Events are sent to this address as JSON, signed with a secret that you see once. "
        "What is not taken is sent again for more than three days.",
        button="Add webhook",
        fields=(
            Field("url", "Address", hint="https://… ; in production it must be a public one"),
            Field(
                "events",
                "Events",
                "many",
                (
                    (EVERYTHING, "Everything, also kinds of events that are added later"),
                    *((event, words(event)) for event in TYPES),
                ),
            ),
        ),
        done="The webhook is added.",
        shows="webhooks/secret.html",
    ),
    Act(
        name="webhook.test",
        endpoint=f"POST {_ONE}/test",
        title="Send a test event?",
        explains="This address alone gets an event of the type webhook.test, signed like any "
        "other. You see in the list below what it answers.",
        button="Send a test event",
        done="The test event is on its way.",
    ),
    Act(
        name="webhook.redeliver",
        endpoint=f"POST {_DELIVERIES}/{{delivery_id}}/redeliver",
        title="Send this event again?",
        explains="It goes out at once, with the same identifier, whatever came of it before: a "
        "receiver that keeps identifiers takes it once.",
        button="Send again",
        done="The event is on its way again.",
    ),
    Act(
        name="webhook.delete",
        endpoint=f"DELETE {_ONE}",
        title="Delete this webhook?",
        explains="Nothing is sent to this address any more, also what still waits. The secret is "
        "gone. This cannot be undone.",
        button="Delete",
        done="The webhook is deleted.",
        dangerous=True,
        then="/console/webhooks",
    ),
)


@pages.get("/console/webhooks")
async def webhooks(visit: Visit) -> Reply[bytes]:
    found = await visit.get(_ALL, visit.query.pick("cursor"))
    return visit.page("webhooks/list.html", found=found)


@pages.get("/console/webhooks/{id}")
async def webhook(visit: Visit, id: str) -> Reply[bytes]:
    """As a part: the deliveries alone, and of further ones only the rows."""
    names, asked = {"id": id}, visit.query.pick("cursor")
    endpoint, deliveries = await asyncio.gather(
        visit.get(at(_ONE, names)), visit.get(at(_DELIVERIES, names), asked)
    )
    whole, rows = "webhooks/one.html", "webhooks/delivery_rows.html"
    part = rows if asked else "webhooks/deliveries.html"
    return visit.page(
        part if visit.is_part else whole, endpoint=endpoint, found=deliveries, waits=_WAITS
    )
