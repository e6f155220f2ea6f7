"""A ready-to-send request for every route that moves money, except partner webhooks."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import httpx2

from harness import PIN, Harness


class MoneyCase(NamedTuple):
    """A ready-to-send request.

    `changed_fields` or `changed_path` turn it into a different request. The ledger declines it with
    `declined_fields`, or after `before_decline` has run.
    """

    path: str
    body: dict[str, Any]
    auth: Any
    changed_fields: dict[str, Any]
    declined_fields: dict[str, Any]
    before_decline: Callable[[], Awaitable[Any]] | None = None
    changed_path: str | None = None


PrepareCase = Callable[[Harness], Awaitable[MoneyCase]]
CASES: dict[str, PrepareCase] = {}


def register_case(*names: str) -> Callable[[PrepareCase], PrepareCase]:
    def add(prepare: PrepareCase) -> PrepareCase:
        CASES.update(dict.fromkeys((f"POST {name}" for name in names), prepare))
        return prepare

    return add


async def _post_as_admin(harness: Harness, path: str, **body: Any) -> dict[str, Any]:
    response = await harness.post(path, json=body, auth=await harness.create_admin())
    assert response.is_success, response.text
    created: dict[str, Any] = response.json()
    return created


async def _create_agent(harness: Harness, **fields: Any) -> str:
    body = {
        "agent_type": "super_agent",
        "name": "Sorie",
        "phone_number": harness.new_phone_number(),
        "pin": PIN,
        **fields,
    }
    agent_id: str = (await _post_as_admin(harness, "/api/v1/agents", **body))["agent_id"]
    if fields.get("agent_type") != "sub_agent":
        await _post_as_admin(harness, f"/api/v1/agents/{agent_id}/fund", amount="1000")
    return agent_id


@register_case("/api/v1/wallet/transfer-p2p")
async def prepare_p2p(harness: Harness) -> MoneyCase:
    sender = await harness.create_subscriber(balance="1000")
    recipient = await harness.create_subscriber()
    body = {
        "sender_id": sender["id"],
        "recipient_card_serial": await harness.create_card(recipient["id"]),
        "amount": "100",
        "pin": PIN,
    }
    return MoneyCase(
        "/api/v1/wallet/transfer-p2p",
        body,
        await harness.create_api_key("payments:write"),
        changed_fields={"memo": "rent"},
        declined_fields={"amount": "5000"},
    )


@register_case("/api/v1/wallet/transfer")
async def prepare_transfer(harness: Harness) -> MoneyCase:
    sender = await harness.create_subscriber(balance="1000")
    recipient = await harness.create_subscriber()
    body = {
        "from_account_id": sender["account_id"],
        "to_account_id": recipient["account_id"],
        "amount": "100",
    }
    return MoneyCase(
        "/api/v1/wallet/transfer",
        body,
        await harness.create_admin("F"),
        changed_fields={"description": "rent"},
        declined_fields={"amount": "5000"},
    )


@register_case("/api/v1/wallet/fund-from-partner")
async def prepare_fund_from_partner(harness: Harness) -> MoneyCase:
    subscriber = await harness.create_subscriber()
    partner = (await _post_as_admin(harness, "/api/v1/admin/partners", name="Remit"))["partner"][
        "id"
    ]
    await _post_as_admin(harness, f"/api/v1/admin/partners/{partner}/fund", amount="1000")
    body = {
        "subscriber_id": subscriber["id"],
        "partner_id": partner,
        "partner_reference": "R-1",
        "amount": "100",
    }
    return MoneyCase(
        "/api/v1/wallet/fund-from-partner",
        body,
        await harness.create_api_key("payments:write"),
        changed_fields={"partner_reference": "R-2"},
        declined_fields={"amount": "5000"},
    )


@register_case("/api/v1/agents/{id}/fund")
async def prepare_fund_agent(harness: Harness) -> MoneyCase:
    agent = await _create_agent(harness)
    path = f"/api/v1/agents/{agent}"
    return MoneyCase(
        f"{path}/fund",
        {"amount": "100"},
        await harness.create_admin("F"),
        changed_fields={"description": "float"},
        declined_fields={},
        before_decline=lambda: _post_as_admin(harness, f"{path}/suspend", reason="audit"),
    )


@register_case("/api/v1/agents/{id}/payout-commission")
async def prepare_payout_commission(harness: Harness) -> MoneyCase:
    agent, subscriber = await _create_agent(harness), await harness.create_subscriber()
    await _post_as_admin(
        harness,
        "/api/v1/agents/cashin",
        agent_id=agent,
        subscriber_id=subscriber["id"],
        amount="100",
        agent_pin=PIN,
    )
    path = f"/api/v1/agents/{agent}"
    return MoneyCase(
        f"{path}/payout-commission",
        {},
        await harness.create_admin("F"),
        changed_fields={},
        declined_fields={},
        before_decline=lambda: _post_as_admin(harness, f"{path}/suspend", reason="audit"),
        changed_path=f"/api/v1/agents/{await _create_agent(harness)}/payout-commission",
    )


@register_case("/api/v1/agents/cashin")
async def prepare_cash_in(harness: Harness) -> MoneyCase:
    body = {
        "agent_id": await _create_agent(harness),
        "subscriber_id": (await harness.create_subscriber())["id"],
        "amount": "100",
        "agent_pin": PIN,
    }
    return MoneyCase(
        "/api/v1/agents/cashin",
        body,
        await harness.create_api_key("payments:write"),
        changed_fields={"amount": "101"},
        declined_fields={"amount": "5000"},
    )


@register_case("/api/v1/agents/cashout")
async def prepare_cash_out(harness: Harness) -> MoneyCase:
    body = {
        "agent_id": await _create_agent(harness),
        "subscriber_id": (await harness.create_subscriber(balance="1000"))["id"],
        "amount": "100",
        "agent_pin": PIN,
        "pin": PIN,
    }
    return MoneyCase(
        "/api/v1/agents/cashout",
        body,
        await harness.create_api_key("payments:write"),
        changed_fields={"amount": "101"},
        declined_fields={"amount": "5000"},
    )


@register_case("/api/v1/agents/transfer")
async def prepare_agent_transfer(harness: Harness) -> MoneyCase:
    parent = await _create_agent(harness)
    body = {
        "from_agent_id": parent,
        "to_agent_id": await _create_agent(harness, agent_type="sub_agent", parent_agent_id=parent),
        "amount": "100",
        "pin": PIN,
    }
    return MoneyCase(
        "/api/v1/agents/transfer",
        body,
        await harness.create_api_key("payments:write"),
        changed_fields={"description": "week 7"},
        declined_fields={"amount": "5000"},
    )


async def _prepare_payment(harness: Harness, path: str) -> MoneyCase:
    subscriber = await harness.create_subscriber(balance="300")
    body = {"card_serial": await harness.create_card(subscriber["id"]), "amount": "100"}
    return MoneyCase(
        path,
        body,
        await harness.create_processor(),
        changed_fields={"transaction_ref": "17"},
        declined_fields={"amount": "400"},
    )


@register_case("/api/v1/pos/payment")
async def prepare_pos_payment(harness: Harness) -> MoneyCase:
    return await _prepare_payment(harness, "/api/v1/pos/payment")


@register_case("/api/v1/payment")
async def prepare_in_app_payment(harness: Harness) -> MoneyCase:
    return await _prepare_payment(harness, "/api/v1/payment")


@register_case("/payment")
async def prepare_in_app_payment_alias(harness: Harness) -> MoneyCase:
    return await _prepare_payment(harness, "/payment")


async def _prepare_refund(harness: Harness, path: str) -> MoneyCase:
    """Prepare a refund; it is declined once the merchant's balance is empty."""
    paid = await _prepare_payment(harness, "/api/v1/pos/payment")
    response = await harness.post(
        paid.path, json=paid.body | {"request_id": "paid"}, auth=paid.auth
    )
    body = {
        "original_transaction_id": response.json()["transaction_id"],
        "amount": "10",
        "reason": "returned",
    }
    account = await harness.get_account_id(paid.auth)
    other = await harness.create_subscriber()
    return MoneyCase(
        path,
        body,
        paid.auth,
        changed_fields={"reason": "another"},
        declined_fields={},
        before_decline=lambda: _post_as_admin(
            harness,
            "/api/v1/wallet/transfer",
            from_account_id=account,
            to_account_id=other["account_id"],
            amount="99",
        ),
    )


