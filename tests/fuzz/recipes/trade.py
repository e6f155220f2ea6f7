"""Before merchants, partners, agents and what they moved can be asked for."""

import httpx2

from fuzz.callers import Caller
from fuzz.recipes.recipe import V1, Ready, recipe
from fuzz.values import ABSENT, Company
from journeys.caller import done, new_phone
from world import PIN


@recipe(*(f"POST {path}/refund" for path in (f"{V1}/pos", f"{V1}/payment", "/payment")))
async def payment(here: Company, caller: Caller) -> Ready:
    order = {"request_id": f"fuzz-pay-{here.stock.number()}", "card_serial": here.person.card}
    paid = await here.stock.ada.client.post(
        f"{V1}/pos/payment",
        json=order | {"amount": "20", "pin": PIN},
        auth=caller.auth or httpx2.Auth(),
    )
    body = paid.json()
    return Ready(body={"original_transaction_id": body.get("transaction_id", ABSENT)})


@recipe(
    *(f"POST {V1}/processors/{{id}}/{what}" for what in ("suspend", "terminals", "keys")),
    *(f"GET {V1}/processors/{{id}}{what}" for what in ("", "/terminals", "/keys")),
    f"GET {V1}/processors/{{id}}/transactions",
)
async def shop(here: Company, _: Caller) -> Ready:
    found = await here.stock.shop()
    return Ready({"id": found.merchant.id})


@recipe(f"POST {V1}/processors/{{id}}/activate")
async def suspended_shop(here: Company, caller: Caller) -> Ready:
    ready = await shop(here, caller)
    done(await here.stock.ada.post(f"processors/{ready.path['id']}/suspend", reason="fuzzing"))
    return ready


@recipe(f"POST {V1}/processors/{{id}}/transfer")
async def shop_with_takings(here: Company, _: Caller) -> Ready:
    found = await here.stock.shop()
    person = await here.stock.person()
    done(await found.merchant.server.pay("20", person.card, PIN))
    return Ready({"id": found.merchant.id}, {"amount": "5"})


@recipe(f"POST {V1}/processors/{{id}}/terminals/{{terminal_id}}/block")
async def terminal(here: Company, _: Caller) -> Ready:
    found = await here.stock.shop()
    return Ready({"id": found.merchant.id, "terminal_id": found.terminal})


@recipe(f"POST {V1}/processors/{{id}}/terminals/{{terminal_id}}/unblock")
async def blocked_terminal(here: Company, caller: Caller) -> Ready:
    ready = await terminal(here, caller)
    place = f"processors/{ready.path['id']}/terminals/{ready.path['terminal_id']}"
    done(await here.stock.ada.post(f"{place}/block"))
    return ready


@recipe(f"DELETE {V1}/processors/{{id}}/keys/{{api_key_id}}")
async def signing_key(here: Company, _: Caller) -> Ready:
    found = await here.stock.shop()
    return Ready({"id": found.merchant.id, "api_key_id": found.key})


@recipe(
    *(
        f"POST {V1}/admin/partners/{{id}}/{what}"
        for what in ("fund", "suspend", "keys", "rotate-webhook-secret")
    ),
    *(f"GET {V1}/admin/partners/{{id}}{what}" for what in ("", "/keys")),
)
async def partner(here: Company, _: Caller) -> Ready:
    return Ready({"id": (await here.stock.ada.partner()).id})


@recipe(f"DELETE {V1}/admin/partners/{{id}}/keys/{{api_key_id}}")
async def partner_key(here: Company, caller: Caller) -> Ready:
    ready = await partner(here, caller)
    created = done(await here.stock.ada.post(f"admin/partners/{ready.path['id']}/keys"))
    return Ready({**ready.path, "api_key_id": created["api_key_id"]})


