"""Transaction records: fields, and their visibility per caller."""

from itertools import pairwise
from typing import Any

from builders.payments import (
    create_agent,
    create_partner,
    create_processor,
    decide_review,
    encode_transaction_id,
    set_kyc_level,
    submit_and_get_id,
    submit_command,
    submit_refund,
    update_rule,
)
from drivers.csv_files import read_records
from harness import Harness
from tapgate.business.payments.transactions import queries
from tapgate.business.payments.transactions.model import TransactionRecord, calculate_approval_code
from tapgate.events.webhooks.event_data import build_event_data
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import ScopedIdempotencyKey
from tapgate_client import ids

URL = "/api/v1/transactions"


async def get_transaction(
    harness: Harness, transaction_id: str, caller: Any = None
) -> dict[str, Any]:
    response = await harness.get(
        f"{URL}/{transaction_id}", auth=caller or await harness.create_api_key("payments:read")
    )
    assert response.status_code == 200, response.text
    record: dict[str, Any] = response.json()
    return record


async def list_transactions(
    harness: Harness, caller: Any = None, **filters: str
) -> list[dict[str, Any]]:
    response = await harness.get(
        URL, params=filters, auth=caller or await harness.create_api_key("payments:read")
    )
    assert response.status_code == 200, response.text
    records: list[dict[str, Any]] = response.json()["data"]
    return records


async def test_payment_record_has_all_fields(harness: Harness) -> None:
    payer = await harness.create_subscriber(balance="1000")
    merchant = await create_processor(harness)
    card = await harness.create_card(payer["id"])
    context = {
        "terminal_id": "ter_0000000000001",
        "merchant_id": "M-1",
        "merchant_name": "Kamara Stores",
        "transaction_ref": "A-17",
        "metadata": {"order": "A-17"},
    }
    request = ScopedIdempotencyKey("test", "first", b"")
    paid = await submit_and_get_id(
        harness,
        chart.POS_PAYMENT,
        card,
        merchant,
        "100",
        context=context,
        idempotency_key=request,
        channel="pos",
    )
    record = await get_transaction(harness, paid)
    created_at = record.pop("created_at")
    assert record.pop("completed_at") == created_at
    assert record == {
        "id": paid,
        "type": "pos_payment",
        "status": "completed",
        "amount": "100.00",
        "fee_amount": "1.00",
        "fee_payer": "receiver",
        "fee_refunded": "0.00",
        "currency": "SLE",
        "from": {
            "type": "subscriber",
            "id": payer["id"],
            "name": "Aminata K.",
            "card_serial": card,
        },
        "to": {"type": "processor", "id": merchant, "name": "Kamara Public", "card_serial": None},
        "book": None,
        "direction": None,
        "balance_after": None,
        "card_serial": card,
        "processor_id": merchant,
        **context,
        "approval_code": calculate_approval_code(ids.decode(ids.TRANSACTION, paid) or 0),
        "original_transaction_id": None,
        "refunded_amount": "0.00",
        "reversed_amount": "0.00",
        "request_id": "first",
        "approval_id": None,
        "reference": None,
        "failure_code": None,
        "memo": None,
        "channel": "pos",
    }


async def test_refund_record_references_the_original_payment(harness: Harness) -> None:
    payer = await harness.create_subscriber(balance="1000")
    merchant = await create_processor(harness)
    card = await harness.create_card(payer["id"])
    payment = await submit_and_get_id(harness, chart.POS_PAYMENT, card, merchant, "100")
    refund = await get_transaction(harness, await submit_refund(harness, payment, merchant, "40"))
    assert refund["original_transaction_id"] == payment
    assert (refund["processor_id"], refund["approval_code"]) == (merchant, None)
    assert (refund["from"]["id"], refund["to"]["id"]) == (merchant, payer["id"])
    original = await get_transaction(harness, payment)
    assert (original["status"], original["refunded_amount"]) == ("partially_refunded", "40.00")


