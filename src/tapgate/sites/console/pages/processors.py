"""Processor list, processor details and actions.

Processors are merchants, or payment companies that act for merchants. They have terminals, signing
keys and a settlement account.
"""

from functools import partial
from typing import Any

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components import fields
from tapgate.sites.console.components.key_actions import (
    build_create_key_action,
    build_delete_key_action,
)
from tapgate.sites.console.components.lists import add_list_page, add_sublist_page, add_totals_page
from tapgate.sites.console.components.merchant_steps import MerchantStep, list_steps
from tapgate.sites.console.components.owner_users import get_users
from tapgate.sites.console.components.periods import PRESETS, resolve_period
from tapgate.sites.console.components.related import RECENT_LIMIT, gather_by_name, get_audit
from tapgate.sites.console.components.state_actions import build_state_action
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.pages.payouts import SCHEDULE_PATH
from tapgate.sites.console.site import Pages
from tapgate_client.schemas.processors import ProcessorStatus

pages = Pages()

_LIST_PATH = "/api/v1/processors"
_ITEM_PATH = "/api/v1/processors/{id}"
_TERMINALS_PATH = f"{_ITEM_PATH}/terminals"
_KEYS_PATH = f"{_ITEM_PATH}/keys"
_BANK_ACCOUNTS_PATH = "/api/v1/bank-accounts"
_PREVIEW_LIMIT = 20

_DEFAULT_PERIOD = "month"
_PERIODS = {name: PRESETS[name] for name in ("today", "week", "month", "this_month", "last_month")}

_TERMINAL = Field("terminal_id", "Terminal", "hidden")

_build_state_action = partial(build_state_action, "processor", _ITEM_PATH, "merchant")
_build_terminal_action = partial(
    build_state_action, "terminal", f"{_TERMINALS_PATH}/{{terminal_id}}", "terminal"
)

ACTIONS = (
    Action(
        name="processor.create",
        endpoint=f"POST {_LIST_PATH}",
        title="Create a merchant",
        description="Merchants accept card payments, which are credited to their settlement "
        "account. The first signing key is created with the merchant.",
        button="Create",
        fields=(
            Field("name", hint="Shown on customers' receipts"),
            fields.PHONE,
            Field("email", kind="email", hint="Contact for this merchant"),
        ),
        success_message="Merchant created",
        result_template="processors/created.html",
    ),
    _build_state_action(
        "suspend",
        "All keys stop working immediately, including terminal keys, so the merchant "
        "can't accept payments. The balance isn't affected. You can activate the merchant again.",
        fields.REASON,
    ),
    _build_state_action(
        "activate",
        "All keys work again, except those of blocked terminals.",
        fields.OPTIONAL_REASON,
    ),
    Action(
        name="processor.transfer",
        endpoint=f"POST {_ITEM_PATH}/transfer",
        title="Pay out to a customer",
        description="Moves money from the settlement account to a customer's wallet immediately, "
        "for example to the owner of the business.",
        button="Pay out",
        fields=(
            Field("subscriber_id", kind="picker", picks="subscriber"),
            fields.AMOUNT,
            fields.MEMO,
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
        fields=(Field("name", hint="Where the terminal is, for example Till 2"),),
        success_message="Terminal added",
        result_template="processors/terminal_added.html",
    ),
    _build_terminal_action(
        "block",
        "The terminal's keys stop working immediately. Other terminals are not "
        "affected. You can unblock it later.",
        fields.OPTIONAL_REASON,
    ),
    _build_terminal_action("unblock", "The terminal's keys work again.", fields.OPTIONAL_REASON),
    build_create_key_action(
        "processor.key", _KEYS_PATH, introduction="For the merchant's server. ", fields=(_TERMINAL,)
    ),
    build_create_key_action(
        "terminal.key",
        _KEYS_PATH,
        title="Create a signing key for this terminal",
        fields=(_TERMINAL,),
        success_message="Terminal key created",
    ),
    build_delete_key_action("processor.delete_key", _KEYS_PATH),
)


add_list_page(
    pages, "/console/processors", _LIST_PATH, "processors/list.html", ("search", "status", "order")
)
add_totals_page(pages, "/console/processors", _LIST_PATH, ("search", "status"))
for _name, _source in (("terminals", _TERMINALS_PATH), ("keys", _KEYS_PATH)):
    add_sublist_page(
        pages,
        f"/console/processors/{{id}}/{_name}",
        name="processor",
        item=_ITEM_PATH,
        source=_source,
        template=f"processors/{_name}.html",
    )


@pages.get("/console/processors/{id}/summary")
async def show_summary(request: PageRequest, id: str) -> Reply[bytes]:
    """Render a period's sales, which a merchant page loads after its other parts."""
    period = request.query.get("period") or _DEFAULT_PERIOD
    filters = resolve_period(request, _DEFAULT_PERIOD)
    summary = await request.get(f"{_ITEM_PATH}/summary", filters, id=id)
    return request.render(
        "processors/summary.html", summary=summary, id=id, period=period, periods=_PERIODS
    )


@pages.get("/console/processors/{id}")
async def show_processor(request: PageRequest, id: str) -> Reply[bytes]:
    record = await request.get(_ITEM_PATH, id=id)
    parts = await gather_by_name(
        terminals=request.get_if_allowed(_TERMINALS_PATH, {"limit": _PREVIEW_LIMIT}, id=id),
        keys=request.get_if_allowed(_KEYS_PATH, {"limit": _PREVIEW_LIMIT}, id=id),
        history=request.get(f"{_ITEM_PATH}/transactions", {"limit": RECENT_LIMIT}, id=id),
        schedule=request.get_if_allowed(SCHEDULE_PATH, id=id),
        audit=get_audit(request, id),
        users=get_users(request, id),
        accounts=request.get_if_allowed(_BANK_ACCOUNTS_PATH, {"owner_id": id, "limit": 1}),
    )
    return request.render(
        "processors/processor.html",
        processor=record,
        owner_id=id,
        invite="merchant_user.create",
        steps=_list_steps(record, parts),
        **parts,
    )


def _list_steps(record: dict[str, Any], parts: dict[str, Any]) -> list[MerchantStep]:
    """Return the steps of a new merchant, for admins who see all parts of them."""
    needed = [parts[name] for name in ("terminals", "keys", "users", "accounts")]
    if record["status"] != ProcessorStatus.ACTIVE or None in needed:
        return []
    terminals, keys, users, accounts = (page["data"] for page in needed)
    return list_steps(
        terminals=terminals,
        keys=keys,
        payments=parts["history"]["data"],
        bank_accounts=accounts,
        users=users,
    )
