"""Payments and card lookups at a terminal and in an app."""

from datetime import timedelta

import pytest

from builders.payments import LOOKUP_URL, PAY_URL, VERIFY_URL, PosDriver
from cases import each
from harness import PIN, WRONG_PIN, Harness, parse_error
from tapgate_client import ids

ALIAS_PATHS = ["/payment", "/api/v1/payment"]


async def test_approved_payment_returns_a_receipt(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    response = await pos.pay("100.00", metadata={"order": "A-17"}, merchant_name="Corner shop")
    assert response.status_code == 200, response.text
    receipt = response.json()
    assert receipt.pop("transaction_id").startswith("txn_")
    assert len(receipt.pop("approval_code")) == 6
    assert receipt == {
        "success": True,
        "message": "Payment approved",
        "status": "completed",
        "amount": "100.00 SLE",
        "remaining_balance": "900.00 SLE",
        "fee_amount": "1.00 SLE",
        "metadata": {"order": "A-17"},
    }


@each("url", [PAY_URL, *ALIAS_PATHS])
async def test_missing_request_id_is_rejected(harness: Harness, url: str) -> None:
    pos = await PosDriver.create(harness)
    response = await pos.pay(url=url, request_id=None)
    assert parse_error(response) == (400, "INVALID_REQUEST")
    assert "request_id" in response.json()["details"]["fields"]
    # Missing fields are reported before invalid values.
    response = await pos.pay(url=url, request_id=None, currency="USD")
    assert parse_error(response) == (400, "INVALID_REQUEST")


async def test_payment_above_the_no_pin_limit_requires_a_pin(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    assert parse_error(await pos.pay("500.01")) == (403, "PIN_REQUIRED")
    assert (await pos.pay("500.01", pin=PIN)).status_code == 200


async def test_wrong_pin_does_not_consume_the_request_id(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    wrong = await pos.pay("10", request_id="one", pin=WRONG_PIN)
    right = await pos.pay("10", request_id="one", pin=PIN)
    assert (wrong.status_code, right.status_code) == (400, 200)
    assert "Idempotent-Replayed" not in right.headers


@pytest.mark.parametrize(
    ("column", "value"), [("status", "BLOCKED"), ("status", "LOST"), ("expires_at", "past")]
)
async def test_inactive_card_is_declined(harness: Harness, column: str, value: str) -> None:
    past = harness.services.clock() - timedelta(seconds=1)
    pos = await PosDriver.create(harness, **{column: past if value == "past" else value})
    response = await pos.pay()
    assert parse_error(response) == (403, "CARD_NOT_ACTIVE")
    assert response.json()["details"] == {"party": "sender"}


async def test_blocked_cardholder_is_declined(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    blocked = await harness.post(
        f"/api/v1/subscribers/{pos.customer['id']}/block",
        json={"reason": "fraud"},
        auth=await harness.create_admin(),
    )
    assert blocked.status_code == 200
    assert parse_error(await pos.pay()) == (403, "SUBSCRIBER_BLOCKED")


async def test_payment_with_an_unknown_card_returns_card_not_found(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    assert parse_error(await pos.pay(card_serial="NOBODY-1")) == (404, "CARD_NOT_FOUND")


async def test_terminal_id_must_be_an_active_terminal_of_the_processor(harness: Harness) -> None:
    pos, other = await PosDriver.create(harness), await PosDriver.create(harness)
    own_terminal, other_terminal = await pos.create_terminal(), await other.create_terminal()
    blocked = await pos.create_terminal("blocked")
    payment = await pos.pay("1", terminal_id=own_terminal)
    assert payment.status_code == 200
    chain = await harness.get(
        f"/api/v1/transactions/{payment.json()['transaction_id']}/chain",
        auth=await harness.create_admin("S"),
    )
    assert chain.json()["terminal_name"] == "Till"
    assert parse_error(await pos.pay("1", terminal_id=other_terminal)) == (
        404,
        "TERMINAL_NOT_FOUND",
    )
    assert parse_error(await pos.pay("1", terminal_id="none")) == (404, "TERMINAL_NOT_FOUND")
    assert parse_error(await pos.pay("1", terminal_id=blocked)) == (403, "TERMINAL_BLOCKED")
    await harness.services.authenticator.terminals.flush_last_seen()
    rows = await harness.database.fetch("SELECT id FROM terminals WHERE last_seen_at IS NOT NULL")
    assert [ids.encode(ids.TERMINAL, row["id"]) for row in rows] == [own_terminal]


async def test_replay_succeeds_after_the_terminal_is_blocked(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    terminal = await pos.create_terminal()
    first = await pos.pay("1", request_id="one", terminal_id=terminal)
    async with harness.services.transaction() as tx:
        await tx.execute("UPDATE terminals SET status = 'blocked'")
        await harness.services.authenticator.hmac_keys.publish_owner_change(tx)
    replayed = await pos.pay("1", request_id="one", terminal_id=terminal)
    assert replayed.json() == first.json()
    assert parse_error(await pos.pay("1", terminal_id=terminal)) == (403, "TERMINAL_BLOCKED")


async def test_app_payment_ignores_the_pin(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    assert parse_error(await pos.pay("500.01", url="/payment", pin=PIN)) == (403, "PIN_REQUIRED")


async def test_alias_paths_share_idempotency_keys(harness: Harness) -> None:
    pos = await PosDriver.create(harness)
    first, second = [await pos.pay("5", url=url, request_id="one") for url in ALIAS_PATHS]
    assert first.json() == second.json()
    assert second.headers["Idempotent-Replayed"] == "true"
    assert first.json()["fee_amount"] == "0.05 SLE"
    terminal_payment = await pos.pay("5", request_id="one")
    assert parse_error(terminal_payment) == (409, "DUPLICATE_REQUEST")


async def test_verify_card_with_pin_returns_holder_and_balance(harness: Harness) -> None:
    pos = await PosDriver.create(harness, balance="1234.50")
    response = await harness.post(
        VERIFY_URL, json={"card_serial": pos.card, "pin": PIN}, auth=pos.merchant_auth
    )
    assert response.status_code == 200, response.text
    assert response.json() == {
        "success": True,
        "message": "Card is active",
        "is_active": True,
        "holder_name": "Aminata K.",
        "balance": "1,234.50 SLE",
    }


async def test_verify_inactive_card_omits_the_balance(harness: Harness) -> None:
    pos = await PosDriver.create(harness, status="BLOCKED")
    response = await harness.post(
        VERIFY_URL, json={"card_serial": pos.card, "pin": PIN}, auth=pos.merchant_auth
    )
    assert response.json() == {
        "success": True,
        "message": "Card is not active",
        "is_active": False,
        "holder_name": "Aminata K.",
    }


@pytest.mark.parametrize("prefix", ["", "/api/v1"])
async def test_verify_card_by_an_app_omits_the_balance(harness: Harness, prefix: str) -> None:
    pos = await PosDriver.create(harness)
    response = await harness.post(
        f"{prefix}/payment/verify-card", json={"card_serial": pos.card}, auth=pos.merchant_auth
    )
    assert response.json() == {
        "success": True,
        "message": "Card is active",
        "is_active": True,
        "holder_name": "Aminata K.",
    }


@pytest.mark.parametrize("url", [LOOKUP_URL, "/payment/lookup-card", "/api/v1/payment/lookup-card"])
async def test_lookup_finds_a_card_by_serial_or_uid(harness: Harness, url: str) -> None:
    pos = await PosDriver.create(harness, uid="04:A1:B2:C3:D4:E5:80")
    for identifier in (pos.card, "04:A1:B2:C3:D4:E5:80", "04a1b2c3d4e580", "04-a1-b2-c3-d4-e5-80"):
        response = await harness.post(
            url, json={"card_identifier": identifier}, auth=pos.merchant_auth
        )
        assert response.status_code == 200, (identifier, response.text)
        assert response.json() == {
            "success": True,
            "message": "Card found",
            "card_serial": pos.card,
            "card_type": "PARENT",
            "status": "ACTIVE",
            "holder_name": "Aminata K.",
        }


@each("url", [LOOKUP_URL, VERIFY_URL, "/payment/verify-card", "/payment/lookup-card"])
async def test_unknown_card_returns_card_not_found(harness: Harness, url: str) -> None:
    body = {"card_serial": "NOBODY-1", "card_identifier": "NOBODY-1", "pin": PIN}
    response = await harness.post(url, json=body, auth=await harness.create_processor())
    assert parse_error(response) == (404, "CARD_NOT_FOUND")
