"""What must be there before an operation can succeed, where that is more than somebody with money:
a blocked card before it is unblocked, a payment before its refund."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import httpx2

from fuzz.callers import Caller
from fuzz.values import ABSENT, Company, Values
from journeys.caller import done, new_phone
from messenger.journeys.town import flow_key
from tapgate.edge.endpoint import ROLES
from tapgate.messenger.flows.provider_side import Exchange
from tapgate.subscribers.kyc_documents.model import ImageRule
from world import PIN, Bearer


@dataclass
class Ready:
    """Set in any case, also where nothing of the name was generated."""

    path: Values = field(default_factory=dict)
    body: Values = field(default_factory=dict)
    caller: Caller | None = None
    #: In the place of the whole body, and its media type.
    content: tuple[bytes, str] | None = None


Recipe = Callable[[Company, Caller], Awaitable[Ready]]
RECIPES: dict[str, Recipe] = {}
_V1 = "/api/v1"


def recipe(*names: str) -> Callable[[Recipe], Recipe]:
    def add(made: Recipe) -> Recipe:
        RECIPES.update(dict.fromkeys(names, made))
        return made

    return add


@recipe(f"POST {_V1}/subscribers")
async def new_subscriber(here: Company, _: Caller) -> Ready:
    return Ready(body={"phone_number": new_phone(), "pin": PIN})


@recipe(f"PUT {_V1}/subscribers/{{id}}")
async def changed_subscriber(here: Company, _: Caller) -> Ready:
    person = await here.stock.app.register()
    decided = ("kyc_level", "kyc_status", "restricted")
    return Ready({"id": person.id}, {"phone_number": new_phone(), **dict.fromkeys(decided, ABSENT)})


@recipe(*(f"POST {_V1}/subscribers/{{id}}/{verb}" for verb in ("block", "close", "change-pin")))
async def spare_person(here: Company, _: Caller) -> Ready:
    return Ready({"id": (await here.stock.app.register()).id})


@recipe(f"POST {_V1}/subscribers/{{id}}/unblock")
async def blocked_person(here: Company, _: Caller) -> Ready:
    person = await here.stock.app.register()
    done(await here.stock.ada.post(f"subscribers/{person.id}/block", reason="fuzzing"))
    return Ready({"id": person.id})


@recipe(f"POST {_V1}/subscribers/{{id}}/reset-pin/confirm")
async def forgotten_pin(here: Company, _: Caller) -> Ready:
    person = await here.stock.app.register()
    done(await here.stock.ada.post(f"subscribers/{person.id}/reset-pin"))
    return Ready({"id": person.id}, {"otp": await here.stock.code_sent_to(person)})


@recipe(f"POST {_V1}/subscribers/{{id}}/restricted-access")
async def restricted(here: Company, _: Caller) -> Ready:
    person = await here.stock.app.register()
    done(await here.stock.ada.put(f"subscribers/{person.id}", restricted=True))
    return Ready({"id": person.id})


@recipe(f"POST {_V1}/subscribers/{{id}}/restricted-access/verify")
async def asked_for_access(here: Company, caller: Caller) -> Ready:
    person = await here.stock.app.register()
    ready = Ready({"id": person.id})
    done(await here.stock.ada.put(f"subscribers/{person.id}", restricted=True))
    asked = await here.stock.ada.client.post(
        f"{_V1}/subscribers/{person.id}/restricted-access", auth=caller.auth or httpx2.Auth()
    )
    if not asked.is_success:
        return ready
    ready.body["otp"] = await here.stock.code_sent_to(person)
    return ready


@recipe(f"GET {_V1}/subscribers/{{id}}/kyc-documents/{{document_id}}")
async def document(here: Company, _: Caller) -> Ready:
    picture = {"document_type": "selfie", "image": ImageRule.example}
    added = await here.stock.app.post(f"subscribers/{here.person.id}/kyc-documents", **picture)
    return Ready({"id": here.person.id, "document_id": done(added)["document_id"]})


@recipe(f"POST {_V1}/cards/link")
async def to_link(here: Company, _: Caller) -> Ready:
    person = await here.stock.app.register()
    return Ready(body={"subscriber_id": person.id, "card_serial": await here.stock.card()})


@recipe(f"POST {_V1}/cards/child")
async def parent(here: Company, _: Caller) -> Ready:
    person = await here.stock.person()
    return Ready(body={"parent_subscriber_id": person.id, "card_serial": await here.stock.card()})


@recipe(f"POST {_V1}/cards/{{serial}}/block")
async def linked_card(here: Company, _: Caller) -> Ready:
    person, serial = await here.stock.app.register(), await here.stock.card()
    await here.stock.app.link(serial, person)
    return Ready({"serial": serial})


@recipe(f"POST {_V1}/cards/{{serial}}/unblock")
async def blocked_card(here: Company, caller: Caller) -> Ready:
    ready = await linked_card(here, caller)
    done(await here.stock.ada.post(f"cards/{ready.path['serial']}/block", reason="lost"))
    return ready


@recipe(f"POST {_V1}/cards/upload-csv")
async def card_file(here: Company, _: Caller) -> Ready:
    number = here.stock.number()
    rows = f"Serial No.,MAC Address\r\nUP-{number},\r\nUP-{number}-2,nonsense\r\n"
    body = (
        '--edge\r\nContent-Disposition: form-data; name="file"; filename="cards.csv"\r\n'
        f"Content-Type: text/csv\r\n\r\n{rows}\r\n--edge--\r\n"
    )
    return Ready(content=(body.encode(), "multipart/form-data; boundary=edge"))


@recipe(*(f"POST {path}/refund" for path in (f"{_V1}/pos", f"{_V1}/payment", "/payment")))
async def payment(here: Company, caller: Caller) -> Ready:
    order = {"request_id": f"fuzz-pay-{here.stock.number()}", "card_serial": here.person.card}
    paid = await here.stock.ada.client.post(
        f"{_V1}/pos/payment",
        json=order | {"amount": "20", "pin": PIN},
        auth=caller.auth or httpx2.Auth(),
    )
    body = paid.json()
    return Ready(body={"original_transaction_id": body.get("transaction_id", ABSENT)})


@recipe(
    *(f"POST {_V1}/processors/{{id}}/{what}" for what in ("suspend", "terminals", "keys")),
    *(f"GET {_V1}/processors/{{id}}{what}" for what in ("", "/terminals", "/keys")),
    f"GET {_V1}/processors/{{id}}/transactions",
)
async def shop(here: Company, _: Caller) -> Ready:
    found = await here.stock.shop()
    return Ready({"id": found.merchant.id})


@recipe(f"POST {_V1}/processors/{{id}}/activate")
async def suspended_shop(here: Company, caller: Caller) -> Ready:
    ready = await shop(here, caller)
    done(await here.stock.ada.post(f"processors/{ready.path['id']}/suspend", reason="fuzzing"))
    return ready


@recipe(f"POST {_V1}/processors/{{id}}/transfer")
async def shop_with_takings(here: Company, _: Caller) -> Ready:
    found = await here.stock.shop()
    person = await here.stock.person()
    done(await found.merchant.server.pay("20", person.card, PIN))
    return Ready({"id": found.merchant.id}, {"amount": "5"})


@recipe(f"POST {_V1}/processors/{{id}}/terminals/{{terminal_id}}/block")
async def terminal(here: Company, _: Caller) -> Ready:
    found = await here.stock.shop()
    return Ready({"id": found.merchant.id, "terminal_id": found.terminal})


@recipe(f"POST {_V1}/processors/{{id}}/terminals/{{terminal_id}}/unblock")
async def blocked_terminal(here: Company, caller: Caller) -> Ready:
    ready = await terminal(here, caller)
    place = f"processors/{ready.path['id']}/terminals/{ready.path['terminal_id']}"
    done(await here.stock.ada.post(f"{place}/block"))
    return ready


@recipe(f"DELETE {_V1}/processors/{{id}}/keys/{{api_key_id}}")
async def signing_key(here: Company, _: Caller) -> Ready:
    found = await here.stock.shop()
    return Ready({"id": found.merchant.id, "api_key_id": found.key})


@recipe(
    *(f"POST {_V1}/admin/partners/{{id}}/{verb}" for verb in ("fund", "suspend")),
    f"GET {_V1}/admin/partners/{{id}}",
)
async def partner(here: Company, _: Caller) -> Ready:
    return Ready({"id": (await here.stock.ada.partner()).id})


@recipe(f"POST {_V1}/admin/partners/{{id}}/activate")
async def suspended_partner(here: Company, caller: Caller) -> Ready:
    ready = await partner(here, caller)
    done(await here.stock.ada.post(f"admin/partners/{ready.path['id']}/suspend"))
    return ready


@recipe(f"POST {_V1}/wallet/fund-from-partner")
async def top_up(here: Company, caller: Caller) -> Ready:
    if "partner_id" in caller.values:
        return Ready(body={"subscriber_id": here.person.id, "card_serial": ABSENT})
    bank = here.stock.bank.id
    return Ready(body={"subscriber_id": here.person.id, "card_serial": ABSENT, "partner_id": bank})


@recipe(f"POST {_V1}/webhooks/partners/{{partner_id}}")
async def told_by_partner(here: Company, _: Caller) -> Ready:
    return Ready(body={"phone_number": here.person.phone, "card_serial": ABSENT})


@recipe(f"POST {_V1}/agents")
async def new_agent(here: Company, _: Caller) -> Ready:
    top = (await here.stock.agents.one(here.rng)).top
    chosen = here.rng.choice(
        [{"agent_type": "super_agent"}, {"agent_type": "sub_agent", "parent_agent_id": top}]
    )
    return Ready(body={"phone_number": new_phone(), "pin": PIN, **chosen})


@recipe(
    *(f"POST {_V1}/agents/{{id}}/{verb}" for verb in ("suspend", "terminate", "change-pin")),
    *(f"GET {_V1}/agents/{{id}}{what}" for what in ("", "/balance")),
    f"POST {_V1}/agents/{{id}}/fund",
)
async def spare_agent(here: Company, _: Caller) -> Ready:
    return Ready({"id": await here.stock.agent()})


@recipe(f"POST {_V1}/agents/{{id}}/activate")
async def suspended_agent(here: Company, caller: Caller) -> Ready:
    ready = await spare_agent(here, caller)
    done(await here.stock.ada.post(f"agents/{ready.path['id']}/suspend", reason="fuzzing"))
    return ready


@recipe(*(f"POST {_V1}/agents/{verb}" for verb in ("cashin", "cashout")))
async def at_the_counter(here: Company, _: Caller) -> Ready:
    top = (await here.stock.agents.one(here.rng)).top
    return Ready(body={"agent_id": top, "subscriber_id": here.person.id, "card_serial": ABSENT})


@recipe(f"POST {_V1}/agents/transfer")
async def two_agents(here: Company, _: Caller) -> Ready:
    found = await here.stock.agents.one(here.rng)
    return Ready(body={"from_agent_id": found.top, "to_agent_id": found.sub})


@recipe(f"POST {_V1}/agents/{{id}}/payout-commission")
async def earned(here: Company, _: Caller) -> Ready:
    found = await here.stock.pair_of_agents()
    order = {"agent_id": found.top, "amount": "200", "agent_pin": PIN}
    person = await here.stock.app.register()
    done(await here.stock.app.post("agents/cashin", subscriber_id=person.id, **order))
    return Ready({"id": found.top})


@recipe(f"POST {_V1}/wallet/account-statement")
async def statement(here: Company, _: Caller) -> Ready:
    return Ready(body={"pin": ABSENT})


@recipe(f"GET {_V1}/statements/{{token}}")
async def statement_link(here: Company, _: Caller) -> Ready:
    days = {"from_date": "2026-01-01", "to_date": "2026-01-31"}
    kind = here.rng.choice(["csv", "pdf"])
    drawn = await here.stock.app.post(
        "wallet/account-statement", subscriber_id=here.person.id, format=kind, **days
    )
    return Ready({"token": done(drawn)["statement_url"].rpartition("/")[2]})


@recipe(f"GET {_V1}/transactions/{{id}}")
async def transaction(here: Company, _: Caller) -> Ready:
    found = done(await here.stock.ada.get("transactions", limit=20))["data"]
    return Ready({"id": here.rng.choice(found)["id"]})


@recipe(f"POST {_V1}/compliance/alerts")
async def to_report(here: Company, _: Caller) -> Ready:
    return Ready(body={"subscriber_id": here.person.id})


@recipe(
    f"GET {_V1}/compliance/alerts/{{id}}",
    *(f"POST {_V1}/compliance/alerts/{{id}}/{verb}" for verb in ("investigate", "resolve")),
)
async def alert(here: Company, _: Caller) -> Ready:
    return Ready({"id": await here.stock.alert()}, {"transaction_decision": ABSENT})


@recipe(f"PUT {_V1}/compliance/rules/{{id}}")
async def rule(here: Company, _: Caller) -> Ready:
    chosen = here.rng.choice(here.stock.rules)
    amounts = {"threshold": chosen["threshold"], "window_seconds": chosen["window_seconds"]}
    kept = {name: ABSENT if value is None else value for name, value in amounts.items()}
    return Ready({"id": chosen["id"]}, {**kept, "transaction_types": chosen["transaction_types"]})


@recipe(f"PUT {_V1}/account-rules/{{kyc_level}}")
async def level(here: Company, _: Caller) -> Ready:
    chosen = here.rng.choice(list(here.stock.levels))
    return Ready({"kyc_level": chosen}, dict(here.stock.levels[chosen]))


@recipe(f"PUT {_V1}/fee-rules")
async def fees(here: Company, _: Caller) -> Ready:
    return Ready(body={"data": here.stock.fees})


@recipe(f"POST {_V1}/admin/users")
async def new_admin(here: Company, _: Caller) -> Ready:
    return Ready(body={"email": f"new{here.stock.number()}@example.com", "password": _PASSWORD})


@recipe(f"POST {_V1}/admin/login")
async def has_password(here: Company, _: Caller) -> Ready:
    email = f"login{here.stock.number()}@example.com"
    await _hired(here, email)
    return Ready(body={"email": email, "password": _PASSWORD})


@recipe(f"POST {_V1}/admin/refresh")
async def has_refresh_token(here: Company, _: Caller) -> Ready:
    return Ready(body={"refresh_token": (await _logged_in(here))["refresh_token"]})


@recipe(f"POST {_V1}/admin/logout")
async def has_session(here: Company, _: Caller) -> Ready:
    return Ready(caller=Caller("leaving admin", Bearer((await _logged_in(here))["token"], "")))


@recipe(f"POST {_V1}/admin/users/{{id}}/disable")
async def spare_admin(here: Company, _: Caller) -> Ready:
    return Ready({"id": await _hired(here, f"spare{here.stock.number()}@example.com")})


@recipe(f"POST {_V1}/admin/users/{{id}}/enable")
async def disabled_admin(here: Company, caller: Caller) -> Ready:
    ready = await spare_admin(here, caller)
    done(await here.stock.ada.post(f"admin/users/{ready.path['id']}/disable"))
    return ready


@recipe(f"DELETE {_V1}/admin/api-keys/{{id}}")
async def spare_key(here: Company, _: Caller) -> Ready:
    return Ready({"id": (await here.stock.ada.app("balance:read")).id})


@recipe(f"POST {_V1}/admin/webhook-endpoints")
async def new_endpoint(here: Company, _: Caller) -> Ready:
    return Ready(body={"url": _NOBODY_LISTENS, "events": ["processor.suspended"]})


@recipe(
    f"DELETE {_V1}/admin/webhook-endpoints/{{id}}",
    f"GET {_V1}/admin/webhook-endpoints/{{id}}/deliveries",
)
async def endpoint(here: Company, _: Caller) -> Ready:
    made = {"url": _NOBODY_LISTENS, "events": ["processor.suspended"]}
    created = done(await here.stock.ada.post("admin/webhook-endpoints", **made))
    return Ready({"id": created["id"]})


@recipe(f"POST {_V1}/admin/webhook-endpoints/{{id}}/deliveries/{{delivery_id}}/redeliver")
async def delivery(here: Company, caller: Caller) -> Ready:
    ready = await endpoint(here, caller)
    await suspended_shop(here, caller)
    place = f"admin/webhook-endpoints/{ready.path['id']}/deliveries"
    ready.path["delivery_id"] = done(await here.stock.ada.get(place))["data"][0]["id"]
    return ready


@recipe("GET /docs/{file}")
async def file_of_the_page(here: Company, _: Caller) -> Ready:
    return Ready({"file": here.rng.choice(["swagger-ui.css", "start.js"])})


@recipe(f"POST {_V1}/webhooks/messaging/flows")
async def ping(here: Company, _: Caller) -> Ready:
    sealed = Exchange(flow_key()[1]).encrypted({"version": "3.0", "action": "ping"})
    return Ready(content=(sealed, "application/json"))


@recipe(f"POST {_V1}/external/messaging")
async def picture_or_words(here: Company, _: Caller) -> Ready:
    words = here.rng.choice(["menu", "balance", "send 5 to 076 123456", "1", "history", "français"])
    chosen = here.rng.choice(
        [
            {"message": words, "hasMedia": False, "media": ABSENT},
            {"hasMedia": True, "media": {"data": ImageRule.example, "mimetype": "image/png"}},
        ]
    )
    return Ready(body={"from": here.person.phone, **chosen})


async def _hired(here: Company, email: str) -> str:
    person = {"email": email, "password": _PASSWORD, "name": "Spare", "role": ROLES["S"]}
    return str(done(await here.stock.ada.post("admin/users", **person))["id"])


async def _logged_in(here: Company) -> Values:
    email = f"session{here.stock.number()}@example.com"
    await _hired(here, email)
    return done(
        await here.stock.ada.client.post(
            f"{_V1}/admin/login", json={"email": email, "password": _PASSWORD}
        )
    )


_PASSWORD = "a long enough password"
_NOBODY_LISTENS = "http://127.0.0.1:9/"
