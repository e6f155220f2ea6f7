"""A ready-to-send request for every route that moves money, except partner webhooks."""

import functools
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import httpx2

from builders.books import configure_peer
from builders.cash_out_requests import create_cash_out_request
from builders.float_requests import create_float_request
from builders.participants import (
    AGENT_PIN,
    cash_in,
    change_status,
    create_agent,
    create_partner,
    create_sub_agent,
    suspend_partner,
)
from builders.payouts import create_merchant
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
    declined_fields: Mapping[str, Any] = MappingProxyType({"amount": "5000"})
    before_decline: Callable[[], Awaitable[Any]] | None = None
    changed_path: str | None = None


#: Prepares a request for a path, in which `{id}` is to be replaced.
PrepareCase = Callable[[Harness, str], Awaitable[MoneyCase]]
CASES: dict[str, Callable[[Harness], Awaitable[MoneyCase]]] = {}


def register_case(*paths: str) -> Callable[[PrepareCase], PrepareCase]:
    def add(prepare: PrepareCase) -> PrepareCase:
        for path in paths:
            CASES[f"POST {path}"] = functools.partial(prepare, path=path)
        return prepare

    return add


@register_case("/api/v1/wallet/transfer-p2p")
async def prepare_p2p(harness: Harness, path: str) -> MoneyCase:
    sender = await harness.create_subscriber(balance="1000")
    recipient = await harness.create_subscriber()
    body = {
        "sender_id": sender["id"],
        "recipient_card_serial": await harness.create_card(recipient["id"]),
        "amount": "100",
        "pin": PIN,
    }
    return MoneyCase(path, body, await harness.create_api_key("payments:write"), {"memo": "rent"})


@register_case("/api/v1/wallet/transfer")
async def prepare_transfer(harness: Harness, path: str) -> MoneyCase:
    sender = await harness.create_subscriber(balance="1000")
    recipient = await harness.create_subscriber()
    body = {
        "from_account_id": sender["account_id"],
        "to_account_id": recipient["account_id"],
        "amount": "100",
    }
    return MoneyCase(path, body, await harness.create_admin("F"), {"description": "rent"})


@register_case("/api/v1/wallet/fund-from-partner")
async def prepare_fund_from_partner(harness: Harness, path: str) -> MoneyCase:
    subscriber = await harness.create_subscriber()
    partner = (await create_partner(harness, balance="1000"))["partner"]
    body = {
        "subscriber_id": subscriber["id"],
        "partner_id": partner["id"],
        "partner_reference": "R-1",
        "amount": "100",
    }
    key = await harness.create_api_key("payments:write")
    return MoneyCase(path, body, key, {"partner_reference": "R-2"})


@register_case("/api/v1/books/transfers")
async def prepare_book_transfer(harness: Harness, path: str) -> MoneyCase:
    recipient = await harness.create_subscriber()
    body = {"recipient_id": recipient["id"], "sender_name": "Aminata K.", "amount": "100"}
    auth = await configure_peer(harness)
    return MoneyCase(path, body, auth, {"amount": "99"}, declined_fields={"amount": "2000000"})


@register_case("/api/v1/transactions/{id}/reverse")
async def prepare_reversal(harness: Harness, path: str) -> MoneyCase:
    sender = await harness.create_subscriber(balance="1000")
    receiver, third = await harness.create_subscriber(), await harness.create_subscriber()
    admin = await harness.create_admin("F")

    async def send(payer: dict[str, Any], payee: dict[str, Any]) -> httpx2.Response:
        body = {
            "from_account_id": payer["account_id"],
            "to_account_id": payee["account_id"],
            "amount": "500",
        }
        return await harness.post("/api/v1/wallet/transfer", json=body, auth=admin)

    sent = (await send(sender, receiver)).json()
    return MoneyCase(
        path.format(id=sent["transaction_id"]),
        {"reason": "Wrong account", "amount": "100"},
        admin,
        changed_fields={"amount": "200"},
        declined_fields={},
        before_decline=lambda: send(receiver, third),
    )


@register_case("/api/v1/agents/{id}/fund")
async def prepare_fund_agent(harness: Harness, path: str) -> MoneyCase:
    agent = await create_agent(harness, balance="1000")
    return MoneyCase(
        path.format_map(agent),
        {"amount": "100"},
        await harness.create_admin("F"),
        changed_fields={"description": "float"},
        declined_fields={},
        before_decline=lambda: change_status(harness, agent, "suspend"),
    )


@register_case("/api/v1/float-requests/{id}/fund", "/api/v1/float-requests/{id}/transfer")
async def prepare_float_request(harness: Harness, path: str) -> MoneyCase:
    is_transfer = path.endswith("transfer")
    parent = await create_agent(harness, balance="1000")
    agents = [await create_sub_agent(harness, parent) for _ in range(2)]
    first, second = [await create_float_request(harness, agent) for agent in agents]
    auth = harness.get_service_auth() if is_transfer else await harness.create_admin("F")
    return MoneyCase(
        path.format_map(first),
        {"pin": AGENT_PIN} if is_transfer else {},
        auth,
        changed_fields={},
        declined_fields={},
        before_decline=lambda: change_status(harness, agents[0], "suspend"),
        changed_path=path.format_map(second),
    )


