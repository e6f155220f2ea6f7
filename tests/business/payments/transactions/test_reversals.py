"""Reversals over HTTP: receipts, records, access, approvals, audit and events."""

from typing import Any

import httpx2
import pytest

from builders.approvals import approve, build_rule, set_rules
from builders.participants import cash_in, create_agent
from builders.recalls import send_p2p
from harness import BearerAuth, Harness

V1 = "/api/v1"


async def reverse(
    harness: Harness, transaction_id: str, auth: BearerAuth, **fields: Any
) -> httpx2.Response:
    body = {"reason": "Wrong account", "request_id": "r1", **fields}
    return await harness.post(f"{V1}/transactions/{transaction_id}/reverse", json=body, auth=auth)


async def get_record(harness: Harness, transaction_id: str, auth: BearerAuth) -> dict[str, Any]:
    return dict((await harness.get(f"{V1}/transactions/{transaction_id}", auth=auth)).json())


async def test_reversal_in_parts(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="1000")
    receiver = await harness.create_subscriber()
    finance = await harness.create_admin("F")
    transfer = await send_p2p(harness, sender, receiver)
    fee = (await get_record(harness, transfer, finance))["fee_amount"]

    first = await reverse(harness, transfer, finance, amount="40")
    assert first.status_code == 200, first.text
    receipt = first.json()
    assert receipt["status"] == "completed"
    assert (receipt["amount"], receipt["reversible_amount"]) == ("40.00 SLE", "60.00 SLE")
    record = await get_record(harness, transfer, finance)
    assert record["status"] == "partially_reversed"
    assert (record["reversed_amount"], record["refunded_amount"]) == ("40.00", "0.00")
    reversal = await get_record(harness, receipt["transaction_id"], finance)
    assert (reversal["type"], reversal["original_transaction_id"]) == ("reversal", transfer)
    assert (reversal["memo"], reversal["channel"]) == ("Wrong account", "admin")
    assert reversal["from"]["id"] == receiver["id"]
    assert reversal["to"]["id"] == sender["id"]

    replay = await reverse(harness, transfer, finance, amount="40")
    assert replay.headers["Idempotent-Replayed"] == "true"
    assert replay.json() == receipt

    last = await reverse(harness, transfer, finance, request_id="r2")
    assert last.json()["reversible_amount"] == "0.00 SLE"
    assert (await get_record(harness, transfer, finance))["status"] == "reversed"
    chain = (await harness.get(f"{V1}/transactions/{transfer}/chain", auth=finance)).json()
    assert [row["amount"] for row in chain["reversals"]] == ["40.00", "60.00"]
    assert chain["refunds"] == []
    returned = sum(float(row["fee_refunded"]) for row in chain["reversals"])
    assert returned == pytest.approx(float(fee))
    again = await reverse(harness, transfer, finance, request_id="r3")
    assert (again.status_code, again.json()["code"]) == (409, "NOT_REVERSIBLE")
    audit = await harness.list_audit_entries(transfer, "transaction.reversed")
    assert [entry["changes"]["reversed_amount"] for entry in audit][-1] == ["40.00", "100.00"]
    assert {entry["reason"] for entry in audit} == {"Wrong account"}


async def test_errors_name_the_code(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="1000")
    receiver, third = await harness.create_subscriber(), await harness.create_subscriber()
    finance = await harness.create_admin("F")
    transfer = await send_p2p(harness, sender, receiver)
    missing = await reverse(harness, "txn_0000000000000", finance)
    assert missing.json()["code"] == "TRANSACTION_NOT_FOUND"
    exceeding = await reverse(harness, transfer, finance, amount="100.01")
    assert exceeding.status_code == 422
    assert exceeding.json()["code"] == "REVERSAL_EXCEEDS_REMAINING"
    assert exceeding.json()["details"] == {"reversible_amount": "100.00"}
    body = {"reason": "Wrong account"}
    without_key = await harness.post(
        f"{V1}/transactions/{transfer}/reverse", json=body, auth=finance
    )
    assert without_key.status_code == 400
    await send_p2p(harness, receiver, third, "50")
    declined = await reverse(harness, transfer, finance)
    assert declined.status_code == 402
    assert declined.json()["code"] == "INSUFFICIENT_FUNDS"
    chain = (await harness.get(f"{V1}/transactions/{transfer}/chain", auth=finance)).json()
    assert [row["status"] for row in chain["reversals"]] == ["failed"]


