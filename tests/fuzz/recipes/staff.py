"""Before alerts, rules, admins, keys and webhook endpoints can be asked for."""

from fuzz.callers import Caller
from fuzz.recipes.recipe import V1, Ready, recipe
from fuzz.recipes.trade import suspended_shop
from fuzz.values import ABSENT, Company, Values
from journeys.caller import done
from tapgate.edge.endpoint import ROLES_BY_LETTER
from world import Bearer

_PASSWORD = "a long enough password"
_NOBODY_LISTENS = "http://127.0.0.1:9/"


@recipe(f"POST {V1}/compliance/alerts")
async def to_report(here: Company, _: Caller) -> Ready:
    return Ready(body={"subscriber_id": here.person.id})


@recipe(
    f"GET {V1}/compliance/alerts/{{id}}",
    *(f"POST {V1}/compliance/alerts/{{id}}/{verb}" for verb in ("investigate", "resolve")),
)
async def alert(here: Company, _: Caller) -> Ready:
    return Ready({"id": await here.stock.alert()}, {"transaction_decision": ABSENT})


@recipe(f"PUT {V1}/compliance/rules/{{id}}")
async def rule(here: Company, _: Caller) -> Ready:
    chosen = here.rng.choice(here.stock.rules)
    amounts = {"threshold": chosen["threshold"], "window_seconds": chosen["window_seconds"]}
    kept = {name: ABSENT if value is None else value for name, value in amounts.items()}
    also = {name: chosen[name] for name in ("transaction_types", "subject", "action")}
    return Ready({"id": chosen["id"]}, {**kept, **also})


_NEW_RULE = {
    "name": "Frequent cash-in",
    "type": "TRANSACTION_COUNT",
    "subject": "agent",
    "transaction_types": ["agent_cashin"],
    "threshold": 100_000,
    "window_seconds": 60,
    "action": "alert",
}


@recipe(f"POST {V1}/compliance/rules")
async def new_rule(_here: Company, _: Caller) -> Ready:
    return Ready(body={**_NEW_RULE, "currency": ABSENT})


@recipe(f"DELETE {V1}/compliance/rules/{{id}}")
async def rule_to_delete(here: Company, _: Caller) -> Ready:
    return Ready({"id": done(await here.stock.ada.post("compliance/rules", **_NEW_RULE))["id"]})


@recipe(f"PUT {V1}/account-rules/{{kyc_level}}")
async def level(here: Company, _: Caller) -> Ready:
    chosen = here.rng.choice(list(here.stock.levels))
    return Ready({"kyc_level": chosen}, dict(here.stock.levels[chosen]))


@recipe(f"PUT {V1}/fee-rules")
async def fees(here: Company, _: Caller) -> Ready:
    return Ready(body={"data": here.stock.fees})


@recipe(f"PUT {V1}/fee-rules/{{type}}")
async def fees_of_one_type(here: Company, _: Caller) -> Ready:
    kind = here.rng.choice(here.stock.fees)["type"]
    return Ready({"type": kind}, {"data": [s for s in here.stock.fees if s["type"] == kind]})


@recipe(f"PUT {V1}/commission-rules")
async def commissions(here: Company, _: Caller) -> Ready:
    return Ready(body={"data": here.stock.commissions})


@recipe(f"POST {V1}/admin/users")
async def new_admin(here: Company, _: Caller) -> Ready:
    return Ready(body={"email": f"new{here.stock.number()}@example.com", "password": _PASSWORD})


@recipe(f"POST {V1}/admin/login")
async def has_password(here: Company, _: Caller) -> Ready:
    email = f"login{here.stock.number()}@example.com"
    await _hired(here, email)
    return Ready(body={"email": email, "password": _PASSWORD})


@recipe(f"POST {V1}/admin/refresh")
async def has_refresh_token(here: Company, _: Caller) -> Ready:
    return Ready(body={"refresh_token": (await _logged_in(here))["refresh_token"]})


@recipe(f"POST {V1}/admin/logout")
async def has_session(here: Company, _: Caller) -> Ready:
    return Ready(caller=Caller("leaving admin", Bearer((await _logged_in(here))["token"], "")))


@recipe(f"POST {V1}/admin/users/{{id}}/disable")
async def spare_admin(here: Company, _: Caller) -> Ready:
    return Ready({"id": await _hired(here, f"spare{here.stock.number()}@example.com")})


@recipe(f"POST {V1}/admin/users/{{id}}/enable")
async def disabled_admin(here: Company, caller: Caller) -> Ready:
    ready = await spare_admin(here, caller)
    done(await here.stock.ada.post(f"admin/users/{ready.path['id']}/disable"))
    return ready


@recipe(
    *(f"{method} {V1}/admin/api-keys/{{id}}" for method in ("GET", "PUT", "DELETE")),
    f"POST {V1}/admin/api-keys/{{id}}/rotate",
)
async def spare_key(here: Company, _: Caller) -> Ready:
    return Ready({"id": (await here.stock.ada.app("balance:read")).id})


@recipe(f"POST {V1}/admin/webhook-endpoints")
async def new_endpoint(here: Company, _: Caller) -> Ready:
    return Ready(body={"url": _NOBODY_LISTENS, "events": ["processor.suspended"]})


@recipe(
    f"GET {V1}/admin/webhook-endpoints/{{id}}",
    f"POST {V1}/admin/webhook-endpoints/{{id}}/test",
    f"DELETE {V1}/admin/webhook-endpoints/{{id}}",
    f"GET {V1}/admin/webhook-endpoints/{{id}}/deliveries",
)
async def endpoint(here: Company, _: Caller) -> Ready:
    made = {"url": _NOBODY_LISTENS, "events": ["processor.suspended"]}
    created = done(await here.stock.ada.post("admin/webhook-endpoints", **made))
    return Ready({"id": created["id"]})


@recipe(f"PUT {V1}/admin/webhook-endpoints/{{id}}")
async def changed_endpoint(here: Company, caller: Caller) -> Ready:
    ready = await endpoint(here, caller)
    return Ready(ready.path, {"url": _NOBODY_LISTENS, "events": ["*"], "status": "paused"})


@recipe(f"POST {V1}/admin/webhook-endpoints/{{id}}/rotate-secret")
async def rotated_secret(here: Company, caller: Caller) -> Ready:
    ready = await endpoint(here, caller)
    return Ready(ready.path, {"grace_seconds": 60})


@recipe(f"POST {V1}/admin/webhook-endpoints/{{id}}/deliveries/{{delivery_id}}/redeliver")
async def delivery(here: Company, caller: Caller) -> Ready:
    ready = await endpoint(here, caller)
    await suspended_shop(here, caller)
    place = f"admin/webhook-endpoints/{ready.path['id']}/deliveries"
    ready.path["delivery_id"] = done(await here.stock.ada.get(place))["data"][0]["id"]
    return ready


@recipe("GET /docs/{file}")
async def file_of_the_page(here: Company, _: Caller) -> Ready:
    return Ready({"file": here.rng.choice(["swagger-ui.css", "start.js"])})


async def _hired(here: Company, email: str) -> str:
    person = {"email": email, "password": _PASSWORD, "name": "Spare", "role": ROLES_BY_LETTER["S"]}
    return str(done(await here.stock.ada.post("admin/users", **person))["id"])


async def _logged_in(here: Company) -> Values:
    email = f"session{here.stock.number()}@example.com"
    await _hired(here, email)
    return done(
        await here.stock.ada.client.post(
            f"{V1}/admin/login", json={"email": email, "password": _PASSWORD}
        )
    )
