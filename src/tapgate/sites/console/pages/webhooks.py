"""Webhook endpoint list, endpoint details with deliveries, and actions."""

import asyncio
from functools import partial
from typing import Final

from tapgate.events.webhooks.retry_schedule import RETRY_DELAYS_SECONDS
from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components import fields
from tapgate.sites.console.components.lists import add_list_page
from tapgate.sites.console.components.state_actions import build_state_action
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.labels import humanize
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.rendering import format_json
from tapgate.sites.console.site import Pages
from tapgate.sites.console.times import format_duration
from tapgate_client.schemas.webhooks import (
    ALL_EVENTS,
    WEBHOOK_EVENT_TYPES,
    WebhookDeliveryStatus,
    WebhookEndpointStatus,
)

pages = Pages()

_LIST_PATH = "/api/v1/admin/webhook-endpoints"
_ITEM_PATH = f"{_LIST_PATH}/{{id}}"
_DELIVERIES_PATH = f"{_ITEM_PATH}/deliveries"

SETTINGS_FIELDS: Final = (
    Field("url", "Endpoint URL", hint="In production, use a public https URL"),
    Field(
        "events",
        kind="many",
        choices=(
            (ALL_EVENTS, "All events, including future ones"),
            *((event, humanize(event)) for event in WEBHOOK_EVENT_TYPES),
        ),
    ),
)


_build_state_action = partial(build_state_action, "webhook", _ITEM_PATH, "webhook")

ACTIONS = (
    Action(
        name="webhook.create",
        endpoint=f"POST {_LIST_PATH}",
        title="Add a webhook",
        description="Sends events to this URL as JSON, signed with a secret that is shown once. "
        "Failed deliveries are retried for about three days.",
        fields=(
            *SETTINGS_FIELDS,
            fields.OWNER._replace(
                hint="The endpoint then gets only its events. Leave blank for all events."
            ),
        ),
        success_message="Webhook added",
        result_template="webhooks/secret.html",
    ),
    Action(
        name="webhook.edit",
        endpoint=f"PUT {_ITEM_PATH}",
        title="Edit webhook",
        description="Pending deliveries go to the new URL.",
        button="Save",
        fields=SETTINGS_FIELDS,
        prefill_path=_ITEM_PATH,
        success_message="Webhook updated.",
    ),
    _build_state_action(
        "pause",
        "No events are sent while the webhook is paused. Events are queued for up to 30 days"
        " and sent when you resume it.",
        status=WebhookEndpointStatus.PAUSED,
    ),
    _build_state_action(
        "resume", "Queued events are sent immediately.", status=WebhookEndpointStatus.ACTIVE
    ),
    Action(
        name="webhook.rotate_secret",
        endpoint=f"POST {_ITEM_PATH}/rotate-secret",
        title="Rotate signing secret",
        description="The new secret is shown once. While the old secret is valid, requests are "
        "signed with both.",
        button="Rotate secret",
        fields=(
            fields.GRACE._replace(
                choices=(("0", "Immediately"), ("3600", "In 1 hour"), ("86400", "In 24 hours")),
                value="86400",
            ),
        ),
        success_message="Secret rotated",
        result_template="webhooks/secret.html",
    ),
    Action(
        name="webhook.test",
        endpoint=f"POST {_ITEM_PATH}/test",
        title="Send a test event?",
        description="Sends a test event to this endpoint only. See the result under Deliveries.",
        success_message="Test event queued.",
    ),
    Action(
        name="webhook.redeliver",
        endpoint=f"POST {_DELIVERIES_PATH}/{{delivery_id}}/redeliver",
        title="Resend this event?",
        description="The event keeps its ID, so your server can recognize and ignore duplicates.",
        button="Resend",
        success_message="Event queued.",
    ),
    Action(
        name="webhook.resend_period",
        endpoint=f"POST {_ITEM_PATH}/redeliver",
        title="Resend events of a period",
        description="Use this after your server lost events. They keep their IDs, so your server "
        "can recognize duplicates. A period has at most 31 days.",
        button="Resend events",
        fields=(
            Field("from", kind="moment"),
            Field("to", kind="moment"),
            Field(
                "status",
                "Events",
                "choice",
                choices=tuple(WebhookDeliveryStatus),
                value=WebhookDeliveryStatus.FAILED.value,
            ),
        ),
        success_message="Events queued.",
    ),
    _build_state_action(
        "delete",
        "No more events are sent to this URL, and pending deliveries fail. This can't be undone.",
        redirect_path="/console/webhooks",
    ),
)


add_list_page(pages, "/console/webhooks", _LIST_PATH, "webhooks/list.html", ("failing",))


@pages.get("/console/webhooks/{id}")
async def show_webhook(request: PageRequest, id: str) -> Reply[bytes]:
    """Render an endpoint; a fragment request gets its deliveries, or only the next page's rows."""
    filters = request.query.pick("cursor", "status")
    endpoint, deliveries = await asyncio.gather(
        request.get(_ITEM_PATH, id=id), request.get(_DELIVERIES_PATH, filters, id=id)
    )
    partial = "webhooks/delivery_rows.html" if "cursor" in filters else "webhooks/deliveries.html"
    return request.render(
        partial if request.is_partial else "webhooks/webhook.html",
        endpoint=endpoint,
        page=deliveries,
        now=request.context.services.clock(),
        retry_delays=_describe_retry_delays(request),
    )


def _describe_retry_delays(request: PageRequest) -> list[str]:
    """Return the retry schedule in words."""
    return [
        format_duration(seconds, request.translator, in_days=False)
        for seconds in RETRY_DELAYS_SECONDS
    ]


@pages.get("/console/webhooks/{id}/deliveries/{delivery_id}")
async def show_delivery(request: PageRequest, id: str, delivery_id: str) -> Reply[bytes]:
    endpoint, delivery = await asyncio.gather(
        request.get(_ITEM_PATH, id=id),
        request.get(f"{_DELIVERIES_PATH}/{{delivery_id}}", id=id, delivery_id=delivery_id),
    )
    payload = delivery["payload"]
    return request.render(
        "webhooks/delivery.html",
        endpoint=endpoint,
        delivery=delivery,
        now=request.context.services.clock(),
        payload=None if payload is None else format_json(payload),
    )
