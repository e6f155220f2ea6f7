"""Developers: webhook endpoints with deliveries, signing keys and the request log."""

from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.components.related import gather_by_name
from tapgate.sites.console.page_request import PORTAL, PageRequest
from tapgate.sites.console.pages import partners, processors, request_logs, webhooks
from tapgate.sites.console.site import Pages
from tapgate.sites.portal.components import find_action, get_owner_id, is_merchant

pages = Pages()

_WEBHOOKS_PATH: Final = "/api/v1/admin/webhook-endpoints"
_KEY_LIMIT: Final = 100
_KEY_ACTIONS: Final = ("processor.key", "processor.delete_key")
_PARTNER_KEY_ACTIONS: Final = ("partner.key", "partner.delete_key")

ACTIONS: Final = (
    find_action(webhooks.ACTIONS, "webhook.create", fields=webhooks.SETTINGS_FIELDS),
    *(action for action in webhooks.ACTIONS if action.name != "webhook.create"),
    *(find_action(processors.ACTIONS, name) for name in _KEY_ACTIONS),
    *(find_action(partners.ACTIONS, name) for name in _PARTNER_KEY_ACTIONS),
)


@pages.get(f"{PORTAL}/webhooks")
async def show_developers(request: PageRequest) -> Reply[bytes]:
    owner_type, actions = (
        ("processors", _KEY_ACTIONS)
        if is_merchant(request)
        else ("admin/partners", _PARTNER_KEY_ACTIONS)
    )
    parts = await gather_by_name(
        page=request.get(_WEBHOOKS_PATH, request.query.pick("cursor")),
        keys=request.get(
            f"/api/v1/{owner_type}/{{id}}/keys", {"limit": _KEY_LIMIT}, id=get_owner_id(request)
        ),
    )
    return request.render(
        "portal/developers.html", owner_id=get_owner_id(request), key_actions=actions, **parts
    )


pages.get(f"{PORTAL}/webhooks/{{id}}")(webhooks.show_webhook)
pages.get(f"{PORTAL}/webhooks/{{id}}/deliveries/{{delivery_id}}")(webhooks.show_delivery)


@pages.get(f"{PORTAL}/request-logs")
async def list_requests(request: PageRequest) -> Reply[bytes]:
    return await request_logs.render_list(request, "portal/request_logs.html")


pages.get(f"{PORTAL}/request-logs/{{id}}")(request_logs.show_request)
