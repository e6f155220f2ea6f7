"""How records of each kind are created, and the steps that operations on new records need first."""

from typing import Any

import httpx2

from builders.bank_statements import build_camt, build_camt_entry
from drivers.actors import Customer, Record, new_phone_number, new_request_id, require_success
from fuzz.recipes.recipe import V1, register_earlier_step, register_kind
from fuzz.values import RequestSubjects, Values
from harness import PIN
from tapgate.http.api.access import ROLES_BY_LETTER

PASSWORD = "a long enough password"
CLOSED_PORT_URL = "http://127.0.0.1:9/"
_REASON = {"reason": "fuzzing"}

for _operation, _step, _body in (
    ("agents/{id}/activate", "suspend", _REASON),
    ("admin/partners/{id}/activate", "suspend", {}),
    ("processors/{id}/activate", "suspend", _REASON),
    ("processors/{id}/terminals/{terminal_id}/unblock", "block", {}),
    ("admin/users/{id}/enable", "disable", {}),
    ("compliance/alerts/{id}/unassign", "assign", {}),
    ("support/requests/{id}/unassign", "assign", {}),
    ("bank-statements/lines/{id}/unmatch", "ignore", _REASON),
    ("batches/{id}/run", "validate", {}),
):
    register_earlier_step(f"POST {V1}/{_operation}", _step, **_body)
register_earlier_step(
    f"GET {V1}/bank-accounts/{{id}}/csv-mapping", "csv-mapping", "PUT", date="Day", amount="Sum"
)


async def create(subjects: RequestSubjects, path: str, **body: Any) -> Record:
    """Create a record as the first admin."""
    return require_success(await subjects.fixtures.admin.post(path, **body))


async def post_as_service(subjects: RequestSubjects, path: str, **body: Any) -> Record:
    auth = subjects.fixtures.callers.by_name["service"].auth
    assert auth is not None
    client = subjects.fixtures.admin.client
    return require_success(await client.post(f"{V1}/{path}", json=body, auth=auth))


async def upload(subjects: RequestSubjects, method: str, path: str, file: str) -> Record:
    admin = subjects.fixtures.admin
    return require_success(
        await admin.client.request(
            method,
            f"{V1}/{path}",
            content=file.encode(),
            headers={"Content-Type": "text/csv" if method == "PUT" else "application/xml"},
            auth=admin.auth,
        )
    )


def build_statement(subjects: RequestSubjects, amount: str = "25.00") -> str:
    """Return a statement of one line, with the account in the file."""
    reference = f"FUZZ-{subjects.fixtures.next_number()}"
    return build_camt(build_camt_entry(amount, "2026-01-15", reference))


def build_batch_lines(customer: Customer) -> str:
    return f"phone_number,amount,reference\n{customer.phone},1,EMP-{new_request_id()}\n"


async def send_transfer(subjects: RequestSubjects) -> str:
    """Send money between new customers; return the transaction ID."""
    fixtures = subjects.fixtures
    sender, friend = await fixtures.create_customer("50"), await fixtures.create_customer("1")
    return str(require_success(await sender.send_money("5", friend))["transaction_id"])


async def pay(subjects: RequestSubjects) -> str:
    """Pay a new merchant; return the transaction ID."""
    merchant = (await subjects.fixtures.create_processor()).merchant
    paid = await merchant.server.pay("1", subjects.subscriber.card, PIN)
    return str(require_success(paid)["transaction_id"])


@register_kind("agents")
async def create_agent(subjects: RequestSubjects, _: Values) -> str:
    return await subjects.fixtures.create_agent()


@register_kind("processors")
async def create_processor(subjects: RequestSubjects, _: Values) -> str:
    return (await subjects.fixtures.create_processor()).merchant.id


@register_kind("processors/{id}/terminals")
async def create_terminal(subjects: RequestSubjects, values: Values) -> str:
    created = await create(subjects, f"processors/{values['id']}/terminals", name="Till")
    return str(created["terminal"]["id"])


@register_kind("processors/{id}/keys")
async def create_signing_key(subjects: RequestSubjects, values: Values) -> str:
    return str((await create(subjects, f"processors/{values['id']}/keys"))["api_key_id"])


@register_kind("admin/partners")
async def create_partner(subjects: RequestSubjects, _: Values) -> str:
    return (await subjects.fixtures.admin.create_partner()).id


@register_kind("admin/partners/{id}/keys")
async def create_partner_key(subjects: RequestSubjects, values: Values) -> str:
    return str((await create(subjects, f"admin/partners/{values['id']}/keys"))["api_key_id"])


@register_kind("admin/users")
async def create_admin(subjects: RequestSubjects, _: Values) -> str:
    created = await create(
        subjects,
        "admin/users",
        email=f"spare{subjects.fixtures.next_number()}@example.com",
        password=PASSWORD,
        name="Spare",
        role=ROLES_BY_LETTER["S"],
    )
    return str(created["id"])


@register_kind("admin/api-keys")
async def create_api_key(subjects: RequestSubjects, _: Values) -> str:
    return (await subjects.fixtures.admin.create_app("balance:read")).id


