"""API key list and actions."""

from typing import Final

from tapgate.console.actions import GRACE_FIELD, Action, Field
from tapgate.console.page_request import PageRequest
from tapgate.console.site import Pages
from tapgate.edge.endpoint import Reply

pages = Pages()

_LIST_PATH = "/api/v1/admin/api-keys"
_ITEM_PATH = f"{_LIST_PATH}/{{id}}"

SCOPE_DESCRIPTIONS: Final = {
    "payments:read": "see transactions, agents, processors and statements",
    "payments:write": "move money: transfers, top-ups, cash-in and cash-out, quotes",
    "balance:read": "see balances of subscribers and agents",
    "subscribers:read": "see subscribers and their limits",
    "subscribers:write": "register, change, block and unblock people; their PINs, documents",
    "cards:read": "see cards",
    "cards:write": "link, block and unblock cards; cards of children",
}

_FIELDS: Final = (
    Field("name", "Name", hint="The program that uses it, like Online shop"),
    Field(
        "scopes",
        "Scopes",
        "many",
        tuple((scope, f"{what} ({scope})") for scope, what in SCOPE_DESCRIPTIONS.items()),
    ),
    Field(
        "allowed_ips",
        "Allowed IPs",
        "lines",
        hint="One network per line, like 203.0.113.0/24. Empty: any address",
        required=False,
    ),
    Field(
        "rate_limit",
        "Requests per second",
        "number",
        hint="Empty: the platform's limit",
        required=False,
    ),
    Field("burst", "Burst", "number", hint="Empty: the platform's limit", required=False),
    Field(
        "expires_at",
        "Expires (UTC)",
        "moment",
        hint="Empty: the key does not expire",
        required=False,
    ),
)
_RESETTABLE_FIELDS: Final = ("rate_limit", "burst", "expires_at")

ACTIONS = (
    Action(
        name="api_key.create",
        endpoint=f"POST {_LIST_PATH}",
        title="Create an API key",
        description="For a program that calls the API. Select only the scopes it needs.",
        button="Create key",
        fields=_FIELDS,
        success_message="The key is created.",
        result_template="api_keys/secret.html",
    ),
    Action(
        name="api_key.edit",
        endpoint=f"PUT {_ITEM_PATH}",
        title="Edit API key",
        description="Changes take effect immediately.",
        button="Edit",
        fields=tuple(field._replace(resets=field.name in _RESETTABLE_FIELDS) for field in _FIELDS),
        success_message="The key is changed.",
        prefill_path=_ITEM_PATH,
    ),
    Action(
        name="api_key.rotate",
        endpoint=f"POST {_ITEM_PATH}/rotate",
        title="Rotate API key",
        description="Creates a new key with the same settings. Choose how long the old key keeps "
        "working while you switch over. A key that was rotated out earlier ends now.",
        button="Rotate",
        fields=(GRACE_FIELD,),
        success_message="The key is rotated.",
        result_template="api_keys/secret.html",
    ),
    Action(
        name="api_key.revoke",
        endpoint=f"DELETE {_ITEM_PATH}",
        title="Revoke this key?",
        description=(
            "Programs that use it are refused immediately. This cannot be undone; a new key"
            " can be created."
        ),
        button="Revoke",
        success_message="The key is revoked.",
        is_dangerous=True,
    ),
)


@pages.get("/console/api-keys")
async def list_api_keys(visit: PageRequest) -> Reply[bytes]:
    found = await visit.get(_LIST_PATH, visit.query.pick("cursor"))
    return visit.render("api_keys/list.html", found=found, what=SCOPE_DESCRIPTIONS)