async def test_only_admins_see_full_names_and_failure_details(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="10")
    recipient = await harness.create_subscriber()
    outcome = await submit_command(harness, chart.TRANSFER_P2P, sender, recipient, "100")
    assert outcome.result is not None
    declined = encode_transaction_id(outcome.result)
    non_admins = (await harness.create_api_key("payments:read"), harness.get_service_auth())
    for caller in (*non_admins, await harness.create_admin("S")):
        record = await get_transaction(harness, declined, caller)
        assert (record["status"], record["failure_code"]) == ("failed", "INSUFFICIENT_FUNDS")
        assert record["completed_at"] is None
        if caller in non_admins:
            assert record["from"]["name"] == record["to"]["name"] == "Aminata K."
            assert "failure_details" not in record
        else:
            assert record["from"]["name"] == record["to"]["name"] == "Aminata Kamara"
            assert record["failure_details"] == {"available": "10.00", "required": "101.50"}


async def test_payment_with_an_unlinked_card_has_no_payer(harness: Harness) -> None:
    merchant, card = await create_processor(harness), "TAP-UNLINKED"
    await harness.database.execute(
        """INSERT INTO cards (id, serial, status, created_at, updated_at)
           VALUES ($1, $2, 'UNASSIGNED', now(), now())""",
        harness.services.new_id(),
        card,
    )
    outcome = await submit_command(harness, chart.POS_PAYMENT, card, merchant, "100")
    assert outcome.result is not None
    record = await get_transaction(harness, encode_transaction_id(outcome.result))
    assert (record["from"], record["card_serial"]) == (None, card)
    assert (record["failure_code"], record["approval_code"]) == ("CARD_NOT_ACTIVE", None)
    found = [listed["id"] for listed in await list_transactions(harness, card_serial=card)]
    assert found == [record["id"]]
    owner = await harness.create_subscriber()
    await harness.database.execute(
        """UPDATE cards SET status = 'ACTIVE', subscriber_id = $2, account_id = $3
           WHERE serial = $1""",
        card,
        ids.decode(ids.SUBSCRIBER, owner["id"]),
        ids.decode(ids.ACCOUNT, owner["account_id"]),
    )
    found = [listed["id"] for listed in await list_transactions(harness, card_serial=card)]
    assert found == [record["id"]]


async def test_record_names_the_type_of_each_party(harness: Harness) -> None:
    subscriber, partner = await harness.create_subscriber(), await create_partner(harness)
    agent, merchant = await create_agent(harness), await create_processor(harness)
    deposit = await submit_and_get_id(harness, chart.PARTNER_DEPOSIT, "cash", partner, "500")
    top_up = await submit_and_get_id(harness, chart.PARTNER_FUND, partner, subscriber, "100")
    agent_fund = await submit_and_get_id(harness, chart.AGENT_FUND, "cash", agent, "500")
    card = await harness.create_card(subscriber["id"])
    payment = await submit_and_get_id(harness, chart.ONLINE_PAYMENT, card, merchant, "10")
    party_types = {}
    for transaction in (deposit, top_up, agent_fund, payment):
        record = await get_transaction(harness, transaction)
        party_types[transaction] = (record["from"]["type"], record["to"]["type"])
    assert party_types == {
        deposit: ("platform", "partner"),
        top_up: ("partner", "subscriber"),
        agent_fund: ("platform", "agent"),
        payment: ("subscriber", "processor"),
    }
    platform = (await get_transaction(harness, deposit))["from"]
    assert platform["id"].startswith("acc_")
    assert (await get_transaction(harness, payment))["approval_code"] is not None


async def test_user_list_has_direction_and_balance_after(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="1000")
    recipient = await harness.create_subscriber(balance="50")
    sent = await submit_and_get_id(
        harness, chart.TRANSFER_P2P, sender, await harness.create_card(recipient["id"]), "100"
    )
    newest = (await list_transactions(harness, user_id=sender["id"]))[0]
    assert (newest["id"], newest["direction"], newest["balance_after"]) == (sent, "debit", "898.50")
    newest, oldest = await list_transactions(harness, user_id=recipient["id"])
    assert (newest["id"], newest["direction"], newest["balance_after"]) == (
        sent,
        "credit",
        "150.00",
    )
    assert (oldest["direction"], oldest["balance_after"]) == ("credit", "50.00")
    declined = await submit_command(harness, chart.TRANSFER_P2P, sender, recipient, "5000")
    assert declined.result is not None
    newest = (await list_transactions(harness, user_id=sender["id"]))[0]
    assert (newest["id"], newest["direction"]) == (encode_transaction_id(declined.result), "debit")
    assert newest["balance_after"] is None