async def test_commission_goes_back_in_proportion(harness: Harness) -> None:
    agent, subscriber = (
        await create_agent(harness, balance="1000"),
        await harness.create_subscriber(),
    )
    cashed = (await cash_in(harness, agent, subscriber, "400")).json()
    finance = await harness.create_admin("F")
    half = await reverse(harness, cashed["transaction_id"], finance, amount="200")
    assert half.json()["commission_reversed"] == "2.00 SLE"
    rest = await reverse(harness, cashed["transaction_id"], finance, request_id="r2")
    assert rest.json()["commission_reversed"] == "2.00 SLE"
    record = (await harness.get(f"{V1}/agents/{agent['id']}/balance", auth=finance)).json()
    assert record["commission_balance"] == "0.00"


async def test_preview_says_what_would_go_back(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="1000")
    receiver = await harness.create_subscriber()
    finance = await harness.create_admin("F")
    transfer = await send_p2p(harness, sender, receiver)
    url = f"{V1}/transactions/{transfer}/reversal-preview"
    preview = (await harness.get(f"{url}?amount=40", auth=finance)).json()
    assert preview["allowed"] is True
    assert (preview["amount"], preview["reversible_amount"]) == ("40.00", "60.00")
    assert preview["daily_limit_restored"] == preview["monthly_limit_restored"] == "40.00"
    receipt = (await reverse(harness, transfer, finance, amount="40")).json()
    assert receipt["fee_reversed"] == f"{preview['fee_reversed']} SLE"
    await reverse(harness, transfer, finance, request_id="r2")
    preview = (await harness.get(url, auth=finance)).json()
    assert (preview["allowed"], preview["reason"]) == (False, "NOT_REVERSIBLE")


async def test_restricted_party_needs_a_verified_code(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="1000")
    receiver = await harness.create_subscriber()
    transfer = await send_p2p(harness, sender, receiver)
    compliance = await harness.create_admin("C")
    url = f"{V1}/subscribers/{receiver['id']}"
    assert (await harness.client.put(url, json={"restricted": True}, auth=compliance)).is_success
    finance = await harness.create_admin("F")
    rejected = await reverse(harness, transfer, finance)
    assert (rejected.status_code, rejected.json()["code"]) == (403, "OTP_REQUIRED")


async def test_approval_rule_holds_a_reversal(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="1000")
    receiver = await harness.create_subscriber()
    transfer = await send_p2p(harness, sender, receiver)
    await set_rules(harness, build_rule("reversals", above="30"))
    finance = await harness.create_admin("F")
    assert (await reverse(harness, transfer, finance, amount="30")).status_code == 200
    held = await reverse(harness, transfer, finance, amount="1", request_id="r2")
    assert held.status_code == 202, held.text
    executed = await approve(harness, held.json()["approval"])
    assert executed["status"] == "executed"
    record = await get_record(harness, transfer, finance)
    assert record["reversed_amount"] == "31.00"


async def test_lists_exports_and_statements_show_reversals(harness: Harness) -> None:
    sender = await harness.create_subscriber(balance="1000")
    receiver = await harness.create_subscriber()
    finance = await harness.create_admin("F")
    transfer = await send_p2p(harness, sender, receiver)
    await reverse(harness, transfer, finance)
    url = f"{V1}/transactions?user_id={sender['id']}"
    rows = (await harness.get(f"{url}&type=reversal", auth=finance)).json()["data"]
    assert [(row["direction"], row["amount"]) for row in rows] == [("credit", "100.00")]
    rows = (await harness.get(f"{url}&status=reversed", auth=finance)).json()["data"]
    assert [row["id"] for row in rows] == [transfer]
    export = await harness.get(
        f"{V1}/transactions/export?user_id={sender['id']}&type=transfer_p2p", auth=finance
    )
    header, line = (text.split(",") for text in export.text.strip().splitlines()[:2])
    assert line[header.index("reversed_amount")] == "100.00"
    today = harness.services.clock().date().isoformat()
    statement = {
        "subscriber_id": sender["id"], "format": "csv", "from_date": today, "to_date": today,
    }  # fmt: skip
    created = await harness.post(f"{V1}/wallet/account-statement", json=statement, auth=finance)
    link = created.json()["statement_url"].partition("/api/")[2]
    file = await harness.get(f"/api/{link}")
    assert "Reversal, returned by" in file.text
