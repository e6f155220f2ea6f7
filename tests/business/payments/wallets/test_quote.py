"""Quotes: fees, reasons, PIN requirement and limits, compared with the payments they predict."""

from random import Random
from typing import Any

import httpx2
import pytest

from builders.payments import PAY_URL, PosDriver, new_request_id, set_kyc_level
from harness import PIN, Harness, parse_error

URL = "/api/v1/wallet/quote"


async def _get_quote(client: httpx2.AsyncClient, harness: Harness, **body: Any) -> httpx2.Response:
    key = await harness.create_api_key("payments:write", "balance:read")
    return await client.post(URL, json=body, auth=key)


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
                quotes.append((await client.post(URL, json=body, auth=key)).json())
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
        quote = (await client.post(URL, json=body, auth=auth)).json()
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
        URL,
        json={"type": "transfer", "amount": "1", "sender_id": restricted["id"]},
        auth=harness.get_service_auth(),
    )
    assert service_response.json()["reasons"] == ["INSUFFICIENT_FUNDS"]


async def _post_quote(harness: Harness, auth: Any = None, **body: Any) -> dict[str, Any]:
    response = await harness.client.post(URL, json=body, auth=auth or harness.get_service_auth())
    assert response.status_code == 200, response.text
    quote: dict[str, Any] = response.json()
    return quote


async def test_quote_of_a_card_payment_covers_the_card(harness: Harness) -> None:
    pos = await PosDriver.create(harness, balance="5000", daily_limit=900_00)
    payment = {"type": "pos_payment", "card_serial": pos.card}
    quote = await _post_quote(harness, **payment, amount="500")
    assert (quote["pin_required"], quote["allowed"]) == (False, True)
    assert quote["limits"] == {
        "transaction": "50000.00",
        "daily_remaining": "900.00",  # the card's limit is lower than the wallet's
        "monthly_remaining": "1000000.00",
    }
    assert (await pos.pay("500")).status_code == 200
    quote = await _post_quote(harness, **payment, amount="400.01")
    assert (quote["allowed"], quote["reasons"]) == (False, ["CARD_LIMIT_EXCEEDED"])
    assert quote["limits"]["daily_remaining"] == "400.00"
    assert quote["limits"]["monthly_remaining"] == "999500.00"
    by_subscriber = await _post_quote(
        harness, type="pos_payment", sender_id=pos.customer["id"], amount="400.01"
    )
    assert (by_subscriber["allowed"], by_subscriber["reasons"]) == (True, [])
    assert by_subscriber["limits"]["daily_remaining"] == "99500.00"


async def test_quote_knows_what_was_spent_without_a_pin(harness: Harness) -> None:
    pos = await PosDriver.create(harness, balance="5000")
    payment = {"amount": "500", "card_serial": pos.card}
    for _ in range(5):
        assert (await _post_quote(harness, type="pos_payment", **payment))["pin_required"] is False
        assert (await pos.pay("500")).status_code == 200
    at_terminal = await _post_quote(harness, type="pos_payment", **payment)
    assert (at_terminal["pin_required"], at_terminal["reasons"]) == (True, [])
    assert parse_error(await pos.pay("500")) == (403, "PIN_REQUIRED")
    in_app = await _post_quote(harness, type="online_payment", **payment)
    assert (in_app["pin_required"], in_app["reasons"]) == (True, ["PIN_REQUIRED"])
    assert parse_error(await pos.pay("500", url="/payment")) == (403, "PIN_REQUIRED")
    # Without the card, its earlier payments are not known.
    sender = {"sender_id": pos.customer["id"], "type": "pos_payment"}
    assert (await _post_quote(harness, **sender, amount="500"))["pin_required"] is False
    assert (await _post_quote(harness, **sender, amount="500.01"))["pin_required"] is True


@pytest.mark.parametrize(
    ("kind", "pin_required"),
    [
        ("transfer_p2p", True),
        ("agent_cashout", True),
        ("agent_cashin", False),  # the agent enters a PIN, not the subscriber
        ("partner_fund", False),
        ("pos_payment", None),
    ],
)
async def test_quote_without_a_subscriber_covers_only_fee_and_pin(
    harness: Harness, kind: str, pin_required: bool | None
) -> None:
    quote = await _post_quote(harness, type=kind, amount="100")
    assert (quote["pin_required"], quote["limits"]) == (pin_required, None)
    assert (quote["allowed"], quote["reasons"]) == (True, [])


async def test_transfer_needs_the_pin_unless_an_admin_transfers(harness: Harness) -> None:
    for caller, pin_required in (
        (await harness.create_api_key("payments:write"), True),
        (await harness.create_admin("F"), False),
    ):
        quote = await _post_quote(harness, caller, type="transfer", amount="1")
        assert quote["pin_required"] is pin_required


