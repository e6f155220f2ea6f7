"""Webhooks: endpoints that receive events, and their deliveries."""

import asyncio
from typing import Any, Final

from tapgate.console.acts import Act, Field
from tapgate.console.rendering import words
from tapgate.console.site import Pages
from tapgate.console.visit import Visit, at
from tapgate.edge.endpoint import Reply
from tapgate.notifications.events import TYPES
from tapgate.notifications.webhooks.model import EVERYTHING, PAUSES, Status

pages = Pages()

_ALL = "/api/v1/admin/webhook-endpoints"
_ONE = f"{_ALL}/{{id}}"
_DELIVERIES = f"{_ONE}/deliveries"

#: The retry schedule in words.
_WAITS: Final = tuple(
    f"{seconds // 3600} hours"
    if seconds >= 3600
    else f"{seconds // 60} minutes"
    if seconds >= 60
    else f"{seconds} seconds"
    for seconds in PAUSES
)

_SETTINGS: Final = (
    Field("url", "Endpoint URL", hint="https://…; in production it must be public"),
    Field(
        "events",
        "Events",
        "many",
        (
            (EVERYTHING, "All events, including future ones"),
            *((event, words(event)) for event in TYPES),
        ),
    ),
)


def _set_status(name: str, status: Status, **said: Any) -> Act:
    fields = (Field("status", "Status", "hidden", value=status),)
    return Act(name=name, endpoint=f"PUT {_ONE}", fields=fields, **said)


ACTS = (
    Act(
        name="webhook.create",
        endpoint=f"POST {_ALL}",
        title="Add a webhook",
        explains="Events are sent to this URL as JSON, signed with a secret that is shown once. "
        "Failed deliveries are retried for about three days.",
        button="Add webhook",
        fields=_SETTINGS,
        done="Webhook added.",
        shows="webhooks/secret.html",
    ),
    Act(
        name="webhook.edit",
        endpoint=f"PUT {_ONE}",
        title="Edit webhook",
        explains="Pending deliveries go to the new URL.",
        button="Edit",
        fields=_SETTINGS,
        reads=_ONE,
        done="Webhook changed.",
    ),
    _set_status(
        "webhook.pause",
        Status.PAUSED,
        title="Pause this webhook?",
        explains="Nothing is sent while it is paused. Events are queued for up to 30 days and sent "
        "when you resume.",
        button="Pause",
        done="Webhook paused.",
    ),
    _set_status(
        "webhook.resume",
        Status.ACTIVE,
        title="Resume this webhook?",
        explains="Queued events are sent now.",
        button="Resume",
        done="Webhook resumed.",
    ),
    Act(
        name="webhook.rotate_secret",
        endpoint=f"POST {_ONE}/rotate-secret",
        title="Rotate the signing secret",
        explains="The new secret is shown once. While the old one is valid, each request carries "
        "a signature by both.",
        button="Rotate secret",
        fields=(
            Field(
                "grace_seconds",
                "Old secret",
                "whole_choice",
                (
                    ("0", "Expires now"),
                    ("3600", "Valid for 1 more hour"),
                    ("86400", "Valid for 24 more hours"),
                ),
                value="86400",
            ),
        ),
        done="Secret rotated.",
        shows="webhooks/secret.html",
    ),
    Act(
        name="webhook.test",
        endpoint=f"POST {_ONE}/test",
        title="Send a test event?",
        explains="Sends webhook.test to this endpoint only. The result appears in the list of "
        "deliveries.",
        button="Send a test event",
        done="Test event queued.",
    ),
    Act(
        name="webhook.redeliver",
        endpoint=f"POST {_DELIVERIES}/{{delivery_id}}/redeliver",
        title="Send this event again?",
        explains="It is sent with the same identifier, so a receiver that stores identifiers "
        "processes it once.",
        button="Send again",
        done="Event queued.",
    ),
    Act(
        name="webhook.delete",
        endpoint=f"DELETE {_ONE}",
        title="Delete this webhook?",
        explains="Nothing more is sent to it, and pending deliveries fail. This cannot be undone.",
        button="Delete",
        done="Webhook deleted.",
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
    """As a part of the page: the deliveries, or only the rows of a further page of them."""
    names, asked = {"id": id}, visit.query.pick("cursor")
    endpoint, deliveries = await asyncio.gather(
        visit.get(at(_ONE, names)), visit.get(at(_DELIVERIES, names), asked)
    )
    whole, rows = "webhooks/one.html", "webhooks/delivery_rows.html"
    part = rows if asked else "webhooks/deliveries.html"
    return visit.page(
        part if visit.is_part else whole, endpoint=endpoint, found=deliveries, waits=_WAITS
    )
