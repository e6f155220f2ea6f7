"""Account balances, and quotes of transactions."""

from typing import Any

import httpx2
import pytest

from builders.payments import (
    create_agent,
    create_partner,
    create_processor,
    set_kyc_level,
    submit_and_get_id,
)
from harness import PIN, Harness
from tapgate.ledger import chart

URL = "/api/v1/balance"


async def get_balance(harness: Harness, user_id: str, caller: Any = None) -> dict[str, Any]:
    response = await harness.get(f"{URL}/{user_id}", auth=caller or harness.get_service_auth())
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def test_subscriber_balance_has_all_fields(harness: Harness) -> None:
    subscriber = await harness.create_subscriber(balance="1234.50")
    balance = await get_balance(
        harness, subscriber["id"], await harness.create_api_key("balance:read")
    )
    assert balance.pop("as_of").endswith("Z")
    assert balance == {
        "user_id": subscriber["id"],
        "account_id": subscriber["account_id"],
        "balance": "1234.50",
        "available": "1234.50",
        "held": "0.00",
        "currency": "SLE",
    }


async def test_held_funds_count_in_the_balance_but_are_not_available(harness: Harness) -> None:
    sender, recipient = await harness.create_subscriber(), await harness.create_subscriber()
    for subscriber in (sender, recipient):
        await set_kyc_level(harness, subscriber["id"], 3)
    await harness.deposit(sender["id"], "900000")
    await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, recipient, "600000")
    balance = await get_balance(harness, sender["id"])
    assert (balance["balance"], balance["available"]) == ("900000.00", "297000.00")
    assert balance["held"] == "603000.00"


async def test_balances_of_agents_processors_and_partners(harness: Harness) -> None:
    agent = await create_agent(harness)
    partner = await create_partner(harness)
    merchant = await create_processor(harness)
    subscriber = await harness.create_subscriber()
    await submit_and_get_id(harness, chart.AGENT_FUND, "cash", agent, "500")
    await submit_and_get_id(harness, chart.AGENT_CASHIN, agent, subscriber, "100")
    await submit_and_get_id(harness, chart.PARTNER_DEPOSIT, "cash", partner, "70")
    await submit_and_get_id(
        harness, chart.POS_PAYMENT, await harness.create_card(subscriber["id"]), merchant, "50"
    )
    assert (await get_balance(harness, agent))[
        "balance"
    ] == "400.00"  # the float, not the commission
    assert (await get_balance(harness, partner))["balance"] == "70.00"
    assert (await get_balance(harness, merchant))["balance"] == "49.50"


async def test_balance_of_an_unknown_id_is_not_found(harness: Harness) -> None:
    subscriber = await harness.create_subscriber()
    for user_id, code in {
        "sub_0000000000001": "SUBSCRIBER_NOT_FOUND",
        "sub_1": "SUBSCRIBER_NOT_FOUND",
        "agt_" + subscriber["id"][4:]: "AGENT_NOT_FOUND",
        "prc_": "PROCESSOR_NOT_FOUND",
        "ptn_zzzzzzzzzzzzz": "PARTNER_NOT_FOUND",
        subscriber["account_id"]: "ACCOUNT_NOT_FOUND",
        "nobody": "ACCOUNT_NOT_FOUND",
    }.items():
        response = await harness.get(f"{URL}/{user_id}", auth=harness.get_service_auth())
        assert (response.status_code, response.json()["code"]) == (404, code), user_id


QUOTE_URL = "/api/v1/wallet/quote"


async def _get_quote(client: httpx2.AsyncClient, harness: Harness, **body: Any) -> httpx2.Response:
    key = await harness.create_api_key("payments:write", "balance:read")
    return await client.post(QUOTE_URL, json=body, auth=key)


@pytest.mark.parametrize(
    ("kind", "amount", "fee", "total"),
    [
        ("transfer_p2p", "100", "1.50", "101.50"),
        ("transfer_p2p", "50000", "750.00", "50750.00"),
        ("transfer_p2p", "50000.01", "500.00", "50500.01"),
        ("transfer_p2p", "600000", "3000.00", "603000.00"),
        ("pos_payment", "100", "1.00", "100.00"),
        ("online_payment", "0.50", "0.01", "0.50"),
        ("transfer", "100", "0.00", "100.00"),
    ],
)
async def test_quote_returns_the_fee_and_total_of_each_type(
    harness: Harness, kind: str, amount: str, fee: str, total: str
) -> None:
    response = await _get_quote(harness.client, harness, type=kind, amount=amount)
    assert response.status_code == 200, response.text
    quote = response.json()
    assert (quote["fee_amount"], quote["total"]) == (fee, total)
    assert (quote["allowed"], quote["reasons"], quote["currency"]) == (True, [], "SLE")


