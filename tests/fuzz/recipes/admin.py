"""Prerequisites for operations on alerts, approvals, support, rules, admins, keys and webhooks."""

import base64
from typing import Any

import pyotp

from builders.branding import build_png
from builders.passkeys import Passkey, build_passkey
from drivers.actors import Admin, require_success
from fuzz.callers import Caller
from fuzz.recipes.kinds import (
    CLOSED_PORT_URL,
    PASSWORD,
    create_admin,
    pay,
    send_transfer,
)
from fuzz.recipes.recipe import V1, Prerequisites, register_recipe
from fuzz.values import ABSENT, RequestSubjects, Values
from tapgate_client.schemas.reporting import OnboardingStepName


@register_recipe(f"GET {V1}/admin/branding/logo")
async def prepare_logo(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    logo = "data:image/png;base64," + base64.b64encode(build_png()).decode()
    require_success(await subjects.fixtures.admin.put("admin/branding", logo=logo))
    return Prerequisites()


@register_recipe(f"POST {V1}/compliance/alerts")
async def prepare_alert_report(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"subscriber_id": subjects.subscriber.id})


@register_recipe(f"POST {V1}/compliance/alerts/{{id}}/resolve")
async def prepare_resolution(_subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"transaction_decision": ABSENT})


@register_recipe(
    f"GET {V1}/approvals/{{id}}",
    *(f"POST {V1}/approvals/{{id}}/{verb}" for verb in ("approve", "reject")),
)
async def prepare_approver(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(caller=subjects.fixtures.callers.by_name["system_admin"])


@register_recipe(f"POST {V1}/approvals/{{id}}/cancel")
async def prepare_maker(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(caller=Caller("maker", subjects.fixtures.admin.auth))


@register_recipe(f"PUT {V1}/admin/approval-rules")
async def prepare_approval_rules(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"data": subjects.fixtures.approval_rules})


@register_recipe(f"POST {V1}/disputes")
async def prepare_disputed_payment(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"transaction_id": await pay(subjects)})


@register_recipe(f"POST {V1}/transactions/{{id}}/refund")
async def prepare_refundable_payment(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites({"id": await pay(subjects)}, {"amount": ABSENT})


@register_recipe(
    f"GET {V1}/transactions/{{id}}/reversal-preview",
    *(f"POST {V1}/transactions/{{id}}/{verb}" for verb in ("recall", "reverse", "send-receipt")),
)
async def prepare_transfer(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites({"id": await send_transfer(subjects)}, {"amount": ABSENT})


@register_recipe(f"POST {V1}/support/requests")
async def prepare_support_message(_subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"append_only": ABSENT})


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
        body={
            "email": f"new{subjects.fixtures.next_number()}@example.com",
            "password": PASSWORD,
            "role": "support_user",
            "owner_id": ABSENT,
        }
    )


@register_recipe(f"POST {V1}/admin/login")
async def prepare_login(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"email": (await _log_in(subjects)).email, "password": PASSWORD})


