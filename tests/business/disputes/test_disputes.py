"""Disputes: cardholders contest payments, merchants answer, compliance decides."""

import pytest

from builders.disputes import DISPUTES_URL, create_driver
from builders.payments import list_events, new_request_id, subscribe_to_events
from cases import each
from harness import Harness, parse_error
from tapgate_client import ids


async def test_dispute_opens_with_a_due_date_and_tells_the_cardholder(harness: Harness) -> None:
    await subscribe_to_events(harness)
    driver = await create_driver(harness)
    transaction_id = await driver.create_payment("80.00")
    response = await driver.dispute(transaction_id, description="Nothing came")
    assert response.status_code == 201
    record = response.json()
    assert record["id"].startswith("dsp_")
    assert record["transaction_id"] == transaction_id
    assert record["subscriber_id"] == driver.customer["id"]
    assert record["processor_id"] == await harness.get_processor_id(driver.merchant_auth)
    assert (record["amount"], record["status"], record["overdue"]) == ("80.00", "open", False)
    assert record["description"] == "Nothing came"
    assert record["merchant_response"] is record["decision_reason"] is None
    assert record["due_at"][:10] > record["created_at"][:10]
    customer = driver.customer
    name = f"{customer['first_name']} {customer['last_name']}"
    assert await driver.get(record) == {**record, "subscriber_name": name}
    assert [event["id"] for event in await list_events(harness, "dispute.created")] == [
        record["id"]
    ]
    assert len(await driver.list_messages()) == 1


