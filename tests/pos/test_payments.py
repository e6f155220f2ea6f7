"""Payments at a terminal and in an app."""

import asyncio
from datetime import timedelta

import pytest

from harness import PIN, WRONG_PIN, Harness, HmacAuth
from pos.builders import PAY_URL, PosDriver, parse_error
from tapgate import ids

ALIAS_PATHS = ["/payment", "/api/v1/payment"]


async def test_approved_payment_returns_a_receipt(world: Harness) -> None:
    shop = await PosDriver.create(world)
    answer = await shop.pay("100.00", metadata={"order": "A-17"}, merchant_name="Corner shop")
    assert answer.status_code == 200, answer.text
    receipt = answer.json()
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


@pytest.mark.parametrize("url", [PAY_URL, *ALIAS_PATHS])
async def test_missing_request_id_is_rejected(world: Harness, url: str) -> None:
    shop = await PosDriver.create(world)
    answer = await shop.pay(url=url, request_id=None)
    assert parse_error(answer) == (400, "INVALID_REQUEST")
    assert "request_id" in answer.json()["details"]["fields"]
    # Missing fields are reported before invalid values.
    answer = await shop.pay(url=url, request_id=None, currency="USD")
    assert parse_error(answer) == (400, "INVALID_REQUEST")


async def test_payment_above_the_no_pin_limit_requires_a_pin(world: Harness) -> None:
    shop = await PosDriver.create(world)
    assert parse_error(await shop.pay("500.01")) == (403, "PIN_REQUIRED")
    assert (await shop.pay("500.01", pin=PIN)).status_code == 200


async def test_payments_without_pin_are_capped_at_five_times_the_limit_per_day(
    world: Harness,
) -> None:
    shop = await PosDriver.create(world, balance="5000")
    for _ in range(5):
        assert (await shop.pay("500")).status_code == 200
    assert parse_error(await shop.pay("0.01")) == (403, "PIN_REQUIRED")
    assert (await shop.pay("0.01", pin=PIN)).status_code == 200


async def test_three_wrong_pins_lock_the_account(world: Harness) -> None:
    shop = await PosDriver.create(world)
    for remaining in (2, 1, 0):
        answer = await shop.pay("10", pin=WRONG_PIN)
        assert parse_error(answer) == (400, "INVALID_PIN")
        assert answer.json()["details"] == {"attempts_remaining": remaining}
    assert parse_error(await shop.pay("10", pin=PIN)) == (403, "ACCOUNT_LOCKED")
    assert await shop.get_balance() == 1000_00


async def test_wrong_pin_does_not_consume_the_request_id(
    world: Harness,
) -> None:
    shop = await PosDriver.create(world)
    wrong = await shop.pay("10", request_id="one", pin=WRONG_PIN)
    right = await shop.pay("10", request_id="one", pin=PIN)
    assert (wrong.status_code, right.status_code) == (400, 200)
    assert "Idempotent-Replayed" not in right.headers


@pytest.mark.parametrize(
    ("column", "value"), [("status", "BLOCKED"), ("status", "LOST"), ("expires_at", "past")]
)
async def test_inactive_card_is_declined(world: Harness, column: str, value: str) -> None:
    past = world.services.clock() - timedelta(seconds=1)
    shop = await PosDriver.create(world, **{column: past if value == "past" else value})
    answer = await shop.pay()
    assert parse_error(answer) == (403, "CARD_NOT_ACTIVE")
    assert answer.json()["details"] == {"party": "sender"}


async def test_blocked_cardholder_is_declined(world: Harness) -> None:
    shop = await PosDriver.create(world)
    blocked = await world.client.post(
        f"/api/v1/subscribers/{shop.customer['id']}/block",
        json={"reason": "fraud"},
        auth=await world.create_admin(),
    )
    assert blocked.status_code == 200
    assert parse_error(await shop.pay()) == (403, "SUBSCRIBER_BLOCKED")


async def test_payment_with_an_unknown_card_returns_card_not_found(world: Harness) -> None:
    shop = await PosDriver.create(world)
    assert parse_error(await shop.pay(card_serial="NOBODY-1")) == (404, "CARD_NOT_FOUND")


async def test_unsupported_currency_is_rejected(world: Harness) -> None:
    shop = await PosDriver.create(world)
    assert parse_error(await shop.pay(currency="USD")) == (422, "CURRENCY_NOT_SUPPORTED")
    assert (await shop.pay(currency="SLE")).status_code == 200


