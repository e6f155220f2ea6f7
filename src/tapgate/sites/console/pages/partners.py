"""Partner list, partner details and actions.

Partners are companies, such as banks and employers, that fund subscribers from their own clearing
account.
"""

from functools import partial

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components import fields
from tapgate.sites.console.components.key_actions import (
    build_create_key_action,
    build_delete_key_action,
)
from tapgate.sites.console.components.lists import add_list_page, add_sublist_page, add_totals_page
from tapgate.sites.console.components.owner_users import get_users
from tapgate.sites.console.components.related import gather_by_name, get_audit, get_history
from tapgate.sites.console.components.state_actions import build_state_action
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest, build_path
from tapgate.sites.console.site import Pages

pages = Pages()

_LIST_PATH = "/api/v1/admin/partners"
_ITEM_PATH = "/api/v1/admin/partners/{id}"
_KEYS_PATH = f"{_ITEM_PATH}/keys"
_PREVIEW_LIMIT = 20

_build_state_action = partial(build_state_action, "partner", _ITEM_PATH, "partner")

_NAME = Field("name", hint="Shown on customers' statements")
_OVERDRAFT_HINT = "How far the balance can go below zero"

ACTIONS = (
    Action(
        name="partner.create",
        endpoint=f"POST {_LIST_PATH}",
        title="Create a partner",
        description="A bank, employer or transfer service that funds customers from its account on "
        "the platform.",
        button="Create",
        fields=(
            _NAME,
            Field("overdraft_limit", kind="money", hint=_OVERDRAFT_HINT, value="0"),
        ),
        success_message="Partner created",
        result_template="partners/created.html",
    ),
    Action(
        name="partner.update",
        endpoint=f"PUT {_ITEM_PATH}",
        title="Edit partner",
        description="Fields you leave blank keep their current value.",
        button="Save",
        fields=(_NAME, Field("overdraft_limit", kind="money", hint=_OVERDRAFT_HINT)),
        prefill_path=_ITEM_PATH,
        success_message="Partner updated.",
    ),
    Action(
        name="partner.fund",
        endpoint=f"POST {_ITEM_PATH}/fund",
        title="Add funds",
        description="Use this after you receive the partner's money in cash or by bank transfer. "
        "Moves the amount from the platform's cash account to the partner's account immediately.",
        fields=(
            Field("amount", kind="money", hint="For example, 50000"),
            fields.BANK_REFERENCE,
        ),
        success_message="Funds added.",
        moves_money=True,
    ),
    _build_state_action(
        "suspend",
        "Its keys and its webhook stop working immediately, so it can't fund "
        "customers. The balance isn't affected. You can activate the partner again.",
        fields.OPTIONAL_REASON,
    ),
    _build_state_action("activate", "Its keys and its webhook work again.", fields.OPTIONAL_REASON),
    build_create_key_action("partner.key", _KEYS_PATH),
    build_delete_key_action("partner.delete_key", _KEYS_PATH),
    Action(
        name="partner.rotate_webhook_secret",
        endpoint=f"POST {_ITEM_PATH}/rotate-webhook-secret",
        title="Rotate webhook secret",
        description="Creates a new secret. Choose how long the old secret is accepted while the "
        "partner switches over. A secret from an earlier rotation expires immediately.",
        fields=(fields.GRACE,),
        success_message="Webhook secret rotated",
        result_template="partners/webhook_secret.html",
    ),
)


add_list_page(
    pages, "/console/partners", _LIST_PATH, "partners/list.html", ("search", "status", "order")
)
add_totals_page(pages, "/console/partners", _LIST_PATH, ("search", "status"))
add_sublist_page(
    pages,
    "/console/partners/{id}/keys",
    name="partner",
    item=_ITEM_PATH,
    source=_KEYS_PATH,
    template="partners/keys.html",
)


@pages.get("/console/partners/{id}")
async def show_partner(request: PageRequest, id: str) -> Reply[bytes]:
    record = await request.get(_ITEM_PATH, id=id)
    parts = await gather_by_name(
        history=get_history(request, id, _PREVIEW_LIMIT),
        keys=request.get(_KEYS_PATH, {"limit": _PREVIEW_LIMIT}, id=id),
        audit=get_audit(request, id, _PREVIEW_LIMIT),
        users=get_users(request, id),
    )
    return request.render(
        "partners/partner.html",
        partner=record,
        owner_id=id,
        invite="partner_user.create",
        webhook_url=_build_webhook_url(request, id),
        **parts,
    )


def _build_webhook_url(request: PageRequest, id: str) -> str:
    """Return the URL to which the partner sends its top-ups."""
    path = build_path("/api/v1/webhooks/partners/{partner_id}", {"partner_id": id})
    return f"{request.context.services.settings.public_url}{path}"
