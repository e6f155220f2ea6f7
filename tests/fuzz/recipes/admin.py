"""Prerequisites of operations on alerts, rules, admins, keys, and webhook endpoints."""

from fuzz.callers import Caller
from fuzz.recipes.merchants import prepare_suspended_processor
from fuzz.recipes.recipe import V1, Prerequisites, register_recipe
from fuzz.values import ABSENT, RequestSubjects, Values
from harness import BearerAuth
from journeys.api_caller import require_success
from tapgate.edge.endpoint import ROLES_BY_LETTER

_PASSWORD = "a long enough password"
_CLOSED_PORT_URL = "http://127.0.0.1:9/"


@register_recipe(f"POST {V1}/compliance/alerts")
async def prepare_alert_report(here: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"subscriber_id": here.subscriber.id})


@register_recipe(
    f"GET {V1}/compliance/alerts/{{id}}",
    *(f"POST {V1}/compliance/alerts/{{id}}/{verb}" for verb in ("investigate", "resolve")),
)
async def prepare_alert(here: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(
        {"id": await here.fixtures.create_alert()}, {"transaction_decision": ABSENT}
    )


@register_recipe(f"PUT {V1}/compliance/rules/{{id}}")
async def prepare_rule_update(here: RequestSubjects, _: Caller) -> Prerequisites:
    chosen = here.rng.choice(here.fixtures.rules)
    amounts = {"threshold": chosen["threshold"], "window_seconds": chosen["window_seconds"]}
    kept = {name: ABSENT if value is None else value for name, value in amounts.items()}
    also = {name: chosen[name] for name in ("transaction_types", "subject", "action")}
    return Prerequisites({"id": chosen["id"]}, {**kept, **also})


_NEW_RULE_BODY = {
    "name": "Frequent cash-in",
    "type": "TRANSACTION_COUNT",
    "subject": "agent",
    "transaction_types": ["agent_cashin"],
    "threshold": 100_000,
    "window_seconds": 60,
    "action": "alert",
}


@register_recipe(f"POST {V1}/compliance/rules")
async def prepare_new_rule(_here: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={**_NEW_RULE_BODY, "currency": ABSENT})


@register_recipe(f"DELETE {V1}/compliance/rules/{{id}}")
async def prepare_rule_deletion(here: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(
        {
            "id": require_success(
                await here.fixtures.admin.post("compliance/rules", **_NEW_RULE_BODY)
            )["id"]
        }
    )


@register_recipe(f"PUT {V1}/account-rules/{{kyc_level}}")
async def prepare_kyc_level(here: RequestSubjects, _: Caller) -> Prerequisites:
    chosen = here.rng.choice(list(here.fixtures.kyc_levels))
    return Prerequisites({"kyc_level": chosen}, dict(here.fixtures.kyc_levels[chosen]))


@register_recipe(f"PUT {V1}/fee-rules")
async def prepare_fee_rules(here: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"data": here.fixtures.fees})


@register_recipe(f"PUT {V1}/fee-rules/{{type}}")
async def prepare_fee_rules_of_type(here: RequestSubjects, _: Caller) -> Prerequisites:
    kind = here.rng.choice(here.fixtures.fees)["type"]
    return Prerequisites(
        {"type": kind}, {"data": [s for s in here.fixtures.fees if s["type"] == kind]}
    )


@register_recipe(f"PUT {V1}/commission-rules")
async def prepare_commission_rules(here: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"data": here.fixtures.commissions})


@register_recipe(f"POST {V1}/admin/users")
async def prepare_new_admin(here: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(
        body={"email": f"new{here.fixtures.next_number()}@example.com", "password": _PASSWORD}
    )


@register_recipe(f"POST {V1}/admin/login")
async def prepare_login(here: RequestSubjects, _: Caller) -> Prerequisites:
    email = f"login{here.fixtures.next_number()}@example.com"
    await _create_admin(here, email)
    return Prerequisites(body={"email": email, "password": _PASSWORD})


@register_recipe(f"POST {V1}/admin/refresh")
async def prepare_refresh_token(here: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"refresh_token": (await _log_in(here))["refresh_token"]})


