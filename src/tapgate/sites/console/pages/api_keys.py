"""API key list and actions."""

from typing import Final

from tapgate.sites.console.actions import Action
from tapgate.sites.console.components import fields
from tapgate.sites.console.components.lists import add_list_page
from tapgate.sites.console.components.state_actions import build_state_action
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.site import Pages

pages = Pages()

_LIST_PATH = "/api/v1/admin/api-keys"
_ITEM_PATH = f"{_LIST_PATH}/{{id}}"

SCOPE_DESCRIPTIONS: Final = {
    "payments:read": "Read transactions, agents, merchants and statements",
    "payments:write": "Move money by transfer, top-up, cash-in and cash-out, and get quotes",
    "balance:read": "Read balances of customers and agents",
    "subscribers:read": "Read customers and their limits",
    "subscribers:write": "Create, update and block customers, and manage their PINs and documents",
    "cards:read": "Read cards",
    "cards:write": "Link, block and unblock cards, and issue child cards",
}

_FIELDS: Final = (
    Field("name", hint="The application that uses this key, for example Online store"),
    Field(
        "scopes",
        kind="many",
        choices=tuple((scope, f"{text} ({scope})") for scope, text in SCOPE_DESCRIPTIONS.items()),
    ),
    Field(
        "allowed_ips",
        "Allowed IPs",
        "lines",
        hint="One network per line, for example 203.0.113.0/24. Leave blank to allow any IP.",
        required=False,
    ),
    Field(
        "rate_limit",
        "Requests per second",
        "number",
        hint="Leave blank for the default",
        required=False,
    ),
    Field("burst", kind="number", hint="Leave blank for the default", required=False),
    Field(
        "expires_at",
        "Expires (UTC)",
        "moment",
        hint="Leave blank if the key should not expire",
        required=False,
    ),
)
_RESETTABLE_FIELDS: Final = ("rate_limit", "burst", "expires_at")

ACTIONS = (
    Action(
        name="api_key.create",
        endpoint=f"POST {_LIST_PATH}",
        title="Create an API key",
        description="For an application that calls the API. Select only the scopes it needs.",
        button="Create key",
        fields=(
            *_FIELDS,
            fields.OWNER._replace(
                hint="The key then sees only its data. Leave blank for the platform's own key."
            ),
        ),
        success_message="Key created",
        result_template="api_keys/secret.html",
    ),
    Action(
        name="api_key.edit",
        endpoint=f"PUT {_ITEM_PATH}",
        title="Edit API key",
        description="Changes take effect immediately.",
        button="Save",
        fields=tuple(field._replace(resets=field.name in _RESETTABLE_FIELDS) for field in _FIELDS),
        success_message="Key updated.",
        prefill_path=_ITEM_PATH,
    ),
    Action(
        name="api_key.rotate",
        endpoint=f"POST {_ITEM_PATH}/rotate",
        title="Rotate API key",
        description="Creates a new key with the same settings. Choose how long the old key keeps "
        "working while you switch over. A key from an earlier rotation expires immediately.",
        button="Rotate",
        fields=(fields.GRACE._replace(declared_label="Old key expires"),),
        success_message="Key rotated",
        result_template="api_keys/secret.html",
    ),
    build_state_action(
        "api_key",
        _ITEM_PATH,
        "key",
        "revoke",
        "Requests with this key are rejected immediately. This can't be undone, but "
        "you can create a new key.",
    ),
)


add_list_page(
    pages,
    "/console/api-keys",
    _LIST_PATH,
    "api_keys/list.html",
    scope_descriptions=SCOPE_DESCRIPTIONS,
)
