"""Partners: banks and employers that fund subscribers from an account of their own here."""

import asyncio

from tapgate.console.acts import GRACE, Act, Field
from tapgate.console.site import Pages
from tapgate.console.visit import Visit, at
from tapgate.edge.endpoint import Reply

pages = Pages()

_ALL = "/api/v1/admin/partners"
_ONE = "/api/v1/admin/partners/{id}"
_KEYS = f"{_ONE}/keys"
_FEW = 20

_REASON = Field("reason", "Reason", "long", hint="Kept in the audit trail", required=False)

ACTS = (
    Act(
        name="partner.create",
        endpoint=f"POST {_ALL}",
        title="Create a partner",
        explains="A bank, an employer or a transfer service. It pays into its account here and "
        "funds subscribers from it.",
        button="Create",
        fields=(
            Field("name", "Name", hint="As subscribers see it on their statements"),
            Field(
                "overdraft_limit",
                "Overdraft",
                "money",
                hint="How far it may fund subscribers before its own money has arrived",
                value="0",
            ),
        ),
        done="The partner is there",
        shows="partners/created.html",
    ),
    Act(
        name="partner.fund",
        endpoint=f"POST {_ONE}/fund",
        title="Put money on the partner's account",
        explains="Do this when the partner's money has reached you, in cash or at the bank. The "
        "platform's cash account pays, and the partner can hand it on at once.",
        button="Fund",
        fields=(Field("amount", "Amount", "money", hint="Like 50000"),),
        done="The money is on the partner's account.",
        moves_money=True,
    ),
    Act(
        name="partner.suspend",
        endpoint=f"POST {_ONE}/suspend",
        title="Suspend this partner?",
        explains="Its key and its webhook are refused at once, so nobody is funded by it. Its "
        "money stays where it is. It can be undone.",
        button="Suspend",
        fields=(_REASON,),
        done="The partner is suspended.",
        dangerous=True,
    ),
    Act(
        name="partner.activate",
        endpoint=f"POST {_ONE}/activate",
        title="Activate this partner?",
        explains="Its key and its webhook work again.",
        button="Activate",
        fields=(_REASON,),
        done="The partner is active.",
    ),
    Act(
        name="partner.key",
        endpoint=f"POST {_KEYS}",
        title="Create a signing key",
        explains="Existing keys keep working until you delete them: create a key, switch over, "
        "then delete the old one.",
        button="Create key",
        done="The key is created.",
        shows="processors/key_created.html",
    ),
    Act(
        name="partner.delete_key",
        endpoint=f"DELETE {_KEYS}/{{api_key_id}}",
        title="Delete this key?",
        explains="Requests signed with it are refused immediately, also if it is the last key. "
        "This cannot be undone, but a new key can be created.",
        button="Delete",
        done="The key is deleted.",
        dangerous=True,
    ),
    Act(
        name="partner.rotate_webhook_secret",
        endpoint=f"POST {_ONE}/rotate-webhook-secret",
        title="Rotate webhook secret",
        explains="Creates a new secret. Choose how long the old secret is accepted while the "
        "partner switches over. A secret that was rotated out earlier ends now.",
        button="Rotate webhook secret",
        fields=(GRACE,),
        done="The webhook secret is rotated.",
        shows="partners/webhook_secret.html",
    ),
)


@pages.get("/console/partners")
async def partners(visit: Visit) -> Reply[bytes]:
    asked = visit.query.pick("search", "status", "cursor")
    return visit.page("partners/list.html", found=await visit.get(_ALL, asked))


@pages.get("/console/partners/{id}")
async def partner(visit: Visit, id: str) -> Reply[bytes]:
    record = await visit.get(at(_ONE, {"id": id}))
    history, keys, audit = await asyncio.gather(
        visit.get("/api/v1/transactions", {"user_id": id, "limit": _FEW}),
        visit.get(at(_KEYS, {"id": id}), {"limit": _FEW}),
        visit.get_if_allowed(
            "GET /api/v1/audit/logs", "/api/v1/audit/logs", {"resource_id": id, "limit": _FEW}
        ),
    )
    return visit.page(
        "partners/partner.html",
        partner=record,
        history=history,
        keys=keys,
        audit=audit,
        webhook=_webhook(visit, id),
    )


@pages.get("/console/partners/{id}/keys")
async def all_keys(visit: Visit, id: str) -> Reply[bytes]:
    """The keys of a partner that has more than its own page shows."""
    record, found = await asyncio.gather(
        visit.get(at(_ONE, {"id": id})),
        visit.get(at(_KEYS, {"id": id}), visit.query.pick("cursor")),
    )
    return visit.page("partners/keys.html", partner=record, found=found)


def _webhook(visit: Visit, id: str) -> str:
    """Where the partner sends its top-ups."""
    path = at("/api/v1/webhooks/partners/{partner_id}", {"partner_id": id})
    return f"{visit.call.services.settings.public_url}{path}"