async def test_quote_covers_the_recipient_of_a_transfer(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="1000")
    recipient = await harness.create_subscriber(balance="499950")
    card = await harness.create_card(recipient["id"])
    transfer = {"type": "transfer_p2p", "sender_id": sender["id"], "recipient_card_serial": card}
    assert (await _post_quote(harness, **transfer, amount="50"))["reasons"] == []
    too_much = await _post_quote(harness, **transfer, amount="50.01")
    assert too_much["reasons"] == ["MAX_BALANCE_EXCEEDED"]
    no_balances = await harness.create_api_key("payments:write")
    assert (await _post_quote(harness, no_balances, **transfer, amount="50.01"))["reasons"] == []
    own_card = await harness.create_card(sender["id"])
    to_self = await _post_quote(
        harness, **transfer | {"recipient_card_serial": own_card}, amount="1"
    )
    assert to_self["reasons"] == ["SELF_TRANSFER"]
    blocked = await harness.create_card(recipient["id"], status="BLOCKED")
    to_blocked = await _post_quote(
        harness, **transfer | {"recipient_card_serial": blocked}, amount="1"
    )
    assert to_blocked["reasons"] == ["CARD_NOT_ACTIVE"]


async def test_limits_do_not_require_balance_read_scope(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    body = {"type": "pos_payment", "amount": "1", "card_serial": pos.card}
    expected = (await _post_quote(harness, await harness.create_admin("F"), **body))["limits"]
    assert expected is not None
    key = await harness.create_api_key("payments:write")
    assert (await _post_quote(harness, key, **body))["limits"] == expected


async def test_cards_of_a_quote_must_fit_its_type_and_sender(harness: Harness) -> None:
    pos, other = await PosDriver.create(harness), await harness.create_subscriber()
    key = await harness.create_api_key("payments:write")
    card = pos.card
    for fields, status, code, field in (
        ({"type": "transfer_p2p", "card_serial": card}, 422, "VALIDATION_FAILED", "card_serial"),
        (
            {"type": "pos_payment", "recipient_card_serial": card},
            422,
            "VALIDATION_FAILED",
            "recipient_card_serial",
        ),
        (
            {"type": "pos_payment", "card_serial": card, "sender_id": other["id"]},
            422,
            "VALIDATION_FAILED",
            "card_serial",
        ),
        ({"type": "pos_payment", "card_serial": "TAP-NONE"}, 404, "CARD_NOT_FOUND", None),
        (
            {"type": "transfer_p2p", "recipient_card_serial": "TAP-NONE"},
            404,
            "CARD_NOT_FOUND",
            None,
        ),
    ):
        response = await harness.client.post(URL, json=fields | {"amount": "1"}, auth=key)
        assert parse_error(response) == (status, code), fields
        if field is not None:
            assert list(response.json()["details"]["fields"]) == [field]


async def test_quote_for_the_card_of_a_restricted_subscriber_requires_access(
    harness: Harness,
) -> None:
    restricted = await harness.create_restricted_subscriber()
    card = await harness.create_card(restricted["id"])
    for body in (
        {"type": "pos_payment", "amount": "1", "card_serial": card},
        {"type": "transfer_p2p", "amount": "1", "recipient_card_serial": card},
    ):
        for caller in (
            await harness.create_api_key("payments:write", "balance:read"),
            await harness.create_admin("F"),
        ):
            response = await harness.client.post(URL, json=body, auth=caller)
            assert parse_error(response) == (403, "OTP_REQUIRED")


@pytest.mark.parametrize("seed", range(3))
async def test_quotes_agree_with_the_payments_that_follow(harness: Harness, seed: int) -> None:
    """Quote random payments of random customers, then make them and compare."""
    random = Random(seed)
    merchant = await harness.create_processor()
    customers = []
    for _ in range(4):
        person = await harness.create_subscriber(balance=random.choice(["0", "700", "60000"]))
        level = random.choice([1, 2])
        await set_kyc_level(harness, person["id"], level)
        card = await harness.create_card(
            person["id"],
            status=random.choice(["ACTIVE", "ACTIVE", "ACTIVE", "BLOCKED"]),
            daily_limit=random.choice([None, None, 1200_00]),
        )
        customers.append((person, card))
    verdicts = set()
    for _ in range(30):
        (sender, card), (_, recipient_card) = random.choice(customers), random.choice(customers)
        amount = random.choice(["0.01", "300", "499.99", "500", "500.01", "1999.99", "51000"])
        kind = random.choice(["transfer_p2p", "pos_payment", "pos_payment", "online_payment"])
        if kind == "transfer_p2p":
            parties = {"sender_id": sender["id"], "recipient_card_serial": recipient_card}
            url, auth = "/api/v1/wallet/transfer-p2p", harness.get_service_auth()
        else:
            parties = {"card_serial": card}
            url, auth = (PAY_URL if kind == "pos_payment" else "/api/v1/payment"), merchant
        quote = await _post_quote(harness, type=kind, amount=amount, **parties)
        body = parties | {"amount": amount, "request_id": new_request_id()}
        if quote["pin_required"] and kind != "online_payment":
            body["pin"] = PIN
        response = await harness.client.post(url, json=body, auth=auth)
        outcome = (quote, response.text)
        verdicts.add((quote["allowed"], quote["pin_required"]))
        assert response.is_success == quote["allowed"], outcome
        if not quote["allowed"]:
            assert response.json()["code"] == quote["reasons"][0], outcome
            continue
        assert response.json()["fee_amount"] == f"{quote['fee_amount']} SLE", outcome
        if quote["pin_required"] and kind == "pos_payment":
            body |= {"request_id": new_request_id(), "pin": None}
            assert parse_error(await harness.client.post(url, json=body, auth=auth)) == (
                403,
                "PIN_REQUIRED",
            ), outcome
    assert {(True, True), (True, False), (False, True)} <= verdicts
