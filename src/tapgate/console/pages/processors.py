"""Processor list, processor details and actions.

Processors are merchants, or payment companies that act for merchants. They have terminals, signing
keys and a settlement account.
"""

import asyncio

from tapgate.api.endpoint import Reply
from tapgate.console.actions import Action, Field
from tapgate.console.page_request import PageRequest, build_path
from tapgate.console.site import Pages

pages = Pages()

_LIST_PATH = "/api/v1/processors"
_ITEM_PATH = "/api/v1/processors/{id}"
_TERMINALS_PATH = f"{_ITEM_PATH}/terminals"
_KEYS_PATH = f"{_ITEM_PATH}/keys"
_RECENT_LIMIT = 10
_PREVIEW_LIMIT = 20

_REASON = Field("reason", "Reason", "long", hint="Saved in the audit log")
_OPTIONAL_REASON = _REASON._replace(required=False)

ACTIONS = (
    Action(
        name="processor.create",
        endpoint=f"POST {_LIST_PATH}",
        title="Create a merchant",
        description="Merchants accept card payments, which are credited to their settlement "
        "account. The first signing key is created with the merchant.",
        button="Create",
        fields=(
            Field("name", "Name", hint="Shown on customers' receipts"),
            Field("phone_number", "Phone", "tel", hint="Include the country code: +232 76 123 456"),
            Field("email", "Email", "email", hint="Contact for this merchant"),
        ),
        success_message="Merchant created",
        result_template="processors/created.html",
    ),
    Action(
        name="processor.suspend",
        endpoint=f"POST {_ITEM_PATH}/suspend",
        title="Suspend this merchant?",
        description="All keys stop working immediately, including terminal keys, so the merchant "
        "can't accept payments. The balance isn't affected. You can activate the merchant again.",
        button="Suspend",
        fields=(_REASON,),
        success_message="Merchant suspended.",
        is_dangerous=True,
    ),
    Action(
        name="processor.activate",
        endpoint=f"POST {_ITEM_PATH}/activate",
        title="Activate this merchant?",
        description="All keys work again, except those of blocked terminals.",
        button="Activate",
        fields=(_OPTIONAL_REASON,),
        success_message="Merchant activated.",
    ),
    Action(
        name="processor.transfer",
        endpoint=f"POST {_ITEM_PATH}/transfer",
        title="Pay out to a customer",
        description="Moves money from the settlement account to a customer's wallet immediately, "
        "for example to the owner of the business.",
        button="Pay out",
        fields=(
            Field("subscriber_id", "Customer", hint="Customer ID: sub_…"),
            Field("amount", "Amount", "money", hint="For example, 5000"),
            Field("description", "Description", required=False, hint="Saved with the transaction"),
        ),
        success_message="Payout completed.",
        moves_money=True,
    ),
    Action(
        name="terminal.add",
        endpoint=f"POST {_TERMINALS_PATH}",
        title="Add a terminal",
        description="Each terminal has its own signing key, so you can block a lost terminal "
        "without affecting the others.",
        button="Add terminal",
        fields=(Field("name", "Name", hint="Where the terminal is, for example Till 2"),),
        success_message="Terminal added",
        result_template="processors/terminal_added.html",
    ),
    Action(
        name="terminal.block",
        endpoint=f"POST {_TERMINALS_PATH}/{{terminal_id}}/block",
        title="Block this terminal?",
        description="The terminal's keys stop working immediately. Other terminals are not "
        "affected. You can unblock it later.",
        button="Block",
        fields=(_OPTIONAL_REASON,),
        success_message="Terminal blocked.",
        is_dangerous=True,
    ),
    Action(
        name="terminal.unblock",
        endpoint=f"POST {_TERMINALS_PATH}/{{terminal_id}}/unblock",
        title="Unblock this terminal?",
        description="The terminal's keys work again.",
        button="Unblock",
        fields=(_OPTIONAL_REASON,),
        success_message="Terminal unblocked.",
    ),
    Action(
        name="processor.key",
        endpoint=f"POST {_KEYS_PATH}",
        title="Create a signing key",
        description="For the merchant's server. Existing keys keep working until you delete them. "
        "To replace a key, create a new one, switch over, then delete the old one.",
        button="Create key",
        success_message="Key created",
        result_template="processors/key_created.html",
        fields=(Field("terminal_id", "Terminal", "hidden"),),
    ),
    Action(
        name="terminal.key",
        endpoint=f"POST {_KEYS_PATH}",
        title="Create a signing key for this terminal",
        description="Existing keys keep working until you delete them. To replace a key, create a "
        "new one, switch over, then delete the old one.",
        button="Create key",
        fields=(Field("terminal_id", "Terminal", "hidden"),),
        success_message="Terminal key created",
        result_template="processors/key_created.html",
    ),
    Action(
        name="processor.delete_key",
        endpoint=f"DELETE {_KEYS_PATH}/{{api_key_id}}",
        title="Delete this key?",
        description="Requests signed with this key are rejected immediately, even if it is the "
        "last key. This can't be undone, but you can create a new key.",
        button="Delete",
        success_message="Key deleted.",
        is_dangerous=True,
    ),
)


@pages.get("/console/processors")
async def list_processors(request: PageRequest) -> Reply[bytes]:
    filters = request.query.pick("search", "status", "cursor")
    return request.render("processors/list.html", page=await request.get(_LIST_PATH, filters))


@pages.get("/console/processors/{id}")
async def show_processor(request: PageRequest, id: str) -> Reply[bytes]:
    params = {"id": id}
    path = build_path(_ITEM_PATH, params)
    record = await request.get(path)
    terminals, keys, history, audit = await asyncio.gather(
        request.get_if_allowed(
            f"GET {_TERMINALS_PATH}", build_path(_TERMINALS_PATH, params), {"limit": _PREVIEW_LIMIT}
        ),
        request.get_if_allowed(
            f"GET {_KEYS_PATH}", build_path(_KEYS_PATH, params), {"limit": _PREVIEW_LIMIT}
        ),
        request.get(f"{path}/transactions", {"limit": _RECENT_LIMIT}),
        request.get_if_allowed(
            "GET /api/v1/audit/logs",
            "/api/v1/audit/logs",
            {"resource_id": id, "limit": _RECENT_LIMIT},
        ),
    )
    return request.render(
        "processors/processor.html",
        processor=record,
        terminals=terminals,
        terminal_names={item["id"]: item["name"] for item in (terminals or {}).get("data", ())},
        keys=keys,
        history=history,
        audit=audit,
    )


@pages.get("/console/processors/{id}/terminals")
async def list_terminals(request: PageRequest, id: str) -> Reply[bytes]:
    return await _render_sublist(request, id, _TERMINALS_PATH, "processors/terminals.html")


@pages.get("/console/processors/{id}/keys")
async def list_keys(request: PageRequest, id: str) -> Reply[bytes]:
    return await _render_sublist(request, id, _KEYS_PATH, "processors/keys.html")


async def _render_sublist(
    request: PageRequest, id: str, endpoint: str, template: str
) -> Reply[bytes]:
    """Render all terminals or keys of a processor, in pages.

    The processor page shows at most `_PREVIEW_LIMIT` of each.
    """
    record, page = await asyncio.gather(
        request.get(build_path(_ITEM_PATH, {"id": id})),
        request.get(build_path(endpoint, {"id": id}), request.query.pick("cursor")),
    )
    return request.render(template, processor=record, page=page)
