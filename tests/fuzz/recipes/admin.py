"""Prerequisites for operations on alerts, support, rules, admins, keys, and webhook endpoints."""

from drivers.actors import require_success
from fuzz.callers import Caller
from fuzz.recipes.merchants import prepare_suspended_processor
from fuzz.recipes.recipe import V1, Prerequisites, register_recipe
from fuzz.values import ABSENT, RequestSubjects, Values
from harness import BearerAuth
from tapgate.http.api.access import ROLES_BY_LETTER

_PASSWORD = "a long enough password"
_CLOSED_PORT_URL = "http://127.0.0.1:9/"


@register_recipe(f"POST {V1}/compliance/alerts")
async def prepare_alert_report(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"subscriber_id": subjects.subscriber.id})


@register_recipe(
    f"GET {V1}/compliance/alerts/{{id}}",
    *(f"POST {V1}/compliance/alerts/{{id}}/{verb}" for verb in ("investigate", "resolve")),
)
async def prepare_alert(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(
        {"id": await subjects.fixtures.create_alert()}, {"transaction_decision": ABSENT}
    )


@register_recipe(f"POST {V1}/support/requests")
async def prepare_support_message(_subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"append_only": ABSENT})


@register_recipe(
    f"GET {V1}/support/requests/{{id}}",
    *(f"POST {V1}/support/requests/{{id}}/{verb}" for verb in ("reply", "assign", "close")),
)
async def prepare_support_request(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites({"id": await subjects.fixtures.create_support_request()})


@register_recipe(
    *(f"{method} {V1}/support/saved-replies/{{id}}" for method in ("GET", "PUT", "DELETE"))
)
async def prepare_saved_reply(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites({"id": await subjects.fixtures.create_saved_reply()})


@register_recipe(
    f"GET {V1}/disputes/{{id}}",
    *(f"POST {V1}/disputes/{{id}}/{verb}" for verb in ("respond", "decide", "withdraw")),
)
async def prepare_dispute(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites({"id": await subjects.fixtures.create_dispute(subjects.subscriber)})


@register_recipe(
    f"GET {V1}/cash-out-requests/{{id}}",
    *(f"POST {V1}/cash-out-requests/{{id}}/{verb}" for verb in ("confirm", "decline")),
)
async def prepare_cash_out_request(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites({"id": await subjects.fixtures.create_cash_out_request()})


@register_recipe(
    f"GET {V1}/float-requests/{{id}}",
    *(
        f"POST {V1}/float-requests/{{id}}/{verb}"
        for verb in ("fund", "transfer", "pass-on", "decline", "cancel")
    ),
)
async def prepare_float_request(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites({"id": await subjects.fixtures.create_float_request()})


@register_recipe(f"PUT {V1}/compliance/rules/{{id}}")
async def prepare_rule_update(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    rule = subjects.rng.choice(subjects.fixtures.rules)
    amounts = {"threshold": rule["threshold"], "window_seconds": rule["window_seconds"]}
    limits = {name: ABSENT if value is None else value for name, value in amounts.items()}
    other_fields = {name: rule[name] for name in ("transaction_types", "subject", "action")}
    return Prerequisites({"id": rule["id"]}, {**limits, **other_fields})


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
async def prepare_new_rule(_subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={**_NEW_RULE_BODY, "currency": ABSENT})


@register_recipe(f"PUT {V1}/admin/approval-rules")
async def prepare_approval_rules(_subjects: RequestSubjects, _: Caller) -> Prerequisites:
    """Guard an operation that no prerequisite needs: others would wait for approvals."""
    rule = {"operation": "branding", "roles": ["system_admin"], "approvers": 1}
    return Prerequisites(body={"data": [rule]})


@register_recipe(f"DELETE {V1}/compliance/rules/{{id}}")
async def prepare_rule_deletion(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(
        {
            "id": require_success(
                await subjects.fixtures.admin.post("compliance/rules", **_NEW_RULE_BODY)
            )["id"]
        }
    )


@register_recipe(f"PUT {V1}/account-rules/{{kyc_level}}")
async def prepare_kyc_level(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    level = subjects.rng.choice(list(subjects.fixtures.kyc_levels))
    return Prerequisites({"kyc_level": level}, dict(subjects.fixtures.kyc_levels[level]))


@register_recipe(f"PUT {V1}/fee-rules")
async def prepare_fee_rules(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"data": subjects.fixtures.fees})


@register_recipe(f"PUT {V1}/fee-rules/{{type}}")
async def prepare_fee_rules_of_type(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    kind = subjects.rng.choice(subjects.fixtures.fees)["type"]
    return Prerequisites(
        {"type": kind}, {"data": [s for s in subjects.fixtures.fees if s["type"] == kind]}
    )


@register_recipe(f"PUT {V1}/commission-rules")
async def prepare_commission_rules(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"data": subjects.fixtures.commissions})


@register_recipe(f"PUT {V1}/ledger/gl-codes")
async def prepare_gl_codes(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"data": [{"kind": "wallet", "gl_code": "2100"}]})


@register_recipe(f"POST {V1}/admin/users")
async def prepare_new_admin(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(
        body={"email": f"new{subjects.fixtures.next_number()}@example.com", "password": _PASSWORD}
    )


@register_recipe(f"POST {V1}/admin/login")
async def prepare_login(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    email = f"login{subjects.fixtures.next_number()}@example.com"
    await _create_admin(subjects, email)
    return Prerequisites(body={"email": email, "password": _PASSWORD})


@register_recipe(f"POST {V1}/admin/refresh")
async def prepare_refresh_token(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"refresh_token": (await _log_in(subjects))["refresh_token"]})


@register_recipe(f"POST {V1}/admin/logout")
async def prepare_session(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(
        caller=Caller("admin to log out", BearerAuth((await _log_in(subjects))["token"], ""))
    )


@register_recipe(f"POST {V1}/admin/users/{{id}}/disable")
async def prepare_admin(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(
        {"id": await _create_admin(subjects, f"spare{subjects.fixtures.next_number()}@example.com")}
    )


@register_recipe(f"POST {V1}/admin/users/{{id}}/enable")
async def prepare_disabled_admin(subjects: RequestSubjects, caller: Caller) -> Prerequisites:
    prerequisites = await prepare_admin(subjects, caller)
    require_success(
        await subjects.fixtures.admin.post(f"admin/users/{prerequisites.path['id']}/disable")
    )
    return prerequisites


@register_recipe(
    *(f"{method} {V1}/admin/api-keys/{{id}}" for method in ("GET", "PUT", "DELETE")),
    f"POST {V1}/admin/api-keys/{{id}}/rotate",
)
async def prepare_api_key(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites({"id": (await subjects.fixtures.admin.create_app("balance:read")).id})


@register_recipe(f"POST {V1}/admin/webhook-endpoints")
async def prepare_new_endpoint(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"url": _CLOSED_PORT_URL, "events": ["processor.suspended"]})


@register_recipe(
    f"GET {V1}/admin/webhook-endpoints/{{id}}",
    f"POST {V1}/admin/webhook-endpoints/{{id}}/test",
    f"DELETE {V1}/admin/webhook-endpoints/{{id}}",
    f"GET {V1}/admin/webhook-endpoints/{{id}}/deliveries",
)
async def prepare_endpoint(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    body = {"url": _CLOSED_PORT_URL, "events": ["processor.suspended"]}
    created = require_success(await subjects.fixtures.admin.post("admin/webhook-endpoints", **body))
    return Prerequisites({"id": created["id"]})


@register_recipe(f"PUT {V1}/admin/webhook-endpoints/{{id}}")
async def prepare_endpoint_update(subjects: RequestSubjects, caller: Caller) -> Prerequisites:
    prerequisites = await prepare_endpoint(subjects, caller)
    return Prerequisites(
        prerequisites.path, {"url": _CLOSED_PORT_URL, "events": ["*"], "status": "paused"}
    )


@register_recipe(f"POST {V1}/admin/webhook-endpoints/{{id}}/rotate-secret")
async def prepare_secret_rotation(subjects: RequestSubjects, caller: Caller) -> Prerequisites:
    prerequisites = await prepare_endpoint(subjects, caller)
    return Prerequisites(prerequisites.path, {"grace_seconds": 60})


@register_recipe(f"POST {V1}/admin/webhook-endpoints/{{id}}/redeliver")
async def prepare_period(subjects: RequestSubjects, caller: Caller) -> Prerequisites:
    prerequisites = await prepare_endpoint(subjects, caller)
    period = {"from": "2026-01-01", "to": "2026-01-02"}
    return Prerequisites(prerequisites.path, {**period, "status": "failed"})


@register_recipe(f"POST {V1}/admin/webhook-endpoints/{{id}}/deliveries/{{delivery_id}}/redeliver")
async def prepare_delivery(subjects: RequestSubjects, caller: Caller) -> Prerequisites:
    prerequisites = await prepare_endpoint(subjects, caller)
    await prepare_suspended_processor(subjects, caller)
    path = f"admin/webhook-endpoints/{prerequisites.path['id']}/deliveries"
    prerequisites.path["delivery_id"] = require_success(await subjects.fixtures.admin.get(path))[
        "data"
    ][0]["id"]
    return prerequisites


async def _create_admin(subjects: RequestSubjects, email: str) -> str:
    body = {"email": email, "password": _PASSWORD, "name": "Spare", "role": ROLES_BY_LETTER["S"]}
    return str(require_success(await subjects.fixtures.admin.post("admin/users", **body))["id"])


async def _log_in(subjects: RequestSubjects) -> Values:
    email = f"session{subjects.fixtures.next_number()}@example.com"
    await _create_admin(subjects, email)
    return require_success(
        await subjects.fixtures.admin.client.post(
            f"{V1}/admin/login", json={"email": email, "password": _PASSWORD}
        )
    )