@register_case("/api/v1/pos/refund")
async def prepare_pos_refund(harness: Harness) -> MoneyCase:
    return await _prepare_refund(harness, "/api/v1/pos/refund")


@register_case("/api/v1/payment/refund")
async def prepare_in_app_refund(harness: Harness) -> MoneyCase:
    return await _prepare_refund(harness, "/api/v1/payment/refund")


@register_case("/payment/refund")
async def prepare_in_app_refund_alias(harness: Harness) -> MoneyCase:
    return await _prepare_refund(harness, "/payment/refund")


@register_case("/api/v1/processors/{id}/transfer")
async def prepare_processor_transfer(harness: Harness) -> MoneyCase:
    paid = await _prepare_payment(harness, "/api/v1/pos/payment")
    await harness.post(paid.path, json=paid.body | {"request_id": "paid"}, auth=paid.auth)
    subscriber = await harness.create_subscriber()
    return MoneyCase(
        f"/api/v1/processors/{await harness.get_processor_id(paid.auth)}/transfer",
        {"subscriber_id": subscriber["id"], "amount": "10"},
        await harness.create_admin("F"),
        changed_fields={"description": "payout"},
        declined_fields={"amount": "5000"},
    )


@register_case("/api/v1/admin/partners/{id}/fund")
async def prepare_fund_partner(harness: Harness) -> MoneyCase:
    partner = (await _post_as_admin(harness, "/api/v1/admin/partners", name="Remit"))["partner"][
        "id"
    ]
    path = f"/api/v1/admin/partners/{partner}"
    return MoneyCase(
        f"{path}/fund",
        {"amount": "100"},
        await harness.create_admin("F"),
        changed_fields={"amount": "101"},
        declined_fields={},
        before_decline=lambda: _post_as_admin(harness, f"{path}/suspend", reason="audit"),
    )


#: One route per handler: `/payment` is an alias of `/api/v1/payment`.
ROUTES = sorted(name for name in CASES if name.startswith("POST /api/v1/"))


async def send_case(
    harness: Harness,
    case: MoneyCase,
    request_id: str,
    *,
    client: httpx2.AsyncClient | None = None,
    **fields: Any,
) -> httpx2.Response:
    """Send the request with this idempotency key.

    `fields` override the body; `client` selects another process.
    """
    return await (client or harness.client).post(
        case.path, json=case.body | {"request_id": request_id} | fields, auth=case.auth
    )


async def count_entries(harness: Harness) -> int:
    count: int = await harness.services.database.fetchval("SELECT count(*) FROM entries")
    return count


async def count_transactions(harness: Harness, request_id: str) -> int:
    count: int = await harness.services.database.fetchval(
        "SELECT count(*) FROM transactions WHERE request_id = $1", request_id
    )
    return count
