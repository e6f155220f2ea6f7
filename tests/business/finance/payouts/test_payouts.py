"""Payouts over HTTP: money, fees, bank accounts and states."""

from decimal import Decimal
from typing import Any

import pytest

from builders.approvals import build_rule, decide, require_held, set_rules
from builders.ledger import require_balanced_books
from builders.participants import create_agent
from builders.payouts import (
    change_payout,
    create_bank_account,
    create_merchant,
    create_run,
    fund_owner,
    get_balance,
    get_payout,
    get_platform_balance,
    post_payout,
    post_run,
    request_payout,
)
from harness import Harness, parse_error
from tapgate.business.finance.payouts import routes
from tapgate_client import ids


async def set_fee(harness: Harness, rate: str = "1", **fields: Any) -> None:
    """Charge a fee for payouts."""
    auth = await harness.create_admin()
    rules = (await harness.get("/api/v1/fee-rules", auth=auth)).json()["data"]
    rule = {"type": "payout", "up_to": None, "rate": rate, "payer": "sender", **fields}
    response = await harness.put("/api/v1/fee-rules", json={"data": [*rules, rule]}, auth=auth)
    assert response.status_code == 200, response.text


async def test_payout_moves_amount_and_fee_and_is_paid_by_a_run(harness: Harness) -> None:
    merchant = await create_merchant(harness)
    await create_bank_account(harness, None)
    await set_fee(harness)
    response = await post_payout(harness, merchant, amount="100", request_id="payout-1")
    receipt = response.json()
    payout = await get_payout(harness, receipt["payout_id"])
    assert (payout["amount"], payout["fee_amount"], payout["status"]) == (
        "100.00", "1.00", "requested",
    )  # fmt: skip
    assert (receipt["status"], receipt["reference"]) == ("completed", payout["reference"])
    assert len(payout["reference"]) <= 16
    assert await get_balance(harness, merchant) == "899.00"
    assert await get_platform_balance(harness, "payouts_in_transit") == "100.00"
    run = await create_run(harness)
    assert (run["payouts"], run["total"]) == (1, "100.00")
    payout = await get_payout(harness, payout["id"])
    assert (payout["status"], payout["run_id"]) == ("submitted", run["id"])
    paid = await change_payout(harness, payout["id"], "paid", bank_reference="B-77")
    assert (paid.json()["status"], paid.json()["bank_reference"]) == ("paid", "B-77")
    assert await get_platform_balance(harness, "payouts_in_transit") == "0.00"
    assert await get_platform_balance(harness, "cash") == "-900.00"
    await require_balanced_books(harness.database)


async def test_replayed_request_pays_once_even_if_the_account_was_blocked(
    harness: Harness,
) -> None:
    merchant = await create_merchant(harness)
    auth = await harness.create_admin("F")
    fields = {"amount": "10", "request_id": "payout-1"}
    first = await post_payout(harness, merchant, auth, **fields)
    await harness.database.execute("UPDATE bank_accounts SET status = 'blocked'")
    again = await post_payout(harness, merchant, auth, **fields)
    assert (again.json(), again.headers["Idempotent-Replayed"]) == (first.json(), "true")
    other = await post_payout(harness, merchant, auth, amount="11", request_id="payout-1")
    assert parse_error(other) == (409, "DUPLICATE_REQUEST")
    assert await get_balance(harness, merchant) == "990.00"


async def test_without_an_amount_everything_above_the_reserve_is_paid_out_fee_included(
    harness: Harness,
) -> None:
    merchant = await create_merchant(harness)
    await set_fee(harness, "2")
    url = f"/api/v1/processors/{merchant}/payout-schedule"
    schedule = {"interval": "manual", "minimum": "0.00", "reserve_percent": 10}
    auth = await harness.create_admin("F")
    assert (await harness.get(url, auth=auth)).json() == {**schedule, "reserve_percent": 0}
    assert (await harness.put(url, json=schedule, auth=auth)).json() == schedule
    payout = await request_payout(harness, merchant)
    assert Decimal(payout["amount"]) + Decimal(payout["fee_amount"]) == 900
    assert await get_balance(harness, merchant) == "100.00"


