"""API keys: what programs sign in with, and what each of them may do."""

from typing import Final

from tapgate.console.acts import Act, Field
from tapgate.console.site import Pages
from tapgate.console.visit import Visit
from tapgate.edge.endpoint import Reply

pages = Pages()

_ALL = "/api/v1/admin/api-keys"

SCOPES: Final = {
    "payments:read": "see transactions, agents, processors and statements",
    "payments:write": "move money: transfers, top-ups, cash-in and cash-out, quotes",
    "balance:read": "see balances of subscribers and agents",
    "subscribers:read": "see subscribers and their limits",
    "subscribers:write": "register, change, block and unblock people; their PINs, documents",
    "cards:read": "see cards",
    "cards:write": "link, block and unblock cards; cards of children",
}

ACTS = (
    Act(
        name="api_key.create",
        endpoint=f"POST {_ALL}",
        title="Create an API key",
        explains="For a program that calls the interface. Allow no more than it needs.",
        button="Create key",
        fields=(
            Field("name", "Name", hint="What uses it: Shop, reporting, …"),
            Field(
                "scopes",
                "It may",
                "many",
                tuple((scope, f"{what} ({scope})") for scope, what in SCOPES.items()),
            ),
            Field(
                "expires_at",
                "Expires (UTC)",
                "moment",
                hint="Without it the key works until somebody revokes it",
                required=False,
            ),
        ),
        done="The key is created.",
        shows="api_keys/secret.html",
    ),
    Act(
        name="api_key.revoke",
        endpoint=f"DELETE {_ALL}/{{id}}",
        title="Revoke this key?",
        explains="Whatever uses it is refused at once. This cannot be undone; a new key can be "
        "created.",
        button="Revoke",
        done="The key is revoked.",
        dangerous=True,
    ),
)


@pages.get("/console/api-keys")
async def api_keys(visit: Visit) -> Reply[bytes]:
    found = await visit.get(_ALL, visit.query.pick("cursor"))
    return visit.page("api_keys/list.html", found=found, what=SCOPES)
