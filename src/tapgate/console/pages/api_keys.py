"""API keys: credentials of programs, with their scopes and limits."""

from typing import Final

from tapgate.console.acts import GRACE, Act, Field
from tapgate.console.site import Pages
from tapgate.console.visit import Visit
from tapgate.edge.endpoint import Reply

pages = Pages()

_ALL = "/api/v1/admin/api-keys"
_ONE = f"{_ALL}/{{id}}"

SCOPES: Final = {
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
        tuple((scope, f"{what} ({scope})") for scope, what in SCOPES.items()),
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
_RESETTABLE: Final = ("rate_limit", "burst", "expires_at")

ACTS = (
    Act(
        name="api_key.create",
        endpoint=f"POST {_ALL}",
        title="Create an API key",
        explains="For a program that calls the API. Select only the scopes it needs.",
        button="Create key",
        fields=_FIELDS,
        done="The key is created.",
        shows="api_keys/secret.html",
    ),
    Act(
        name="api_key.edit",
        endpoint=f"PUT {_ONE}",
        title="Edit API key",
        explains="Changes take effect immediately.",
        button="Edit",
        fields=tuple(field._replace(resets=field.name in _RESETTABLE) for field in _FIELDS),
        done="The key is changed.",
        reads=_ONE,
    ),
    Act(
        name="api_key.rotate",
        endpoint=f"POST {_ONE}/rotate",
        title="Rotate API key",
        explains="Creates a new key with the same settings. Choose how long the old key keeps "
        "working while you switch over. A key that was rotated out earlier ends now.",
        button="Rotate",
        fields=(GRACE,),
        done="The key is rotated.",
        shows="api_keys/secret.html",
    ),
    Act(
        name="api_key.revoke",
        endpoint=f"DELETE {_ONE}",
        title="Revoke this key?",
        explains="Programs that use it are refused immediately. This cannot be undone; a new key "
        "can be created.",
        button="Revoke",
        done="The key is revoked.",
        dangerous=True,
    ),
)


@pages.get("/console/api-keys")
async def api_keys(visit: Visit) -> Reply[bytes]:
    found = await visit.get(_ALL, visit.query.pick("cursor"))
    return visit.page("api_keys/list.html", found=found, what=SCOPES)
