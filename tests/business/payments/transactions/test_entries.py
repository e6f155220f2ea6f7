"""A transaction's ledger entries and refund chain."""

from typing import Any

import pytest

from builders.payments import (
    create_agent,
    create_processor,
    decide_review,
    encode_transaction_id,
    set_kyc_level,
    submit_and_get_id,
    submit_command,
    submit_refund,
)
from harness import BearerAuth, Harness
from tapgate.ledger import chart
from tapgate_client import ids

URL = "/api/v1/transactions"


@pytest.fixture
async def admin(harness: Harness) -> BearerAuth:
    return await harness.create_admin("S")


async def get_transaction(harness: Harness, caller: Any, transaction_id: str, part: str) -> Any:
    response = await harness.get(f"{URL}/{transaction_id}/{part}", auth=caller)
    assert response.status_code == 200, response.text
    return response.json()


async def list_entries(harness: Harness, caller: Any, transaction_id: str) -> list[tuple[Any, ...]]:
    """Return each entry's account kinds, amount and resulting balances, debit before credit."""
    body = await get_transaction(harness, caller, transaction_id, "entries")
    assert (body["transaction_id"], body["currency"]) == (transaction_id, "SLE")
    entries = body["entries"]
    assert [entry["position"] for entry in entries] == list(range(len(entries)))
    return [
        (
            entry["debit"]["kind"],
            entry["credit"]["kind"],
            entry["amount"],
            entry["debit"]["balance_after"],
            entry["credit"]["balance_after"],
        )
        for entry in entries
    ]


async def test_entries_of_a_payment_and_its_refund(harness: Harness, admin: BearerAuth) -> None:
    payer = await harness.create_subscriber(balance="1000")
    merchant = await create_processor(harness)
    card = await harness.create_card(payer["id"])
    payment = await submit_and_get_id(harness, chart.POS_PAYMENT, card, merchant, "100")
    first, fee = (await get_transaction(harness, admin, payment, "entries"))["entries"]
    account = payer["account_id"]
    assert first == {
        "position": 0,
        "debit": {
            "account_id": account,
            "kind": "wallet",
            "holder_type": "subscriber",
            "holder_id": payer["id"],
            "name": "Aminata Kamara",
            "balance_after": "900.00",
        },
        "credit": {
            "account_id": fee["debit"]["account_id"],
            "kind": "settlement",
            "holder_type": "processor",
            "holder_id": merchant,
            "name": "Kamara Stores",
            "balance_after": "100.00",
        },
        "amount": "100.00",
    }
    assert fee["credit"] | {"account_id": ""} == {
        "account_id": "",
        "kind": "fees",
        "holder_type": "platform",
        "holder_id": None,
        "name": "Platform",
        "balance_after": None,
    }
    assert await list_entries(harness, admin, payment) == [
        ("wallet", "settlement", "100.00", "900.00", "100.00"),
        ("settlement", "fees", "1.00", "99.00", None),
    ]
    refund = await submit_refund(harness, payment, merchant, "100")
    assert await list_entries(harness, admin, refund) == [
        ("fees", "settlement", "1.00", None, "100.00"),
        ("settlement", "wallet", "100.00", "0.00", "1000.00"),
    ]


async def test_commission_entry_credits_the_agents_commission_account(
    harness: Harness, admin: BearerAuth
) -> None:
    agent, subscriber = await create_agent(harness), await harness.create_subscriber()
    await submit_and_get_id(harness, chart.AGENT_FUND, "cash", agent, "500")
    cash_in = await submit_and_get_id(harness, chart.AGENT_CASHIN, agent, subscriber, "100")
    entries = (await get_transaction(harness, admin, cash_in, "entries"))["entries"]
    assert await list_entries(harness, admin, cash_in) == [
        ("float", "wallet", "100.00", "400.00", "100.00"),
        ("commission_expense", "commission", entries[1]["amount"], None, None),
    ]
    assert {entries[0]["debit"]["holder_id"], entries[1]["credit"]["holder_id"]} == {agent}


async def test_held_and_declined_transactions_have_no_entries(
    harness: Harness, admin: BearerAuth
) -> None:
    sender, recipient = await harness.create_subscriber(), await harness.create_subscriber()
    await set_kyc_level(harness, sender["id"], 3)
    await set_kyc_level(harness, recipient["id"], 3)
    await harness.deposit(sender["id"], "2000000")
    held = await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, recipient, "600000")
    outcome = await submit_command(harness, chart.TRANSFER_P2P, sender, recipient, "1000001")
    assert outcome.code is not None and outcome.result is not None
    assert await list_entries(harness, admin, held) == []
    assert await list_entries(harness, admin, encode_transaction_id(outcome.result)) == []
    await decide_review(harness, held, release=True)
    assert await list_entries(harness, admin, held) == [
        ("wallet", "wallet", "600000.00", "1400000.00", "600000.00"),
        ("wallet", "fees", "3000.00", "1397000.00", None),
    ]


async def test_chain_links_a_payment_and_its_refunds(harness: Harness, admin: BearerAuth) -> None:
    payer = await harness.create_subscriber(balance="1000")
    merchant = await create_processor(harness)
    card = await harness.create_card(payer["id"])
    payment = await submit_and_get_id(harness, chart.POS_PAYMENT, card, merchant, "100")
    no_replays = {"count": 0, "last_at": None}
    assert await get_transaction(harness, admin, payment, "chain") == {
        "original": None,
        "refunds": [],
        "reversals": [],
        "replays": no_replays,
        "terminal_name": None,
    }
    refunds = [
        await submit_refund(harness, payment, merchant, "30"),
        await submit_refund(harness, payment, merchant, "20"),
    ]
    chain = await get_transaction(harness, admin, payment, "chain")
    assert chain["original"] is None
    assert [refund["id"] for refund in chain["refunds"]] == refunds
    assert chain["refunds"][0]["to"]["name"] == "Aminata Kamara"
    chain = await get_transaction(harness, admin, refunds[0], "chain")
    assert (chain["refunds"], chain["replays"]) == ([], no_replays)
    assert (chain["original"]["id"], chain["original"]["refunded_amount"]) == (payment, "50.00")


@pytest.mark.parametrize("part", ["entries", "chain"])
async def test_entries_and_chain_of_an_unknown_transaction_are_not_found(
    harness: Harness, admin: BearerAuth, part: str
) -> None:
    for name in ("x", "txn_x", ids.encode(ids.TRANSACTION, 1), "export"):
        response = await harness.get(f"{URL}/{name}/{part}", auth=admin)
        assert (response.status_code, response.json()["code"]) == (404, "TRANSACTION_NOT_FOUND")
