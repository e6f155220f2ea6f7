"""Quotes: the fee of a transaction, and whether the transaction would be accepted."""

from typing import Any

import httpx2
import pytest

from harness import PIN, Harness

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
    client: httpx2.AsyncClient, harness: Harness, kind: str, amount: str, fee: str, total: str
) -> None:
    response = await _get_quote(client, harness, type=kind, amount=amount)
    assert response.status_code == 200, response.text
    quote = response.json()
    assert (quote["fee_amount"], quote["total"]) == (fee, total)
    assert (quote["allowed"], quote["reasons"], quote["currency"]) == (True, [], "SLE")


async def test_quote_lists_every_reason_for_a_decline(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    sender = await harness.create_subscriber(balance="1000")
    allowed = await _get_quote(
        client, harness, type="transfer_p2p", amount="900", sender_id=sender["id"]
    )
    assert (allowed.json()["allowed"], allowed.json()["reasons"]) == (True, [])
    underfunded = await _get_quote(
        client, harness, type="transfer_p2p", amount="990", sender_id=sender["id"]
    )
    assert underfunded.json()["reasons"] == ["INSUFFICIENT_FUNDS"]
    over_limit = await _get_quote(
        client, harness, type="transfer_p2p", amount="200000", sender_id=sender["id"]
    )
    assert over_limit.json()["allowed"] is False
    assert over_limit.json()["reasons"] == [
        "TRANSACTION_LIMIT_EXCEEDED",
        "DAILY_LIMIT_EXCEEDED",
        "INSUFFICIENT_FUNDS",
    ]


async def test_quote_without_balance_read_scope_reveals_nothing_about_funds(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    key = await harness.create_api_key("payments:write")
    funded, unfunded = (
        await harness.create_subscriber(balance="499999"),
        await harness.create_subscriber(balance="0.01"),
    )

    async def get_quotes(type: str, *amounts: str) -> list[Any]:
        """Return the quotes after checking that they are equal for both subscribers."""
        quotes_by_sender: list[list[Any]] = [[], []]
        for amount in amounts:
            for sender, quotes in zip((funded, unfunded), quotes_by_sender, strict=True):
                body = {"type": type, "amount": amount, "sender_id": sender["id"]}
                quotes.append((await client.post(QUOTE_URL, json=body, auth=key)).json())
        assert quotes_by_sender[0] == quotes_by_sender[1]
        return [(quote["allowed"], quote["reasons"]) for quote in quotes_by_sender[0]]

    # INSUFFICIENT_FUNDS of a sender and MAX_BALANCE_EXCEEDED of a receiver are hidden.
    assert await get_quotes("transfer_p2p", "1", "40000") == [(True, [])] * 2
    assert await get_quotes("agent_cashin", "1", "40000", "600000") == [(True, [])] * 3
    over_limit = await get_quotes("transfer_p2p", "200000")
    assert over_limit == [(False, ["TRANSACTION_LIMIT_EXCEEDED", "DAILY_LIMIT_EXCEEDED"])]


@pytest.mark.parametrize("caller", ["key", "admin", "service"])
async def test_quote_reports_fund_reasons_to_callers_with_balance_access(
    client: httpx2.AsyncClient, harness: Harness, caller: str
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
        quote = (await client.post(QUOTE_URL, json=body, auth=auth)).json()
        assert (quote["allowed"], quote["reasons"]) == (False, [reason])


async def test_quote_matches_the_executed_payment(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    sender, recipient = (
        await harness.create_subscriber(balance="1000"),
        await harness.create_subscriber(),
    )
    quote = (
        await _get_quote(
            client, harness, type="transfer_p2p", amount="333.33", sender_id=sender["id"]
        )
    ).json()
    body = {
        "sender_id": sender["id"],
        "recipient_card_serial": await harness.create_card(recipient["id"]),
        "amount": "333.33",
        "pin": PIN,
    }
    paid = await client.post(
        "/api/v1/wallet/transfer-p2p",
        json=body,
        auth=await harness.create_api_key("payments:write"),
    )
    assert paid.json()["fee_amount"] == f"{quote['fee_amount']} SLE"
    assert paid.json()["sender_new_balance"] == "661.67 SLE"
    assert quote["total"] == "338.33"


async def test_quote_for_an_unknown_or_restricted_sender_is_rejected(
    client: httpx2.AsyncClient, harness: Harness
) -> None:
    restricted = await harness.create_restricted_subscriber()
    unknown = await _get_quote(client, harness, type="transfer", amount="1", sender_id="sub_x")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "SUBSCRIBER_NOT_FOUND")
    rejected = await _get_quote(
        client, harness, type="transfer", amount="1", sender_id=restricted["id"]
    )
    assert (rejected.status_code, rejected.json()["code"]) == (403, "OTP_REQUIRED")
    service_response = await client.post(
        QUOTE_URL,
        json={"type": "transfer", "amount": "1", "sender_id": restricted["id"]},
        auth=harness.get_service_auth(),
    )
    assert service_response.json()["reasons"] == ["INSUFFICIENT_FUNDS"]