@recipe(f"POST {V1}/admin/partners/{{id}}/activate")
async def suspended_partner(here: Company, caller: Caller) -> Ready:
    ready = await partner(here, caller)
    done(await here.stock.ada.post(f"admin/partners/{ready.path['id']}/suspend"))
    return ready


@recipe(f"POST {V1}/wallet/fund-from-partner")
async def top_up(here: Company, caller: Caller) -> Ready:
    if "partner_id" in caller.values:
        return Ready(body={"subscriber_id": here.person.id, "card_serial": ABSENT})
    bank = here.stock.bank.id
    return Ready(body={"subscriber_id": here.person.id, "card_serial": ABSENT, "partner_id": bank})


@recipe(f"POST {V1}/webhooks/partners/{{partner_id}}")
async def told_by_partner(here: Company, _: Caller) -> Ready:
    return Ready(body={"phone_number": here.person.phone, "card_serial": ABSENT})


@recipe(f"POST {V1}/agents")
async def new_agent(here: Company, _: Caller) -> Ready:
    top = (await here.stock.agents.one(here.rng)).top
    chosen = here.rng.choice(
        [{"agent_type": "super_agent"}, {"agent_type": "sub_agent", "parent_agent_id": top}]
    )
    return Ready(body={"phone_number": new_phone(), "pin": PIN, **chosen})


@recipe(
    *(f"POST {V1}/agents/{{id}}/{verb}" for verb in ("suspend", "terminate", "change-pin")),
    *(f"GET {V1}/agents/{{id}}{what}" for what in ("", "/balance")),
    f"POST {V1}/agents/{{id}}/fund",
)
async def spare_agent(here: Company, _: Caller) -> Ready:
    return Ready({"id": await here.stock.agent()})


@recipe(f"POST {V1}/agents/{{id}}/activate")
async def suspended_agent(here: Company, caller: Caller) -> Ready:
    ready = await spare_agent(here, caller)
    done(await here.stock.ada.post(f"agents/{ready.path['id']}/suspend", reason="fuzzing"))
    return ready


@recipe(*(f"POST {V1}/agents/{verb}" for verb in ("cashin", "cashout")))
async def at_the_counter(here: Company, _: Caller) -> Ready:
    top = (await here.stock.agents.one(here.rng)).top
    return Ready(body={"agent_id": top, "subscriber_id": here.person.id, "card_serial": ABSENT})


@recipe(f"POST {V1}/agents/transfer")
async def two_agents(here: Company, _: Caller) -> Ready:
    found = await here.stock.agents.one(here.rng)
    return Ready(body={"from_agent_id": found.top, "to_agent_id": found.sub})


@recipe(f"POST {V1}/agents/{{id}}/payout-commission")
async def earned(here: Company, _: Caller) -> Ready:
    found = await here.stock.pair_of_agents()
    order = {"agent_id": found.top, "amount": "200", "agent_pin": PIN}
    person = await here.stock.app.register()
    done(await here.stock.app.post("agents/cashin", subscriber_id=person.id, **order))
    return Ready({"id": found.top})


@recipe(f"POST {V1}/wallet/account-statement")
async def statement(here: Company, _: Caller) -> Ready:
    return Ready(body={"pin": ABSENT})


@recipe(f"GET {V1}/statements/{{token}}")
async def statement_link(here: Company, _: Caller) -> Ready:
    days = {"from_date": "2026-01-01", "to_date": "2026-01-31"}
    kind = here.rng.choice(["csv", "pdf"])
    drawn = await here.stock.app.post(
        "wallet/account-statement", subscriber_id=here.person.id, format=kind, **days
    )
    return Ready({"token": done(drawn)["statement_url"].rpartition("/")[2]})


@recipe(*(f"GET {V1}/transactions/{{id}}{part}" for part in ("", "/entries", "/chain")))
async def transaction(here: Company, _: Caller) -> Ready:
    found = done(await here.stock.ada.get("transactions", limit=20))["data"]
    return Ready({"id": here.rng.choice(found)["id"]})