@register_kind("admin/webhook-endpoints")
async def create_webhook_endpoint(subjects: RequestSubjects, _: Values) -> str:
    body = {"url": CLOSED_PORT_URL, "events": ["processor.suspended"]}
    return str((await create(subjects, "admin/webhook-endpoints", **body))["id"])


@register_kind("admin/webhook-endpoints/{id}/deliveries")
async def create_delivery(subjects: RequestSubjects, values: Values) -> str:
    return str((await create(subjects, f"admin/webhook-endpoints/{values['id']}/test"))["id"])


@register_kind("approvals")
async def create_approval(subjects: RequestSubjects, _: Values) -> str:
    """Ask to replace the approval rules by themselves."""
    fixtures = subjects.fixtures
    response = await fixtures.admin.put("admin/approval-rules", data=fixtures.approval_rules)
    return str(require_success(response)["approval"]["id"])


@register_kind("compliance/alerts")
async def create_alert(subjects: RequestSubjects, _: Values) -> str:
    body = {"alert_type": f"FUZZ_{subjects.fixtures.next_number()}", "details": {"seen": True}}
    return str((await create(subjects, "compliance/alerts", **body))["alert_id"])


@register_kind("support/requests")
async def create_support_request(subjects: RequestSubjects, _: Values) -> str:
    body = {"phone_number": new_phone_number(), "text": "Hello"}
    return str((await post_as_service(subjects, "support/requests", **body))["id"])


@register_kind("support/saved-replies")
async def create_saved_reply(subjects: RequestSubjects, _: Values) -> str:
    """Create a saved reply instead of the last one, because their number is limited."""
    fixtures = subjects.fixtures
    if fixtures.saved_reply is not None:
        await fixtures.admin.delete(f"support/saved-replies/{fixtures.saved_reply}")
    body = {"label": f"Reply {fixtures.next_number()}", "texts": {"en": "Hello"}}
    fixtures.saved_reply = str((await create(subjects, "support/saved-replies", **body))["id"])
    return fixtures.saved_reply


@register_kind("disputes")
async def create_dispute(subjects: RequestSubjects, _: Values) -> str:
    body = {"reason": "other", "request_id": new_request_id()}
    created = await create(subjects, "disputes", transaction_id=await pay(subjects), **body)
    return str(created["id"])


@register_kind("recalls")
async def create_recall(subjects: RequestSubjects, _: Values) -> str:
    path = f"transactions/{await send_transfer(subjects)}/recall"
    return str((await create(subjects, path, request_id=new_request_id()))["id"])


@register_kind("float-requests")
async def create_float_request(subjects: RequestSubjects, _: Values) -> str:
    """Let a sub-agent ask a super-agent who has a float."""
    agent = (await subjects.fixtures.create_agent_pair()).sub_agent
    return str((await create(subjects, f"agents/{agent}/float-requests", amount="5"))["id"])


@register_kind("cash-out-requests")
async def create_cash_out_request(subjects: RequestSubjects, _: Values) -> str:
    """Let a new agent ask a customer, unless the customer has an open request."""
    created = await post_as_service(
        subjects,
        "cash-out-requests",
        agent_id=await subjects.fixtures.create_agent(),
        subscriber_id=(await subjects.fixtures.create_customer()).id,
        amount="1",
        agent_pin=PIN,
        request_id=new_request_id(),
    )
    return str(created["id"])


@register_kind("cards/keysets")
async def create_keyset(subjects: RequestSubjects, _: Values) -> str:
    name = f"Bureau {subjects.fixtures.next_number()}"
    return str((await create(subjects, "cards/keysets", name=name))["id"])


@register_kind("bank-accounts")
async def create_bank_account(subjects: RequestSubjects, _: Values) -> str:
    return await subjects.fixtures.create_bank_account(owner_type="platform")


@register_kind("payouts")
async def create_payout(subjects: RequestSubjects, _: Values) -> str:
    payee = subjects.fixtures.payee
    return str((await create(subjects, "payouts", owner_id=payee, amount="1"))["payout_id"])


@register_kind("payout-runs")
async def create_payout_run(subjects: RequestSubjects, values: Values) -> str:
    await create_payout(subjects, values)
    return str((await create(subjects, "payout-runs"))["id"])


@register_kind("bank-statements")
async def import_statement(subjects: RequestSubjects, _: Values) -> str:
    file = build_statement(subjects)
    return str((await upload(subjects, "POST", "bank-statements", file))["id"])


@register_kind("bank-statements/lines")
async def create_statement_line(subjects: RequestSubjects, values: Values) -> str:
    return await get_statement_line(subjects, await import_statement(subjects, values))


async def get_statement_line(subjects: RequestSubjects, statement: str) -> str:
    """Return the only line of a statement."""
    listed: httpx2.Response = await subjects.fixtures.admin.get(
        "bank-statements/lines", statement_id=statement
    )
    return str(require_success(listed)["data"][0]["id"])


@register_kind("batches")
async def create_batch(subjects: RequestSubjects, _: Values) -> str:
    """Create a batch of one line that pays a customer."""
    batch = str((await create(subjects, "batches", name="Salaries", source_id="platform"))["id"])
    await upload(subjects, "PUT", f"batches/{batch}/lines", build_batch_lines(subjects.subscriber))
    return batch