async def test_money_that_arrives_after_the_rules_were_checked_is_not_paid_out(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    merchant = await create_merchant(harness, "90")
    await set_rules(harness, build_rule("payouts", above="100"))
    build_command = routes.build_payout_command

    async def build_later(*arguments: Any) -> Any:
        await fund_owner(harness, merchant, "5000")
        return await build_command(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(routes, "build_payout_command", build_later)
        assert (await request_payout(harness, merchant))["amount"] == "90.00"
    approval = require_held(await post_payout(harness, merchant))
    assert approval["amount"] == "5000.00"
    await fund_owner(harness, merchant, "1000")
    response = await decide(harness, approval, "approve", await harness.create_admin("A"))
    assert response.json()["status"] == "executed", response.text
    assert await get_balance(harness, merchant) == "1000.00"


async def test_payout_never_uses_an_overdraft(harness: Harness) -> None:
    partner = (await harness.create_partner()).partner_id
    assert partner is not None
    await create_bank_account(harness, partner)
    await harness.database.execute(
        "UPDATE accounts SET overdraft = 100000 WHERE owner_id = $1",
        ids.decode(ids.PARTNER, partner),
    )
    await fund_owner(harness, partner, "50")
    response = await post_payout(harness, partner, amount="50.01")
    assert parse_error(response) == (402, "INSUFFICIENT_FUNDS")
    assert response.json()["details"]["available"] == 50
    assert (await post_payout(harness, partner, amount="50")).status_code == 200
    assert parse_error(await post_payout(harness, partner)) == (402, "INSUFFICIENT_FUNDS")


async def test_agent_is_paid_out_from_the_float(harness: Harness) -> None:
    agent = await create_agent(harness, balance="100")
    await create_bank_account(harness, agent["id"])
    await request_payout(harness, agent["id"], amount="60")
    assert await get_balance(harness, agent["id"]) == "40.00"
    response = await post_payout(harness, agent["id"], amount="60")
    assert parse_error(response) == (402, "INSUFFICIENT_FLOAT")


async def test_bank_account_must_belong_to_the_owner_be_verified_and_not_be_new(
    harness: Harness,
) -> None:
    merchant = await harness.get_processor_id(await harness.create_processor())
    await fund_owner(harness, merchant, "100")
    response = await post_payout(harness, merchant, amount="1")
    assert parse_error(response) == (409, "BANK_ACCOUNT_NOT_VERIFIED")
    assert response.json()["details"] == {"accounts": []}
    other = await create_bank_account(harness, await create_merchant(harness))
    for account_id in (other["id"], "bnk_0000000000000", "x"):
        response = await post_payout(harness, merchant, amount="1", bank_account_id=account_id)
        assert parse_error(response) == (404, "BANK_ACCOUNT_NOT_FOUND")
    unverified = await create_bank_account(harness, merchant, verified=False)
    response = await post_payout(harness, merchant, amount="1", bank_account_id=unverified["id"])
    assert parse_error(response) == (409, "BANK_ACCOUNT_NOT_VERIFIED")
    new = await create_bank_account(harness, merchant, aged=False)
    response = await post_payout(harness, merchant, amount="1")
    assert parse_error(response) == (403, "FORBIDDEN")
    assert response.json()["details"]["until"] > new["verified_at"]
    harness.services.settings = harness.services.settings.replace(bank_account_cooldown=0)
    await request_payout(harness, merchant, amount="1")
    second = await create_bank_account(harness, merchant)
    response = await post_payout(harness, merchant, amount="1")
    assert response.json()["details"] == {"accounts": [new["id"], second["id"]]}
    unknown = await post_payout(harness, "prc_0000000000000", amount="1")
    assert parse_error(unknown) == (404, "PROCESSOR_NOT_FOUND")
    invalid = await post_payout(harness, "sub_0000000000000", amount="1")
    assert parse_error(invalid) == (422, "VALIDATION_FAILED")


async def test_cancelled_and_returned_payouts_give_amount_and_fee_back(harness: Harness) -> None:
    merchant = await create_merchant(harness)
    await create_bank_account(harness, None)
    await set_fee(harness)
    cancelled, submitted, paid = [
        await request_payout(harness, merchant, amount="100") for _ in range(3)
    ]
    assert (await change_payout(harness, cancelled["id"], "cancel")).json()["status"] == "cancelled"
    await create_run(harness)
    await change_payout(harness, paid["id"], "paid")
    for payout in (submitted, paid):
        response = await change_payout(harness, payout["id"], "returned", reason="AC04 closed")
        assert (response.json()["status"], response.json()["return_reason"]) == (
            "returned", "AC04 closed",
        )  # fmt: skip
    assert await get_balance(harness, merchant) == "1000.00"
    assert await get_platform_balance(harness, "payouts_in_transit") == "0.00"
    assert await get_platform_balance(harness, "cash") == "-1000.00"
    assert await get_platform_balance(harness, "fees") == "0.00"
    await require_balanced_books(harness.database)


async def test_move_that_the_state_does_not_allow_is_refused(harness: Harness) -> None:
    merchant = await create_merchant(harness)
    await create_bank_account(harness, None)
    payout = await request_payout(harness, merchant, amount="10")
    for verb, fields in (("paid", {}), ("returned", {"reason": "closed"})):
        response = await change_payout(harness, payout["id"], verb, **fields)
        assert parse_error(response) == (409, "PAYOUT_NOT_PENDING")
    await create_run(harness)
    response = await change_payout(harness, payout["id"], "cancel")
    assert parse_error(response) == (409, "PAYOUT_NOT_PENDING")
    response = await change_payout(harness, "po_0000000000000", "cancel")
    assert parse_error(response) == (404, "PAYOUT_NOT_FOUND")
    assert parse_error(await post_run(harness)) == (409, "PAYOUT_NOT_PENDING")


async def test_repeated_change_replays_and_moves_money_once(harness: Harness) -> None:
    merchant = await create_merchant(harness)
    payout = await request_payout(harness, merchant, amount="10")
    auth = await harness.create_admin("F")
    url = f"/api/v1/payouts/{payout['id']}/cancel"
    answers = [
        await harness.post(url, json={"request_id": "cancel-1"}, auth=auth) for _ in range(2)
    ]
    assert [answer.json()["status"] for answer in answers] == ["cancelled", "cancelled"]
    assert await get_balance(harness, merchant) == "1000.00"


async def test_money_in_transit_cannot_be_moved_by_a_transfer(harness: Harness) -> None:
    merchant = await create_merchant(harness)
    transit, settlement = [
        ids.encode(ids.ACCOUNT, await harness.database.fetchval(sql, *arguments))
        for sql, arguments in (
            ("SELECT id FROM accounts WHERE kind = 'payouts_in_transit'", ()),
            (
                "SELECT id FROM accounts WHERE owner_id = $1",
                (ids.decode(ids.PROCESSOR, merchant),),
            ),
        )
    ]
    response = await harness.post(
        "/api/v1/wallet/transfer",
        json={"from_account_id": settlement, "to_account_id": transit, "amount": "5"},
        auth=await harness.create_admin("A"),
    )
    assert parse_error(response) == (403, "FORBIDDEN")


async def test_events_report_each_step(harness: Harness) -> None:
    await harness.post(
        "/api/v1/admin/webhook-endpoints",
        json={"url": "https://hook.example/", "events": ["*"]},
        auth=await harness.create_admin(),
    )
    merchant = await create_merchant(harness)
    await create_bank_account(harness, None)
    first = await request_payout(harness, merchant, amount="10")
    second = await request_payout(harness, merchant, amount="10")
    await change_payout(harness, second["id"], "cancel")
    await create_run(harness)
    await change_payout(harness, first["id"], "paid")
    await change_payout(harness, first["id"], "returned", reason="closed")
    rows = await harness.database.fetch(
        "SELECT type, data ->> 'id' AS id FROM events WHERE type LIKE 'payout.%' ORDER BY events.id"
    )
    assert [(row["type"], row["id"]) for row in rows] == [
        ("payout.requested", first["id"]),
        ("payout.requested", second["id"]),
        ("payout.cancelled", second["id"]),
        ("payout.paid", first["id"]),
        ("payout.returned", first["id"]),
    ]


async def test_work_queue_counts_requested_payouts(harness: Harness) -> None:
    merchant = await create_merchant(harness)
    await request_payout(harness, merchant, amount="10")
    response = await harness.get(
        "/api/v1/work-queues?fresh=true", auth=await harness.create_admin("F")
    )
    queues = {queue["name"]: queue["waiting"] for queue in response.json()["data"]}
    assert queues["payouts"] == 1


async def test_payout_of_everything_below_the_checked_amount_avoids_a_dearer_fee(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small payouts cost more here, and the amount that was checked is a small one."""
    tier = {"type": "payout", "rate": "0", "payer": "sender"}
    tiers = [{**tier, "up_to": "100", "fixed": "20"}, {**tier, "up_to": None}]
    url, auth = "/api/v1/fee-rules/payout", await harness.create_admin()
    assert (await harness.put(url, json={"data": tiers}, auth=auth)).status_code == 200
    merchant = await create_merchant(harness, "100")
    build = routes.build_payout_command

    async def build_later(*arguments: Any) -> Any:
        await fund_owner(harness, merchant, "5")
        return await build(*arguments)

    monkeypatch.setattr(routes, "build_payout_command", build_later)
    response = await post_payout(harness, merchant)
    assert (response.status_code, response.json().get("amount")) == (200, "85.00 SLE")
    assert await get_balance(harness, merchant) == "0.00"