async def test_quote_lists_every_reason_for_a_decline(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="1000")
    allowed = await _get_quote(
        harness.client, harness, type="transfer_p2p", amount="900", sender_id=sender["id"]
    )
    assert (allowed.json()["allowed"], allowed.json()["reasons"]) == (True, [])
    underfunded = await _get_quote(
        harness.client, harness, type="transfer_p2p", amount="990", sender_id=sender["id"]
    )
    assert underfunded.json()["reasons"] == ["INSUFFICIENT_FUNDS"]
    over_limit = await _get_quote(
        harness.client, harness, type="transfer_p2p", amount="200000", sender_id=sender["id"]
    )
    assert over_limit.json()["allowed"] is False
    assert over_limit.json()["reasons"] == [
        "TRANSACTION_LIMIT_EXCEEDED",
        "DAILY_LIMIT_EXCEEDED",
        "INSUFFICIENT_FUNDS",
    ]


async def test_quote_without_balance_read_scope_reveals_nothing_about_funds(
    harness: Harness,
) -> None:
    key = await harness.create_api_key("payments:write")
    funded = await harness.create_subscriber(balance="499999")
    unfunded = await harness.create_subscriber(balance="0.01")

    async def get_quotes(type: str, *amounts: str) -> list[Any]:
        """Return the quotes after checking that they are equal for both subscribers."""
        quotes_by_sender: list[list[Any]] = [[], []]
        for amount in amounts:
            for sender, quotes in zip((funded, unfunded), quotes_by_sender, strict=True):
                body = {"type": type, "amount": amount, "sender_id": sender["id"]}
                quotes.append((await harness.post(QUOTE_URL, json=body, auth=key)).json())
        assert quotes_by_sender[0] == quotes_by_sender[1]
        return [(quote["allowed"], quote["reasons"]) for quote in quotes_by_sender[0]]

    # INSUFFICIENT_FUNDS of a sender and MAX_BALANCE_EXCEEDED of a receiver are hidden.
    assert await get_quotes("transfer_p2p", "1", "40000") == [(True, [])] * 2
    assert await get_quotes("agent_cashin", "1", "40000", "600000") == [(True, [])] * 3
    over_limit = await get_quotes("transfer_p2p", "200000")
    assert over_limit == [(False, ["TRANSACTION_LIMIT_EXCEEDED", "DAILY_LIMIT_EXCEEDED"])]


@pytest.mark.parametrize("caller", ["key", "admin", "service"])
async def test_quote_reports_fund_reasons_to_callers_with_balance_access(
    harness: Harness, caller: str
) -> None:
    auth = {
        "key": await harness.create_api_key("payments:write", "balance:read"),
        "admin": await harness.create_admin("F"),
        "service": harness.get_service_auth(),
    }[caller]
    sender = await harness.create_subscriber(balance="1")
    for type, amount, reason in (
        ("transfer_p2p", "2", "INSUFFICIENT_FUNDS"),
        ("agent_cashin", "500000", "MAX_BALANCE_EXCEEDED"),
    ):
        body = {"type": type, "amount": amount, "sender_id": sender["id"]}
        quote = (await harness.post(QUOTE_URL, json=body, auth=auth)).json()
        assert (quote["allowed"], quote["reasons"]) == (False, [reason])


async def test_quote_matches_the_executed_payment(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="1000")
    recipient = await harness.create_subscriber()
    quote = (
        await _get_quote(
            harness.client, harness, type="transfer_p2p", amount="333.33", sender_id=sender["id"]
        )
    ).json()
    body = {
        "sender_id": sender["id"],
        "recipient_card_serial": await harness.create_card(recipient["id"]),
        "amount": "333.33",
        "pin": PIN,
    }
    paid = await harness.post(
        "/api/v1/wallet/transfer-p2p",
        json=body,
        auth=await harness.create_api_key("payments:write"),
    )
    assert paid.json()["fee_amount"] == f"{quote['fee_amount']} SLE"
    assert paid.json()["sender_new_balance"] == "661.67 SLE"
    assert quote["total"] == "338.33"


async def test_quote_for_an_unknown_or_restricted_sender_is_rejected(harness: Harness) -> None:
    restricted = await harness.create_restricted_subscriber()
    unknown = await _get_quote(
        harness.client, harness, type="transfer", amount="1", sender_id="sub_x"
    )
    assert (unknown.status_code, unknown.json()["code"]) == (404, "SUBSCRIBER_NOT_FOUND")
    rejected = await _get_quote(
        harness.client, harness, type="transfer", amount="1", sender_id=restricted["id"]
    )
    assert (rejected.status_code, rejected.json()["code"]) == (403, "OTP_REQUIRED")
    service_response = await harness.post(
        QUOTE_URL,
        json={"type": "transfer", "amount": "1", "sender_id": restricted["id"]},
        auth=harness.get_service_auth(),
    )
    assert service_response.json()["reasons"] == ["INSUFFICIENT_FUNDS"]
