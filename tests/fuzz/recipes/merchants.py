"""Prerequisites for operations on merchants, partners, agents, and their transactions."""

import httpx2

from drivers.actors import new_phone_number, new_request_id, require_success
from fuzz.callers import Caller
from fuzz.recipes.recipe import V1, Prerequisites, register_recipe
from fuzz.values import ABSENT, RequestSubjects
from harness import PIN


@register_recipe(*(f"POST {path}/refund" for path in (f"{V1}/pos", f"{V1}/payment", "/payment")))
async def prepare_payment(subjects: RequestSubjects, caller: Caller) -> Prerequisites:
    payload = {
        "request_id": f"fuzz-pay-{subjects.fixtures.next_number()}",
        "card_serial": subjects.subscriber.card,
    }
    response = await subjects.fixtures.admin.client.post(
        f"{V1}/pos/payment",
        json=payload | {"amount": "20", "pin": PIN},
        auth=caller.auth or httpx2.Auth(),
    )
    body = response.json()
    return Prerequisites(body={"original_transaction_id": body.get("transaction_id", ABSENT)})


@register_recipe(f"GET {V1}/pos/payments/{{request_id}}")
async def prepare_payment_outcome(subjects: RequestSubjects, caller: Caller) -> Prerequisites:
    request_id = f"fuzz-outcome-{subjects.fixtures.next_number()}"
    payload = {"request_id": request_id, "card_serial": subjects.subscriber.card}
    await subjects.fixtures.admin.client.post(
        f"{V1}/pos/payment",
        json=payload | {"amount": "1", "pin": PIN},
        auth=caller.auth or httpx2.Auth(),
    )
    return Prerequisites({"request_id": request_id})


@register_recipe(f"POST {V1}/processors/{{id}}/transfer")
async def prepare_funded_processor(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    processor = await subjects.fixtures.create_processor()
    customer = await subjects.fixtures.create_customer()
    require_success(await processor.merchant.server.pay("20", customer.card, PIN))
    return Prerequisites({"id": processor.merchant.id}, {"amount": "5"})


@register_recipe(f"POST {V1}/wallet/fund-from-partner")
async def prepare_top_up(subjects: RequestSubjects, caller: Caller) -> Prerequisites:
    if "partner_id" in caller.values:
        return Prerequisites(body={"subscriber_id": subjects.subscriber.id, "card_serial": ABSENT})
    bank = subjects.fixtures.bank.id
    return Prerequisites(
        body={"subscriber_id": subjects.subscriber.id, "card_serial": ABSENT, "partner_id": bank}
    )


@register_recipe(f"POST {V1}/webhooks/partners/{{partner_id}}")
async def prepare_partner_webhook(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"phone_number": subjects.subscriber.phone, "card_serial": ABSENT})


@register_recipe(f"POST {V1}/agents")
async def prepare_new_agent(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    super_agent = (await subjects.fixtures.agents.acquire(subjects.rng)).super_agent
    agent_type = subjects.rng.choice(
        [{"agent_type": "super_agent"}, {"agent_type": "sub_agent", "parent_agent_id": super_agent}]
    )
    return Prerequisites(body={"phone_number": new_phone_number(), "pin": PIN, **agent_type})


@register_recipe(f"PUT {V1}/agents/{{id}}")
async def prepare_agent_update(_subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"phone_number": new_phone_number()})


@register_recipe(f"POST {V1}/cash-out-requests")
async def prepare_cash_out(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    customer = await subjects.fixtures.create_customer()
    return Prerequisites(
        body={"agent_id": await subjects.fixtures.create_agent(), "subscriber_id": customer.id}
    )


@register_recipe(*(f"POST {V1}/books/transfers{suffix}" for suffix in ("", "/cancel")))
async def prepare_book_transfer(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    """Let the other book send or cancel a transfer; its cancellation needs a known transfer."""
    fixtures = subjects.fixtures
    body = {
        "request_id": new_request_id(),
        "recipient_id": (await fixtures.create_customer()).id,
        "amount": "1.00",
    }
    other_book = fixtures.callers.by_name["other book"]
    sent = {**body, "sender_name": "Fatu S."}
    await fixtures.admin.client.post(
        f"{V1}/books/transfers", json=sent, auth=other_book.auth or httpx2.Auth()
    )
    return Prerequisites(body=body, caller=other_book)


@register_recipe(f"GET {V1}/books/position")
async def prepare_other_book(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(caller=subjects.fixtures.callers.by_name["other book"])


@register_recipe(f"POST {V1}/agents/{{id}}/reset-pin/confirm")
async def prepare_agent_pin_reset(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    phone = new_phone_number()
    agent = await subjects.fixtures.create_agent(phone_number=phone)
    require_success(await subjects.fixtures.admin.post(f"agents/{agent}/reset-pin"))
    return Prerequisites({"id": agent}, {"otp": await subjects.fixtures.wait_for_code(phone)})


@register_recipe(*(f"POST {V1}/agents/{verb}" for verb in ("cashin", "cashout")))
async def prepare_cash_operation(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    super_agent = (await subjects.fixtures.agents.acquire(subjects.rng)).super_agent
    return Prerequisites(
        body={
            "agent_id": super_agent,
            "subscriber_id": subjects.subscriber.id,
            "card_serial": ABSENT,
        }
    )


@register_recipe(f"POST {V1}/agents/transfer")
async def prepare_float_transfer(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    pair = await subjects.fixtures.agents.acquire(subjects.rng)
    return Prerequisites(body={"from_agent_id": pair.super_agent, "to_agent_id": pair.sub_agent})


@register_recipe(f"POST {V1}/agents/{{id}}/payout-commission")
async def prepare_commission_payout(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    pair = await subjects.fixtures.create_agent_pair()
    body = {"agent_id": pair.super_agent, "amount": "200", "agent_pin": PIN}
    customer = await subjects.fixtures.app.register_customer()
    require_success(
        await subjects.fixtures.app.post("agents/cashin", subscriber_id=customer.id, **body)
    )
    return Prerequisites({"id": pair.super_agent})


@register_recipe(f"POST {V1}/wallet/account-statement")
async def prepare_statement(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    return Prerequisites(body={"pin": ABSENT})


@register_recipe(f"GET {V1}/statements/{{token}}")
async def prepare_statement_link(subjects: RequestSubjects, _: Caller) -> Prerequisites:
    days = {"from_date": "2026-01-01", "to_date": "2026-01-31"}
    kind = subjects.rng.choice(["csv", "pdf"])
    response = await subjects.fixtures.app.post(
        "wallet/account-statement", subscriber_id=subjects.subscriber.id, format=kind, **days
    )
    return Prerequisites({"token": require_success(response)["statement_url"].rpartition("/")[2]})