async def test_held_transaction_has_no_balance_after(harness: Harness) -> None:
    sender, recipient = await harness.create_subscriber(), await harness.create_subscriber()
    for subscriber in (sender, recipient):
        await set_kyc_level(harness, subscriber["id"], 3)
    await harness.deposit(sender["id"], "900000")
    held = await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, recipient, "600000")
    newest = (await list_transactions(harness, user_id=sender["id"]))[0]
    assert (newest["status"], newest["balance_after"]) == ("under_review", None)
    assert newest["completed_at"] is None and newest["fee_payer"] == "sender"
    await decide_review(harness, held, release=True)
    newest = (await list_transactions(harness, user_id=sender["id"]))[0]
    assert (newest["status"], newest["balance_after"]) == ("completed", "297000.00")
    assert newest["fee_payer"] == "sender"
    assert newest["completed_at"] > newest["created_at"]


async def test_fee_of_a_rejected_held_transaction_is_zero_in_every_record(
    harness: Harness,
) -> None:
    await update_rule(harness, "Large amount", threshold="1000")
    sender = await harness.create_subscriber(balance="9000")
    recipient = await harness.create_subscriber()
    held = await submit_and_get_id(harness, chart.TRANSFER_P2P, sender, recipient, "2000")
    assert (await get_transaction(harness, held))["fee_amount"] == "30.00"
    await decide_review(harness, held, release=False)
    declined = await submit_command(harness, chart.TRANSFER_P2P, sender, recipient, "20000")
    assert declined.result is not None
    key = await harness.create_api_key("payments:read")
    exported = await harness.get(f"{URL}/export", params={"user_id": sender["id"]}, auth=key)
    rows = read_records(exported.content)
    records = await list_transactions(harness, user_id=sender["id"])
    for lines in (rows, records):
        assert [line["fee_amount"] for line in lines[:2]] == ["0.00", "0.00"]
    assert [record["fee_payer"] for record in records[:2]] == [None, None]
    assert (await get_transaction(harness, held))["fee_amount"] == "0.00"
    event_data = build_event_data("transaction.failed", await _load_record(harness, held))
    assert event_data["fee_amount"] == "0.00"


async def test_payment_under_review_has_no_approval_code(harness: Harness) -> None:
    payer, merchant = await harness.create_subscriber(), await create_processor(harness)
    await set_kyc_level(harness, payer["id"], 3)
    await harness.deposit(payer["id"], "900000")
    card = await harness.create_card(payer["id"])
    held = await submit_and_get_id(harness, chart.POS_PAYMENT, card, merchant, "600000")
    record = await get_transaction(harness, held)
    assert (record["status"], record["approval_code"]) == ("under_review", None)
    await decide_review(harness, held, release=True)
    record = await get_transaction(harness, held)
    expected = calculate_approval_code(ids.decode(ids.TRANSACTION, held) or 0)
    assert record["approval_code"] == expected
    event_data = build_event_data("transaction.under_review", await _load_record(harness, held))
    assert (event_data["status"], event_data["approval_code"]) == ("under_review", None)


async def test_agent_list_covers_float_and_commission_and_lists_a_payout_once(
    harness: Harness,
) -> None:
    agent, subscriber = await create_agent(harness), await harness.create_subscriber()
    agent_id = ids.decode(ids.AGENT, agent) or 0
    await submit_and_get_id(harness, chart.AGENT_FUND, "cash", agent, "500")
    cash_in = await submit_and_get_id(harness, chart.AGENT_CASHIN, agent, subscriber, "100")
    payout = await submit_and_get_id(
        harness, chart.COMMISSION_PAYOUT, commands.commission_party(agent_id), agent, "1"
    )
    records = await list_transactions(harness, user_id=agent)
    assert [(record["id"], record["direction"], record["balance_after"]) for record in records] == [
        (payout, "credit", "401.00"),
        (cash_in, "debit", "400.00"),
        (records[2]["id"], "credit", "500.00"),
    ]
    assert records[0]["from"]["id"] == records[0]["to"]["id"] == agent


