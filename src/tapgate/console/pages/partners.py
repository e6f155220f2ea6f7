"""Partner list, partner details and actions.

Partners are companies, such as banks and employers, that fund subscribers from their own clearing
account.
"""

import asyncio

from tapgate.api.endpoint import Reply
from tapgate.console.actions import GRACE_FIELD, Action, Field
from tapgate.console.page_request import PageRequest, build_path
from tapgate.console.site import Pages

pages = Pages()

_LIST_PATH = "/api/v1/admin/partners"
_ITEM_PATH = "/api/v1/admin/partners/{id}"
_KEYS_PATH = f"{_ITEM_PATH}/keys"
_RECENT_LIMIT = 20

_REASON = Field("reason", "Reason", "long", hint="Saved in the audit log", required=False)

ACTIONS = (
    Action(
        name="partner.create",
        endpoint=f"POST {_LIST_PATH}",
        title="Create a partner",
        description="A bank, employer or transfer service that funds customers from its account on "
        "the platform.",
        button="Create",
        fields=(
            Field("name", "Name", hint="Shown on customers' statements"),
            Field(
                "overdraft_limit",
                "Overdraft limit",
                "money",
                hint="How far the balance can go below zero",
                value="0",
            ),
        ),
        success_message="Partner created",
        result_template="partners/created.html",
    ),
    Action(
        name="partner.fund",
        endpoint=f"POST {_ITEM_PATH}/fund",
        title="Add funds",
        description="Use this after you receive the partner's money in cash or by bank transfer. "
        "Moves the amount from the platform's cash account to the partner's account immediately.",
        button="Add funds",
        fields=(Field("amount", "Amount", "money", hint="For example, 50000"),),
        success_message="Funds added.",
        moves_money=True,
    ),
    Action(
        name="partner.suspend",
        endpoint=f"POST {_ITEM_PATH}/suspend",
        title="Suspend this partner?",
        description="Its keys and its webhook stop working immediately, so it can't fund "
        "customers. The balance isn't affected. You can activate the partner again.",
        button="Suspend",
        fields=(_REASON,),
        success_message="Partner suspended.",
        is_dangerous=True,
    ),
    Action(
        name="partner.activate",
        endpoint=f"POST {_ITEM_PATH}/activate",
        title="Activate this partner?",
        description="Its keys and its webhook work again.",
        button="Activate",
        fields=(_REASON,),
        success_message="Partner activated.",
    ),
    Action(
        name="partner.key",
        endpoint=f"POST {_KEYS_PATH}",
        title="Create a signing key",
        description="Existing keys keep working until you delete them. To replace a key, create a "
        "new one, switch over, then delete the old one.",
        button="Create key",
        success_message="Key created",
        result_template="processors/key_created.html",
    ),
    Action(
        name="partner.delete_key",
        endpoint=f"DELETE {_KEYS_PATH}/{{api_key_id}}",
        title="Delete this key?",
        description="Requests signed with this key are rejected immediately, even if it is the "
        "last key. This can't be undone, but you can create a new key.",
        button="Delete",
        success_message="Key deleted.",
        is_dangerous=True,
    ),
    Action(
        name="partner.rotate_webhook_secret",
        endpoint=f"POST {_ITEM_PATH}/rotate-webhook-secret",
        title="Rotate webhook secret",
        description="Creates a new secret. Choose how long the old secret is accepted while the "
        "partner switches over. A secret from an earlier rotation expires immediately.",
        button="Rotate webhook secret",
        fields=(GRACE_FIELD,),
        success_message="Webhook secret rotated",
        result_template="partners/webhook_secret.html",
    ),
)


@pages.get("/console/partners")
async def list_partners(request: PageRequest) -> Reply[bytes]:
    filters = request.query.pick("search", "status", "cursor")
    return request.render("partners/list.html", page=await request.get(_LIST_PATH, filters))


@pages.get("/console/partners/{id}")
async def show_partner(request: PageRequest, id: str) -> Reply[bytes]:
    record = await request.get(build_path(_ITEM_PATH, {"id": id}))
    history, keys, audit = await asyncio.gather(
        request.get("/api/v1/transactions", {"user_id": id, "limit": _RECENT_LIMIT}),
        request.get(build_path(_KEYS_PATH, {"id": id}), {"limit": _RECENT_LIMIT}),
        request.get_if_allowed(
            "GET /api/v1/audit/logs",
            "/api/v1/audit/logs",
            {"resource_id": id, "limit": _RECENT_LIMIT},
        ),
    )
    return request.render(
        "partners/partner.html",
        partner=record,
        history=history,
        keys=keys,
        audit=audit,
        webhook_url=_build_webhook_url(request, id),
    )


@pages.get("/console/partners/{id}/keys")
async def list_keys(request: PageRequest, id: str) -> Reply[bytes]:
    """Render all keys of a partner, in pages. The partner page shows at most `_RECENT_LIMIT`."""
    record, page = await asyncio.gather(
        request.get(build_path(_ITEM_PATH, {"id": id})),
        request.get(build_path(_KEYS_PATH, {"id": id}), request.query.pick("cursor")),
    )
    return request.render("partners/keys.html", partner=record, page=page)


def _build_webhook_url(request: PageRequest, id: str) -> str:
    """Return the URL to which the partner sends its top-ups."""
    path = build_path("/api/v1/webhooks/partners/{partner_id}", {"partner_id": id})
    return f"{request.context.services.settings.public_url}{path}"
