"""How the people of the plan come to be: made once, over the gateway's own interface."""

from typing import Final

from gateway.running import ADMIN
from journeys.caller import done
from journeys.lines import connected
from journeys.people import App
from journeys.staff import Admin
from torture import plan
from torture.events import COMPLETED, REFUNDED
from torture.town import Key, Town
from world import Bearer, RequestSignature

#: Minor units that everybody begins with.
FUNDS: Final = {
    **dict.fromkeys(plan.RICH, 200_000_00),
    **dict.fromkeys(plan.TIGHT, 60_00),
    **dict.fromkeys(plan.POOR, 5_00),
    plan.GUESSING: 100_00,
    **dict.fromkeys(plan.MERCHANTS, 0),
    **dict.fromkeys(plan.AGENTS, 5_000_000_00),
    plan.BANK: 10_000_000_00,
}
CUSTOMERS: Final = (*plan.RICH, *plan.TIGHT, *plan.POOR, plan.GUESSING)
#: What it takes to give them that: a deposit, the floats, and a top-up for each customer.
TRANSACTIONS: Final = 1 + len(plan.AGENTS) + len(CUSTOMERS)
_UNLIMITED: Final = "9000000000.00"
_SCOPES: Final = (
    "payments:read",
    "payments:write",
    "balance:read",
    "subscribers:write",
    "cards:write",
)


async def settle(port: int, events_url: str) -> Town:
    """Everybody moves in, gets what they begin with, and no limit is in their way. From then on,
    what happens to money is told to the URL."""
    town = Town()
    async with connected(f"http://127.0.0.1:{port}") as client:
        ada = await Admin.logged_in(client, ADMIN["email"], ADMIN["password"])
        await _lift_limits(ada)
        key = done(await ada.post("admin/api-keys", name="App", scopes=_SCOPES))
        town.api_key = key["key"]
        app = App(client, Bearer(key["key"], key["id"]), key["id"])
        await _open_shops(ada, app, town)
        await _register(ada, app, town)
        wanted = {"url": events_url, "events": [COMPLETED, REFUNDED]}
        done(await ada.post("admin/webhook-endpoints", **wanted))
    return town


async def _lift_limits(ada: Admin) -> None:
    for rule in done(await ada.get("compliance/rules"))["data"]:
        done(await ada.put(f"compliance/rules/{rule['id']}", status="inactive"))
    names = ("max_balance", "max_transaction", "daily_limit", "monthly_limit", "no_pin_limit")
    done(await ada.put("account-rules/1", **dict.fromkeys(names, _UNLIMITED)))


async def _open_shops(ada: Admin, app: App, town: Town) -> None:
    """Merchants with a till each, agents with a float."""
    for name in plan.MERCHANTS:
        merchant = await ada.merchant(name)
        till, _ = await ada.till(merchant, "Till")
        town.ids[name] = merchant.id
        town.servers[name], town.tills[name] = _key(merchant.server.auth), _key(till.auth)
    for name in plan.AGENTS:
        agent = await ada.agent(app, name)
        town.ids[name] = agent.id
        await ada.fund_agent(agent, _major(FUNDS[name]))


async def _register(ada: Admin, app: App, town: Town) -> None:
    """Customers with a card, who are given their money by the bank."""
    created = done(await ada.post("admin/partners", name="Sierra Bank"))
    bank = town.ids[plan.BANK] = created["partner"]["id"]
    town.webhook_secret = created["webhook_secret"].encode()
    given = sum(FUNDS[name] for name in CUSTOMERS)
    deposit = _major(FUNDS[plan.BANK] + given)
    done(await ada.post(f"admin/partners/{bank}/fund", amount=deposit))
    cards = {name: f"TORTURE-{place:03d}" for place, name in enumerate(CUSTOMERS)}
    await ada.upload_cards(*cards.values())
    for name in CUSTOMERS:
        customer = await app.register(f"{name.title()} Kamara")
        await app.link(cards[name], customer)
        town.ids[name], town.phones[name], town.cards[name] = (
            customer.id,
            customer.phone,
            cards[name],
        )
        order = {"partner_id": bank, "subscriber_id": customer.id, "partner_reference": name}
        done(await app.post("wallet/fund-from-partner", amount=_major(FUNDS[name]), **order))


def _key(auth: object) -> Key:
    assert isinstance(auth, RequestSignature)
    return Key(id=auth.id, secret=auth.secret.encode())


def _major(minor: int) -> str:
    return f"{minor // 100}.{minor % 100:02d}"