@register_recipe(f"POST {V1}/admin/logout")
async def prepare_session(here: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(
        caller=Caller("leaving admin", BearerAuth((await _log_in(here))["token"], ""))
    )


@register_recipe(f"POST {V1}/admin/users/{{id}}/disable")
async def prepare_admin(here: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(
        {"id": await _create_admin(here, f"spare{here.fixtures.next_number()}@example.com")}
    )


@register_recipe(f"POST {V1}/admin/users/{{id}}/enable")
async def prepare_disabled_admin(here: RequestSubjects, caller: Caller) -> Prerequisites:
    ready = await prepare_admin(here, caller)
    require_success(await here.fixtures.admin.post(f"admin/users/{ready.path['id']}/disable"))
    return ready


@register_recipe(
    *(f"{method} {V1}/admin/api-keys/{{id}}" for method in ("GET", "PUT", "DELETE")),
    f"POST {V1}/admin/api-keys/{{id}}/rotate",
)
async def prepare_api_key(here: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites({"id": (await here.fixtures.admin.create_app("balance:read")).id})


@register_recipe(f"POST {V1}/admin/webhook-endpoints")
async def prepare_new_endpoint(here: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"url": _CLOSED_PORT_URL, "events": ["processor.suspended"]})


@register_recipe(
    f"GET {V1}/admin/webhook-endpoints/{{id}}",
    f"POST {V1}/admin/webhook-endpoints/{{id}}/test",
    f"DELETE {V1}/admin/webhook-endpoints/{{id}}",
    f"GET {V1}/admin/webhook-endpoints/{{id}}/deliveries",
)
async def prepare_endpoint(here: RequestSubjects, _: Caller) -> Prerequisites:
    made = {"url": _CLOSED_PORT_URL, "events": ["processor.suspended"]}
    created = require_success(await here.fixtures.admin.post("admin/webhook-endpoints", **made))
    return Prerequisites({"id": created["id"]})


@register_recipe(f"PUT {V1}/admin/webhook-endpoints/{{id}}")
async def prepare_endpoint_update(here: RequestSubjects, caller: Caller) -> Prerequisites:
    ready = await prepare_endpoint(here, caller)
    return Prerequisites(ready.path, {"url": _CLOSED_PORT_URL, "events": ["*"], "status": "paused"})


@register_recipe(f"POST {V1}/admin/webhook-endpoints/{{id}}/rotate-secret")
async def prepare_secret_rotation(here: RequestSubjects, caller: Caller) -> Prerequisites:
    ready = await prepare_endpoint(here, caller)
    return Prerequisites(ready.path, {"grace_seconds": 60})


@register_recipe(f"POST {V1}/admin/webhook-endpoints/{{id}}/deliveries/{{delivery_id}}/redeliver")
async def prepare_delivery(here: RequestSubjects, caller: Caller) -> Prerequisites:
    ready = await prepare_endpoint(here, caller)
    await prepare_suspended_processor(here, caller)
    place = f"admin/webhook-endpoints/{ready.path['id']}/deliveries"
    ready.path["delivery_id"] = require_success(await here.fixtures.admin.get(place))["data"][0][
        "id"
    ]
    return ready


@register_recipe("GET /docs/{file}")
async def prepare_docs_file(here: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites({"file": here.rng.choice(["swagger-ui.css", "start.js"])})


async def _create_admin(here: RequestSubjects, email: str) -> str:
    person = {"email": email, "password": _PASSWORD, "name": "Spare", "role": ROLES_BY_LETTER["S"]}
    return str(require_success(await here.fixtures.admin.post("admin/users", **person))["id"])


async def _log_in(here: RequestSubjects) -> Values:
    email = f"session{here.fixtures.next_number()}@example.com"
    await _create_admin(here, email)
    return require_success(
        await here.fixtures.admin.client.post(
            f"{V1}/admin/login", json={"email": email, "password": _PASSWORD}
        )
    )
