"""Processor list, processor details and actions.

Processors are merchants that accept card payments. They have terminals, signing keys and a
settlement account.
"""

import asyncio

from tapgate.console.actions import Action, Field
from tapgate.console.page_request import PageRequest, build_path
from tapgate.console.site import Pages
from tapgate.edge.endpoint import Reply

pages = Pages()

_LIST_PATH = "/api/v1/processors"
_ITEM_PATH = "/api/v1/processors/{id}"
_TERMINALS_PATH = f"{_ITEM_PATH}/terminals"
_KEYS_PATH = f"{_ITEM_PATH}/keys"
_RECENT_LIMIT = 10
_PREVIEW_LIMIT = 20

_REASON = Field("reason", "Reason", "long", hint="Kept in the audit trail")
_OPTIONAL_REASON = _REASON._replace(required=False)

ACTIONS = (
    Action(
        name="processor.create",
        endpoint=f"POST {_LIST_PATH}",
        title="Create a processor",
        description="A shop or a service that is paid by card. It gets a settlement account, where "
        "the payments arrive, and its first signing key.",
        button="Create",
        fields=(
            Field("name", "Name", hint="As payers see it on their receipts"),
            Field("phone_number", "Phone", "tel", hint="With its country: +23276123456"),
            Field("email", "E-mail", "email", hint="Of whoever answers for it"),
        ),
        success_message="The processor is there",
        result_template="processors/created.html",
    ),
    Action(
        name="processor.suspend",
        endpoint=f"POST {_ITEM_PATH}/suspend",
        title="Suspend this processor?",
        description="All its keys are refused at once, those of its terminals too: nobody can pay "
        "there. Its money stays where it is. It can be undone.",
        button="Suspend",
        fields=(_REASON,),
        success_message="The processor is suspended.",
        is_dangerous=True,
    ),
    Action(
        name="processor.activate",
        endpoint=f"POST {_ITEM_PATH}/activate",
        title="Activate this processor?",
        description="Its keys work again, and those of its terminals that are not blocked.",
        button="Activate",
        fields=(_OPTIONAL_REASON,),
        success_message="The processor is active.",
    ),
    Action(
        name="processor.transfer",
        endpoint=f"POST {_ITEM_PATH}/transfer",
        title="Send settlement money to a subscriber",
        description="The settlement account pays, and the money is in the subscriber's wallet at "
        "once. This is how a shop's owner gets what the shop has taken.",
        button="Send money",
        fields=(
            Field("subscriber_id", "Subscriber", hint="Its identifier: sub_…"),
            Field("amount", "Amount", "money", hint="Like 5000"),
            Field("description", "What for", required=False, hint="Kept with the transaction"),
        ),
        success_message="The money is in the subscriber's wallet.",
        moves_money=True,
    ),
    Action(
        name="terminal.add",
        endpoint=f"POST {_TERMINALS_PATH}",
        title="Add a terminal",
        description="Each till gets a signing key of its own, so that one that is lost can be "
        "blocked alone.",
        button="Add a terminal",
        fields=(Field("name", "Name", hint="Where it stands, like Till 2"),),
        success_message="The terminal is there",
        result_template="processors/terminal_added.html",
    ),
    Action(
        name="terminal.block",
        endpoint=f"POST {_TERMINALS_PATH}/{{terminal_id}}/block",
        title="Block this terminal?",
        description="Its keys are refused at once. The other terminals go on working. It can be "
        "undone.",
        button="Block",
        fields=(_OPTIONAL_REASON,),
        success_message="The terminal is blocked.",
        is_dangerous=True,
    ),
    Action(
        name="terminal.unblock",
        endpoint=f"POST {_TERMINALS_PATH}/{{terminal_id}}/unblock",
        title="Unblock this terminal?",
        description="Its keys work again.",
        button="Unblock",
        fields=(_OPTIONAL_REASON,),
        success_message="The terminal is unblocked.",
    ),
    Action(
        name="processor.key",
        endpoint=f"POST {_KEYS_PATH}",
        title="Create a signing key",
        description="For the processor's own server. Existing keys keep working until you delete "
        "them: create a key, switch over, then delete the old one.",
        button="Create a key",
        success_message="The key is there",
        result_template="processors/key_created.html",
        fields=(Field("terminal_id", "Terminal", "hidden"),),
    ),
    Action(
        name="terminal.key",
        endpoint=f"POST {_KEYS_PATH}",
        title="Create a key for this terminal",
        description="Existing keys keep working until you delete them: create a key, switch over, "
        "then delete the old one.",
        button="New key",
        fields=(Field("terminal_id", "Terminal", "hidden"),),
        success_message="The terminal's key is there",
        result_template="processors/key_created.html",
    ),
    Action(
        name="processor.delete_key",
        endpoint=f"DELETE {_KEYS_PATH}/{{api_key_id}}",
        title="Delete this key?",
        description="Whatever still signs with it is refused at once, also if it is the last key. "
        "This cannot be undone, but a new key can be created.",
        button="Delete",
        success_message="The key is deleted.",
        is_dangerous=True,
    ),
)


@pages.get("/console/processors")
async def list_processors(visit: PageRequest) -> Reply[bytes]:
    asked = visit.query.pick("search", "status", "cursor")
    return visit.render("processors/list.html", found=await visit.get(_LIST_PATH, asked))


@pages.get("/console/processors/{id}")
async def show_processor(visit: PageRequest, id: str) -> Reply[bytes]:
    named = {"id": id}
    one = build_path(_ITEM_PATH, named)
    record = await visit.get(one)
    terminals, keys, history, audit = await asyncio.gather(
        visit.get_if_allowed(
            f"GET {_TERMINALS_PATH}", build_path(_TERMINALS_PATH, named), {"limit": _PREVIEW_LIMIT}
        ),
        visit.get_if_allowed(
            f"GET {_KEYS_PATH}", build_path(_KEYS_PATH, named), {"limit": _PREVIEW_LIMIT}
        ),
        visit.get(f"{one}/transactions", {"limit": _RECENT_LIMIT}),
        visit.get_if_allowed(
            "GET /api/v1/audit/logs",
            "/api/v1/audit/logs",
            {"resource_id": id, "limit": _RECENT_LIMIT},
        ),
    )
    return visit.render(
        "processors/processor.html",
        processor=record,
        terminals=terminals,
        terminal_names={one["id"]: one["name"] for one in (terminals or {}).get("data", ())},
        keys=keys,
        history=history,
        audit=audit,
    )


@pages.get("/console/processors/{id}/terminals")
async def list_terminals(visit: PageRequest, id: str) -> Reply[bytes]:
    return await _render_sublist(visit, id, _TERMINALS_PATH, "processors/terminals.html")


@pages.get("/console/processors/{id}/keys")
async def list_keys(visit: PageRequest, id: str) -> Reply[bytes]:
    return await _render_sublist(visit, id, _KEYS_PATH, "processors/keys.html")


async def _render_sublist(
    visit: PageRequest, id: str, endpoint: str, template: str
) -> Reply[bytes]:
    """Render all terminals or keys of a processor; its own page shows only some of them."""
    asked = visit.query.pick("cursor")
    record, found = await asyncio.gather(
        visit.get(build_path(_ITEM_PATH, {"id": id})),
        visit.get(build_path(endpoint, {"id": id}), asked),
    )
    return visit.render(template, processor=record, found=found)
