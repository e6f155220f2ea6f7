"""Processors: shops that are paid by card, their terminals, signing keys and settlement money."""

import asyncio

from tapgate.console.acts import Act, Field
from tapgate.console.site import Pages
from tapgate.console.visit import Visit, at
from tapgate.edge.endpoint import Reply

pages = Pages()

_ALL = "/api/v1/processors"
_ONE = "/api/v1/processors/{id}"
_TERMINALS = f"{_ONE}/terminals"
_KEYS = f"{_ONE}/keys"
_FEW = 10
_SOME = 20

_REASON = Field("reason", "Reason", "long", hint="Kept in the audit trail")
_FREE_REASON = _REASON._replace(required=False)

ACTS = (
    Act(
        name="processor.create",
        endpoint=f"POST {_ALL}",
        title="Create a processor",
        explains="A shop or a service that is paid by card. It gets a settlement account, where "
        "the payments arrive, and its first signing key.",
        button="Create",
        fields=(
            Field("name", "Name", hint="As payers see it on their receipts"),
            Field("phone_number", "Phone", "tel", hint="With its country: +23276123456"),
            Field("email", "E-mail", "email", hint="Of whoever answers for it"),
        ),
        done="The processor is there",
        shows="processors/created.html",
    ),
    Act(
        name="processor.suspend",
        endpoint=f"POST {_ONE}/suspend",
        title="Suspend this processor?",
        explains="All its keys are refused at once, those of its terminals too: nobody can pay "
        "there. Its money stays where it is. It can be undone.",
        button="Suspend",
        fields=(_REASON,),
        done="The processor is suspended.",
        dangerous=True,
    ),
    Act(
        name="processor.activate",
        endpoint=f"POST {_ONE}/activate",
        title="Activate this processor?",
        explains="Its keys work again, and those of its terminals that are not blocked.",
        button="Activate",
        fields=(_FREE_REASON,),
        done="The processor is active.",
    ),
    Act(
        name="processor.transfer",
        endpoint=f"POST {_ONE}/transfer",
        title="Send settlement money to a subscriber",
        explains="The settlement account pays, and the money is in the subscriber's wallet at "
        "once. This is how a shop's owner gets what the shop has taken.",
        button="Send money",
        fields=(
            Field("subscriber_id", "Subscriber", hint="Its identifier: sub_…"),
            Field("amount", "Amount", "money", hint="Like 5000"),
            Field("description", "What for", required=False, hint="Kept with the transaction"),
        ),
        done="The money is in the subscriber's wallet.",
        moves_money=True,
    ),
    Act(
        name="terminal.add",
        endpoint=f"POST {_TERMINALS}",
        title="Add a terminal",
        explains="Each till gets a signing key of its own, so that one that is lost can be "
        "blocked alone.",
        button="Add a terminal",
        fields=(Field("name", "Name", hint="Where it stands, like Till 2"),),
        done="The terminal is there",
        shows="processors/terminal_added.html",
    ),
    Act(
        name="terminal.block",
        endpoint=f"POST {_TERMINALS}/{{terminal_id}}/block",
        title="Block this terminal?",
        explains="Its keys are refused at once. The other terminals go on working. It can be "
        "undone.",
        button="Block",
        fields=(_FREE_REASON,),
        done="The terminal is blocked.",
        dangerous=True,
    ),
    Act(
        name="terminal.unblock",
        endpoint=f"POST {_TERMINALS}/{{terminal_id}}/unblock",
        title="Unblock this terminal?",
        explains="Its keys work again.",
        button="Unblock",
        fields=(_FREE_REASON,),
        done="The terminal is unblocked.",
    ),
    Act(
        name="processor.key",
        endpoint=f"POST {_KEYS}",
        title="Create a signing key",
        explains="For the processor's own server. Existing keys keep working until you delete "
        "them: create a key, switch over, then delete the old one.",
        button="Create a key",
        done="The key is there",
        shows="processors/key_created.html",
        fields=(Field("terminal_id", "Terminal", "hidden"),),
    ),
    Act(
        name="terminal.key",
        endpoint=f"POST {_KEYS}",
        title="Create a key for this terminal",
        explains="Existing keys keep working until you delete them: create a key, switch over, "
        "then delete the old one.",
        button="New key",
        fields=(Field("terminal_id", "Terminal", "hidden"),),
        done="The terminal's key is there",
        shows="processors/key_created.html",
    ),
    Act(
        name="processor.delete_key",
        endpoint=f"DELETE {_KEYS}/{{api_key_id}}",
        title="Delete this key?",
        explains="Whatever still signs with it is refused at once, also if it is the last key. "
        "This cannot be undone, but a new key can be created.",
        button="Delete",
        done="The key is deleted.",
        dangerous=True,
    ),
)


@pages.get("/console/processors")
async def processors(visit: Visit) -> Reply[bytes]:
    asked = visit.query.pick("search", "status", "cursor")
    return visit.page("processors/list.html", found=await visit.get(_ALL, asked))


@pages.get("/console/processors/{id}")
async def processor(visit: Visit, id: str) -> Reply[bytes]:
    named = {"id": id}
    one = at(_ONE, named)
    record = await visit.get(one)
    terminals, keys, history, audit = await asyncio.gather(
        visit.get_if_allowed(f"GET {_TERMINALS}", at(_TERMINALS, named), {"limit": _SOME}),
        visit.get_if_allowed(f"GET {_KEYS}", at(_KEYS, named), {"limit": _SOME}),
        visit.get(f"{one}/transactions", {"limit": _FEW}),
        visit.get_if_allowed(
            "GET /api/v1/audit/logs", "/api/v1/audit/logs", {"resource_id": id, "limit": _FEW}
        ),
    )
    return visit.page(
        "processors/processor.html",
        processor=record,
        terminals=terminals,
        terminal_names={one["id"]: one["name"] for one in (terminals or {}).get("data", ())},
        keys=keys,
        history=history,
        audit=audit,
    )


@pages.get("/console/processors/{id}/terminals")
async def all_terminals(visit: Visit, id: str) -> Reply[bytes]:
    return await _all(visit, id, _TERMINALS, "processors/terminals.html")


@pages.get("/console/processors/{id}/keys")
async def all_keys(visit: Visit, id: str) -> Reply[bytes]:
    return await _all(visit, id, _KEYS, "processors/keys.html")


async def _all(visit: Visit, id: str, endpoint: str, template: str) -> Reply[bytes]:
    """Of a processor that has more than its own page shows."""
    asked = visit.query.pick("cursor")
    record, found = await asyncio.gather(
        visit.get(at(_ONE, {"id": id})), visit.get(at(endpoint, {"id": id}), asked)
    )
    return visit.page(template, processor=record, found=found)