@register_recipe(f"POST {V1}/admin/refresh")
async def prepare_refresh_token(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    admin = await _log_in(subjects)
    body = {"email": admin.email, "password": PASSWORD}
    session = require_success(await admin.client.post(f"{V1}/admin/login", json=body))
    return Prerequisites(body={"refresh_token": session["refresh_token"]})


@register_recipe(f"POST {V1}/admin/invitations/accept")
async def prepare_reset_link(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    path = f"admin/users/{await create_admin(subjects, {})}/reset-password"
    url = require_success(await subjects.fixtures.admin.post(path))["url"]
    return Prerequisites(body={"token": url.partition("#")[2], "password": f"new {PASSWORD}"})


@register_recipe(f"POST {V1}/admin/logout")
async def prepare_own_session(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return _build_own(await _log_in(subjects))


@register_recipe(
    *(f"POST {V1}/admin/me/{path}" for path in ("password", "passkeys/options", "totp"))
)
async def prepare_password(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    admin = await _log_in(subjects)
    return _build_own(admin, current_password=PASSWORD, new_password=f"new {PASSWORD}")


@register_recipe(f"DELETE {V1}/admin/me/sessions")
async def prepare_other_session(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return _build_own(await _log_in(subjects))


@register_recipe(f"DELETE {V1}/admin/me/sessions/{{id}}")
async def prepare_listed_session(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    admin = await _log_in(subjects)
    (session,) = await admin.list_all("admin/me/sessions")
    return _build_own(admin, path={"id": session["id"]})


@register_recipe(f"POST {V1}/admin/me/totp/confirm")
async def prepare_totp_secret(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    admin = await _log_in(subjects)
    return _build_own(admin, code=await _start_totp(admin))


@register_recipe(
    f"DELETE {V1}/admin/me/totp",
    *(f"POST {V1}/admin/me/{path}" for path in ("recovery-codes", "step-up")),
)
async def prepare_recovery_code(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    admin = await _log_in(subjects)
    confirmed = await admin.post("admin/me/totp/confirm", code=await _start_totp(admin))
    first, second, *_others = require_success(confirmed)["recovery_codes"]
    require_success(await admin.post("admin/me/step-up", otp=first))
    return _build_own(admin, code=second, otp=second, passkey=ABSENT)


@register_recipe(f"POST {V1}/admin/me/passkeys")
async def prepare_new_passkey(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    admin = await _log_in(subjects)
    return _build_own(admin, credential=(await _start_passkey(admin))[1])


@register_recipe(f"DELETE {V1}/admin/me/passkeys/{{id}}", f"POST {V1}/admin/login/passkey")
async def prepare_passkey(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    admin = await _log_in(subjects)
    passkey, credential = await _start_passkey(admin)
    enrolled = await admin.post("admin/me/passkeys", name="Phone", credential=credential)
    options = require_success(await admin.post("admin/login/passkey/options"))
    path = {"id": require_success(enrolled)["id"]}
    return _build_own(admin, path, credential=passkey.get(options))


@register_recipe(f"POST {V1}/admin/onboarding/{{step}}/skip")
async def prepare_onboarding_step(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites({"step": subjects.rng.choice(list(OnboardingStepName))})


@register_recipe(f"POST {V1}/admin/webhook-endpoints")
async def prepare_new_endpoint(_subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"url": CLOSED_PORT_URL, "events": ["processor.suspended"]})


@register_recipe(f"PUT {V1}/admin/webhook-endpoints/{{id}}")
async def prepare_endpoint_update(_subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"url": CLOSED_PORT_URL, "events": ["*"], "status": "paused"})


@register_recipe(f"POST {V1}/admin/webhook-endpoints/{{id}}/rotate-secret")
async def prepare_secret_rotation(_subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"grace_seconds": 60})


@register_recipe(f"POST {V1}/admin/webhook-endpoints/{{id}}/redeliver")
async def prepare_period(_subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"from": "2026-01-01", "to": "2026-01-02", "status": "failed"})


async def _log_in(subjects: RequestSubjects) -> Admin:
    """Log in as a new admin, who may lose the session or the password."""
    return await subjects.fixtures.admin.create_admin("Spare", "S")


def _build_own(admin: Admin, path: Values | None = None, **body: Any) -> Prerequisites:
    """Return prerequisites for the admin's own account."""
    return Prerequisites(path or {}, body, caller=Caller("spare admin", admin.auth))


async def _start_totp(admin: Admin) -> str:
    """Start the enrollment of an authenticator app, and return its code."""
    started = await admin.post("admin/me/totp", current_password=PASSWORD)
    return str(pyotp.TOTP(require_success(started)["secret"]).now())


async def _start_passkey(admin: Admin) -> tuple[Passkey, Values]:
    """Return a passkey with the credential that enrolls it."""
    options = await admin.post("admin/me/passkeys/options", current_password=PASSWORD)
    passkey = build_passkey()
    return passkey, passkey.create(require_success(options))