async def test_terminal_id_must_be_an_active_terminal_of_the_processor(world: Harness) -> None:
    shop, other = await PosDriver.create(world), await PosDriver.create(world)
    own, anothers = await shop.create_terminal(), await other.create_terminal()
    blocked = await shop.create_terminal("blocked")
    assert (await shop.pay("1", terminal_id=own)).status_code == 200
    assert parse_error(await shop.pay("1", terminal_id=anothers)) == (404, "TERMINAL_NOT_FOUND")
    assert parse_error(await shop.pay("1", terminal_id="none")) == (404, "TERMINAL_NOT_FOUND")
    assert parse_error(await shop.pay("1", terminal_id=blocked)) == (403, "TERMINAL_BLOCKED")
    await world.services.authenticator.terminals.flush_last_seen()
    seen = await world.services.database.fetch(
        "SELECT id FROM terminals WHERE last_seen_at IS NOT NULL"
    )
    assert [ids.encode(ids.TERMINAL, row["id"]) for row in seen] == [own]


async def test_replay_succeeds_after_the_terminal_is_blocked(
    world: Harness,
) -> None:
    shop = await PosDriver.create(world)
    terminal = await shop.create_terminal()
    first = await shop.pay("1", request_id="one", terminal_id=terminal)
    async with world.services.database.transaction() as tx:
        await tx.execute("UPDATE terminals SET status = 'blocked'")
        ticket = await world.services.authenticator.hmac_keys.publish_owner_change(tx)
    await world.services.signals.wait_for_acks(ticket)
    again = await shop.pay("1", request_id="one", terminal_id=terminal)
    assert again.json() == first.json()
    assert parse_error(await shop.pay("1", terminal_id=terminal)) == (403, "TERMINAL_BLOCKED")


async def test_terminal_key_overrides_the_terminal_id_in_the_request(world: Harness) -> None:
    shop = await PosDriver.create(world)
    own, other = await shop.create_terminal(), await shop.create_terminal()
    async with world.services.database.transaction() as tx:
        processor_id = await tx.fetchval("SELECT processor_id FROM terminals LIMIT 1")
        key = await world.services.authenticator.hmac_keys.create_for_processor(
            tx, processor_id, ids.decode(ids.TERMINAL, own)
        )
    till = HmacAuth(ids.encode(ids.KEY, key.id), key.secret)
    assert (await shop.pay("1", auth=till, terminal_id=other)).status_code == 200
    context = await world.services.database.fetchval(
        "SELECT context FROM transactions WHERE type = 'pos_payment'"
    )
    assert context["terminal_id"] == own


async def test_app_payment_ignores_the_pin(world: Harness) -> None:
    shop = await PosDriver.create(world)
    answer = await shop.pay("500.01", url="/payment", pin=PIN)
    assert parse_error(answer) == (403, "PIN_REQUIRED")


async def test_alias_paths_share_idempotency_keys(world: Harness) -> None:
    shop = await PosDriver.create(world)
    first, second = [await shop.pay("5", url=url, request_id="one") for url in ALIAS_PATHS]
    assert first.json() == second.json()
    assert second.headers["Idempotent-Replayed"] == "true"
    assert first.json()["fee_amount"] == "0.05 SLE"
    at_a_terminal = await shop.pay("5", request_id="one")
    assert parse_error(at_a_terminal) == (409, "DUPLICATE_REQUEST")


async def test_concurrent_payments_cannot_overdraw_a_wallet(world: Harness) -> None:
    await world.disable_compliance_rules()
    shop = await PosDriver.create(world, balance="200")
    answers = await asyncio.gather(*(shop.pay("2", pin=PIN) for _ in range(200)))
    paid = [answer for answer in answers if answer.status_code == 200]
    declined = {parse_error(answer) for answer in answers if answer.status_code != 200}
    assert len(paid) == 100
    assert declined == {(402, "INSUFFICIENT_FUNDS")}
    assert await shop.get_balance() == 0


async def test_concurrent_payments_cannot_exceed_the_daily_limit(world: Harness) -> None:
    await world.disable_compliance_rules()
    shop = await PosDriver.create(world, balance="200000")
    answers = await asyncio.gather(*(shop.pay("10000", pin=PIN) for _ in range(20)))
    paid = [answer for answer in answers if answer.status_code == 200]
    declined = {parse_error(answer) for answer in answers if answer.status_code != 200}
    assert len(paid) == 10
    assert declined == {(403, "DAILY_LIMIT_EXCEEDED")}