async def test_processor_list_abbreviates_names_for_every_caller(harness: Harness) -> None:
    payer = await harness.create_subscriber(balance="1000")
    merchant = await create_processor(harness)
    card = await harness.create_card(payer["id"])
    payment = await submit_and_get_id(harness, chart.POS_PAYMENT, card, merchant, "100")
    await submit_command(harness, chart.POS_PAYMENT, card, merchant, "5000")
    url = f"/api/v1/processors/{merchant}/transactions"
    for caller in (await harness.create_admin("A"), await harness.create_api_key("payments:read")):
        failed, completed = (await harness.get(url, auth=caller)).json()["data"]
        assert failed["failure_code"] == "INSUFFICIENT_FUNDS"
        assert "failure_details" not in failed
        assert (completed["id"], completed["from"]["name"]) == (payment, "Aminata K.")
        assert (completed["direction"], completed["balance_after"]) == ("credit", "99.00")
    admin, other_subscriber = await harness.create_admin("F"), await harness.create_subscriber()

    async def list_ids(**filters: str) -> list[str]:
        response = await harness.get(url, params=filters, auth=admin)
        return [record["id"] for record in response.json()["data"]]

    assert await list_ids(status="completed") == [payment]
    assert await list_ids(user_id=payer["id"], type="pos_payment", status="completed") == [payment]
    assert await list_ids(user_id=other_subscriber["id"]) == []
    assert await list_ids(card_serial=card, status="completed") == [payment]
    assert await list_ids(card_serial="TAP-NOBODY") == []


async def test_unknown_transaction_and_processor_ids_are_not_found(harness: Harness) -> None:
    key = await harness.create_api_key("payments:read")
    for missing in ("txn_0000000000001", "sub_0000000000001", "x"):
        response = await harness.get(f"{URL}/{missing}", auth=key)
        assert (response.status_code, response.json()["code"]) == (404, "TRANSACTION_NOT_FOUND")
    subscriber = await harness.create_subscriber()
    for missing in ("prc_0000000000001", subscriber["id"], "prc_", "x"):
        response = await harness.get(f"/api/v1/processors/{missing}/transactions", auth=key)
        assert (response.status_code, response.json()["code"]) == (404, "PROCESSOR_NOT_FOUND")


async def test_record_for_third_parties_has_abbreviated_names(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="500")
    recipient = await harness.create_subscriber()
    sent = await submit_and_get_id(
        harness, chart.TRANSFER_P2P, sender, recipient, "100", context={"memo": "School fees"}
    )
    record = await _load_record(harness, sent)
    assert record.from_ is not None
    assert (record.id, record.from_.name, record.memo) == (sent, "Aminata K.", "School fees")


def test_approval_codes_of_consecutive_ids_differ() -> None:
    start = 1 << 58
    codes = [calculate_approval_code(start + step * 4096 ** (step % 2)) for step in range(2000)]
    assert len(set(codes)) == len(codes)
    assert {len(code) for code in codes} == {6}
    assert set("".join(codes)) == set("ABCDEFGHJKLMNPQRSTUVWXYZ23456789")
    matching_characters = [
        sum(a == b for a, b in zip(*pair, strict=True)) for pair in pairwise(codes)
    ]
    assert max(matching_characters) <= 4
    assert calculate_approval_code(start) == calculate_approval_code(start)


async def _load_record(harness: Harness, public_id: str) -> TransactionRecord:
    transaction_id = ids.decode(ids.TRANSACTION, public_id) or 0
    return (await queries.load_records(harness.services, [transaction_id]))[transaction_id]