@register_case("/api/v1/cash-out-requests/{id}/confirm")
async def prepare_cash_out_confirmation(harness: Harness, path: str) -> MoneyCase:
    agent = await create_agent(harness, balance="1000")
    customers = [await harness.create_subscriber(balance="1000") for _ in range(2)]
    first, second = [await create_cash_out_request(harness, agent, each) for each in customers]
    return MoneyCase(
        path.format_map(first),
        {"pin": PIN},
        harness.get_service_auth(),
        changed_fields={},
        declined_fields={},
        before_decline=lambda: change_status(harness, agent, "suspend"),
        changed_path=path.format_map(second),
    )


@register_case("/api/v1/agents/{id}/payout-commission")
async def prepare_payout_commission(harness: Harness, path: str) -> MoneyCase:
    agent = await create_agent(harness, balance="1000")
    response = await cash_in(harness, agent, await harness.create_subscriber(), "100")
    assert response.is_success, response.text
    return MoneyCase(
        path.format_map(agent),
        {},
        await harness.create_admin("F"),
        changed_fields={},
        declined_fields={},
        before_decline=lambda: change_status(harness, agent, "suspend"),
        changed_path=path.format_map(await create_agent(harness, balance="1000")),
    )


@register_case("/api/v1/agents/cashin", "/api/v1/agents/cashout")
async def prepare_cash_operation(harness: Harness, path: str) -> MoneyCase:
    is_cash_out = path.endswith("cashout")
    customer = await harness.create_subscriber(balance="1000" if is_cash_out else "0")
    body = {
        "agent_id": (await create_agent(harness, balance="1000"))["id"],
        "subscriber_id": customer["id"],
        "amount": "100",
        "agent_pin": AGENT_PIN,
    }
    if is_cash_out:
        body["pin"] = PIN
    return MoneyCase(path, body, await harness.create_api_key("payments:write"), {"amount": "101"})


@register_case("/api/v1/agents/transfer")
async def prepare_agent_transfer(harness: Harness, path: str) -> MoneyCase:
    parent = await create_agent(harness, balance="1000")
    body = {
        "from_agent_id": parent["id"],
        "to_agent_id": (await create_sub_agent(harness, parent))["id"],
        "amount": "100",
        "pin": AGENT_PIN,
    }
    key = await harness.create_api_key("payments:write")
    return MoneyCase(path, body, key, {"description": "week 7"})


@register_case("/api/v1/pos/payment", "/api/v1/payment", "/payment")
async def prepare_payment(harness: Harness, path: str) -> MoneyCase:
    subscriber = await harness.create_subscriber(balance="300")
    body = {"card_serial": await harness.create_card(subscriber["id"]), "amount": "100"}
    merchant = await harness.create_processor()
    return MoneyCase(path, body, merchant, {"transaction_ref": "17"}, {"amount": "400"})


async def _pay(harness: Harness) -> tuple[str, Any]:
    """Pay a new merchant; return the transaction ID and the merchant's credential."""
    case = await prepare_payment(harness, "/api/v1/pos/payment")
    response = await send_case(harness, case, "paid")
    return response.json()["transaction_id"], case.auth


@register_case("/api/v1/pos/refund", "/api/v1/payment/refund", "/payment/refund")
async def prepare_refund(harness: Harness, path: str) -> MoneyCase:
    """Prepare a refund; it is declined once the merchant's balance is empty."""
    transaction_id, merchant = await _pay(harness)
    body = {"original_transaction_id": transaction_id, "amount": "10", "reason": "returned"}
    other = await harness.create_subscriber()
    emptying_transfer = {
        "from_account_id": await harness.get_account_id(merchant),
        "to_account_id": other["account_id"],
        "amount": "99",
    }

    async def empty_balance() -> None:
        response = await harness.post(
            "/api/v1/wallet/transfer", json=emptying_transfer, auth=await harness.create_admin()
        )
        assert response.is_success, response.text

    return MoneyCase(path, body, merchant, {"reason": "another"}, {}, empty_balance)


@register_case("/api/v1/transactions/{id}/refund")
async def prepare_staff_refund(harness: Harness, path: str) -> MoneyCase:
    case = await prepare_refund(harness, path)
    path = path.format(id=case.body.pop("original_transaction_id"))
    return case._replace(path=path, auth=await harness.create_admin("F"))


@register_case("/api/v1/processors/{id}/transfer")
async def prepare_processor_transfer(harness: Harness, path: str) -> MoneyCase:
    _, merchant = await _pay(harness)
    path = path.format(id=await harness.get_processor_id(merchant))
    body = {"subscriber_id": (await harness.create_subscriber())["id"], "amount": "10"}
    return MoneyCase(path, body, await harness.create_admin("F"), {"description": "payout"})


@register_case("/api/v1/admin/partners/{id}/fund")
async def prepare_fund_partner(harness: Harness, path: str) -> MoneyCase:
    partner = await create_partner(harness)
    return MoneyCase(
        path.format_map(partner["partner"]),
        {"amount": "100"},
        await harness.create_admin("F"),
        changed_fields={"amount": "101"},
        declined_fields={},
        before_decline=lambda: suspend_partner(harness, partner),
    )


@register_case("/api/v1/payouts")
async def prepare_payout(harness: Harness, path: str) -> MoneyCase:
    return MoneyCase(
        path,
        {"owner_id": await create_merchant(harness), "amount": "100"},
        await harness.create_admin("F"),
        changed_fields={"amount": "101"},
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
    count: int = await harness.database.fetchval("SELECT count(*) FROM entries")
    return count


async def count_transactions(harness: Harness, request_id: str) -> int:
    count: int = await harness.database.fetchval(
        "SELECT count(*) FROM transactions WHERE request_id = $1", request_id
    )
    return count