async def test_repeated_request_returns_the_same_dispute(harness: Harness) -> None:
    driver = await create_driver(harness)
    transaction_id = await driver.create_payment()
    key = new_request_id()
    first = await driver.dispute(transaction_id, request_id=key)
    again = await driver.dispute(transaction_id, request_id=key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    unknown_id = transaction_id[:-1] + ("1" if transaction_id[-1] != "1" else "2")
    for change in ({"reason": "other"}, {"transaction_id": unknown_id}):
        other = await driver.dispute(**{"transaction_id": transaction_id, **change}, request_id=key)
        assert parse_error(other) == (409, "DUPLICATE_REQUEST"), change
    second = await driver.dispute(transaction_id)
    assert parse_error(second) == (409, "ALREADY_DISPUTED")
    assert len(await driver.list_messages()) == 1


async def test_request_without_idempotency_key_is_rejected(harness: Harness) -> None:
    driver = await create_driver(harness)
    response = await driver.dispute(await driver.create_payment(), request_id=None)
    assert parse_error(response) == (400, "INVALID_REQUEST")


async def test_only_recent_completed_card_payments_can_be_disputed(harness: Harness) -> None:
    driver = await create_driver(harness)
    online = await driver.create_payment(url="/api/v1/payment")
    assert (await driver.dispute(online)).status_code == 201
    missing = await driver.dispute("txn_0800000000000")
    assert parse_error(missing) == (404, "TRANSACTION_NOT_FOUND")
    deposit = await harness.database.fetchval("SELECT min(id) FROM transactions")
    response = await driver.dispute(ids.encode(ids.TRANSACTION, deposit))
    assert parse_error(response) == (409, "NOT_DISPUTABLE")
    refunded = await driver.create_payment("10.00")
    await driver.refund(refunded)
    assert parse_error(await driver.dispute(refunded)) == (409, "NOT_DISPUTABLE")
    old = await driver.create_payment("10.00")
    harness.advance_clock(days=60)
    assert parse_error(await driver.dispute(old)) == (409, "NOT_DISPUTABLE")


async def test_amount_may_be_a_part_of_the_payment_and_not_more(harness: Harness) -> None:
    driver = await create_driver(harness)
    transaction_id = await driver.create_payment("80.00")
    too_much = await driver.dispute(transaction_id, amount="80.01")
    assert parse_error(too_much) == (422, "VALIDATION_FAILED")
    assert "amount" in too_much.json()["details"]["fields"]
    part = await driver.dispute(transaction_id, amount="30.00")
    assert part.json()["amount"] == "30.00"
    decided = await driver.act(part.json(), "decide", decision="refund", reason="Not delivered")
    assert decided.json()["status"] == "refunded"
    assert await driver.count_refunds(transaction_id) == (1, 3000)


async def test_merchant_response_is_replaced_until_the_decision(harness: Harness) -> None:
    await subscribe_to_events(harness)
    driver = await create_driver(harness)
    dispute = await driver.create_dispute()
    answered = await driver.act(dispute, "respond", text="Sent on Monday")
    assert (answered.json()["status"], answered.json()["merchant_response"]) == (
        "answered",
        "Sent on Monday",
    )
    support = await harness.create_admin("S")
    again = await driver.act(dispute, "respond", auth=support, text="Sent on Tuesday")
    assert again.json()["merchant_response"] == "Sent on Tuesday"
    compliance = await harness.create_admin("C")
    decided = await driver.act(
        dispute, "decide", auth=compliance, decision="reject", reason="Signed receipt"
    )
    assert decided.json()["status"] == "rejected"
    assert decided.json()["decision_reason"] == "Signed receipt"
    late = await driver.act(dispute, "respond", text="Sent")
    assert parse_error(late) == (409, "DISPUTE_NOT_OPEN")
    assert len(await list_events(harness, "dispute.answered")) == 2
    assert len(await list_events(harness, "dispute.decided")) == 1
    texts = await driver.list_messages()
    assert len(texts) == 4
    assert "Sent on Monday" in texts[1]
    assert "Signed receipt" in texts[3]
    assert await driver.count_refunds(dispute["transaction_id"]) == (0, 0)


async def test_acceptance_refunds_at_once(harness: Harness) -> None:
    driver = await create_driver(harness)
    dispute = await driver.create_dispute("100.00")
    before = await driver.get_balance()
    accepted = await driver.act(dispute, "respond", text="Sorry", accept=True)
    assert accepted.status_code == 200, accepted.text
    assert (accepted.json()["status"], accepted.json()["merchant_response"]) == (
        "refunded",
        "Sorry",
    )
    assert await driver.get_balance() == before + 10_000
    payment = await harness.get(
        f"/api/v1/transactions/{dispute['transaction_id']}", auth=await harness.create_admin()
    )
    assert payment.json()["status"] == "refunded"


async def test_refund_by_decision_is_at_most_what_remains(harness: Harness) -> None:
    driver = await create_driver(harness)
    dispute = await driver.create_dispute("100.00")
    await driver.refund(dispute["transaction_id"], "70.00")
    decided = await driver.act(dispute, "decide", decision="refund", reason="Not delivered")
    assert decided.status_code == 200, decided.text
    assert await driver.count_refunds(dispute["transaction_id"]) == (2, 10_000)


@each("verb", ["respond", "decide"])
async def test_dispute_of_a_refunded_payment_ends_as_refunded(harness: Harness, verb: str) -> None:
    driver = await create_driver(harness)
    dispute = await driver.create_dispute("100.00")
    await driver.refund(dispute["transaction_id"])
    bodies = {
        "respond": {"text": "Already returned", "accept": True},
        "decide": {"decision": "refund", "reason": "Already returned"},
    }
    response = await driver.act(dispute, verb, **bodies[verb])
    assert parse_error(response) == (409, "ALREADY_REFUNDED")
    assert (await driver.get(dispute))["status"] == "refunded"
    assert (await driver.count_refunds(dispute["transaction_id"]))[0] == 1


@each("verb", ["respond", "decide"])
async def test_merchant_without_money_leaves_the_state_unchanged(
    harness: Harness, verb: str
) -> None:
    driver = await create_driver(harness)
    dispute = await driver.create_dispute()
    await driver.empty_merchant()
    bodies = {
        "respond": {"text": "Sorry", "accept": True},
        "decide": {"decision": "refund", "reason": "Not delivered"},
    }
    response = await driver.act(dispute, verb, **bodies[verb])
    assert parse_error(response) == (402, "INSUFFICIENT_FUNDS")
    unchanged = await driver.get(dispute)
    assert (unchanged["status"], unchanged["merchant_response"]) == ("open", None)
    await harness.database.execute("UPDATE accounts SET balance = 100000 WHERE kind = 'settlement'")
    assert (await driver.act(dispute, verb, **bodies[verb])).status_code == 200


async def test_withdrawn_dispute_cannot_be_decided_or_opened_again(harness: Harness) -> None:
    driver = await create_driver(harness)
    dispute = await driver.create_dispute()
    withdrawn = await driver.act(dispute, "withdraw", auth=harness.get_service_auth())
    assert withdrawn.json()["status"] == "withdrawn"
    for verb, body in (
        ("withdraw", {}),
        ("decide", {"decision": "refund", "reason": "x"}),
        ("decide", {"decision": "reject", "reason": "x"}),
        ("respond", {"text": "x", "accept": True}),
    ):
        assert parse_error(await driver.act(dispute, verb, **body)) == (409, "DISPUTE_NOT_OPEN")
    again = await driver.dispute(dispute["transaction_id"])
    assert parse_error(again) == (409, "ALREADY_DISPUTED")


async def test_processor_sees_and_answers_only_its_own_disputes(harness: Harness) -> None:
    driver, other = await create_driver(harness), await create_driver(harness)
    dispute, foreign = await driver.create_dispute(), await other.create_dispute()
    listed = await harness.get(DISPUTES_URL, auth=driver.merchant_auth)
    assert [item["id"] for item in listed.json()["data"]] == [dispute["id"]]
    assert "subscriber_name" not in listed.json()["data"][0]
    response = await harness.get(f"{DISPUTES_URL}/{foreign['id']}", auth=driver.merchant_auth)
    assert parse_error(response) == (404, "DISPUTE_NOT_FOUND")
    response = await driver.act(foreign, "respond", text="Not mine", accept=True)
    assert parse_error(response) == (404, "DISPUTE_NOT_FOUND")
    assert (await driver.get(foreign))["status"] == "open"
    response = await driver.act(dispute, "decide", auth=driver.merchant_auth, decision="reject")
    assert parse_error(response) == (403, "FORBIDDEN")


async def test_overdue_disputes_are_listed_and_counted(harness: Harness) -> None:
    driver = await create_driver(harness)
    late = await driver.create_dispute("10.00")
    harness.advance_clock(days=7, seconds=1)
    fresh = await driver.create_dispute("10.00")
    admin = await harness.create_admin("S")

    async def list_ids(**query: str) -> list[str]:
        response = await harness.get(DISPUTES_URL, params=query, auth=admin)
        return [item["id"] for item in response.json()["data"]]

    assert await list_ids(overdue="true") == [late["id"]]
    assert await list_ids(overdue="false") == [fresh["id"]]
    assert await list_ids(order="oldest") == [late["id"], fresh["id"]]
    assert await list_ids(status="answered") == []
    assert await list_ids(subscriber_id=driver.customer["id"]) == [fresh["id"], late["id"]]
    assert (await driver.get(late))["overdue"] is True
    queues = await harness.get("/api/v1/work-queues?fresh=true", auth=admin)
    counts = {queue["name"]: queue for queue in queues.json()["data"]}
    assert counts["disputes"]["waiting"] == 2
    assert counts["disputes"]["oldest_at"] == late["created_at"]


async def test_name_and_texts_of_a_restricted_cardholder_are_masked(harness: Harness) -> None:
    driver = await create_driver(harness)
    dispute = await driver.create_dispute(description="My surgery")
    await harness.put(
        f"/api/v1/subscribers/{driver.customer['id']}",
        json={"restricted": True},
        auth=await harness.create_admin("C"),
    )
    listed = (await harness.get(DISPUTES_URL, auth=await harness.create_admin("F"))).json()
    for masked in (await driver.get(dispute), *listed["data"]):
        assert (masked["masked"], masked["description"]) == (True, None)
        assert masked["subscriber_name"] is None
    assert listed["masked"] is True
    full = await driver.get(dispute, auth=harness.get_service_auth())
    assert full["description"] == "My surgery"
    another = await driver.create_payment("5.00")
    response = await driver.dispute(another, auth=await harness.create_admin("S"))
    assert parse_error(response) == (403, "OTP_REQUIRED")


@pytest.mark.parametrize("text", ["", "x" * 501])
async def test_invalid_response_names_the_field(harness: Harness, text: str) -> None:
    driver = await create_driver(harness)
    response = await driver.act(await driver.create_dispute(), "respond", text=text)
    assert parse_error(response) == (422, "VALIDATION_FAILED")
    assert "text" in response.json()["details"]["fields"]
