"""Rules for refunds, reversals and transfers apply to other operations with the same effect."""

from typing import Any

from builders.approvals import approve, build_rule, require_held, set_rules
from builders.batches import change_batch, create_draft
from builders.disputes import create_driver
from builders.recalls import recall, send_p2p
from harness import Harness

ACCEPT = {"text": "The merchant agreed by phone", "accept": True}
REFUND = {"decision": "refund", "reason": "Not delivered"}
V1 = "/api/v1"


async def test_support_accepts_a_dispute_only_with_an_approval(harness: Harness) -> None:
    """Support opens and accepts disputes, so it could otherwise refund any payment alone."""
    driver, support = await create_driver(harness), await harness.create_admin("S")
    payment = await driver.create_payment("80.00")
    dispute = (await driver.dispute(payment, auth=support)).json()
    held = require_held(await driver.act(dispute, "respond", auth=support, **ACCEPT))
    assert (held["operation"], held["amount"]) == ("refunds", "80.00")
    assert (await driver.get(dispute))["status"] == "open"
    assert await driver.count_refunds(payment) == (0, 0)
    answered = await driver.act(dispute, "respond", auth=support, text="Sent on Monday")
    assert answered.json()["status"] == "answered"  # moves no money
    executed = await approve(harness, held, await harness.create_admin("F"))
    assert (executed["status"], executed["code"]) == ("executed", None)
    assert (await driver.get(dispute))["status"] == "refunded"
    assert await driver.count_refunds(payment) == (1, 8000)


async def test_rule_for_refunds_guards_decisions_on_disputes(harness: Harness) -> None:
    await set_rules(harness, build_rule("refunds", above="50.00"))
    driver, compliance = await create_driver(harness), await harness.create_admin("C")
    small, large, kept = [await driver.create_dispute(amount) for amount in ("40", "60", "60")]
    decided = await driver.act(small, "decide", auth=compliance, **REFUND)
    assert decided.json()["status"] == "refunded"
    held = require_held(await driver.act(large, "decide", auth=compliance, **REFUND))
    rejected = await driver.act(kept, "decide", auth=compliance, decision="reject", reason="Signed")
    assert rejected.json()["status"] == "rejected"
    assert await driver.count_refunds(large["transaction_id"]) == (0, 0)
    assert (await approve(harness, held, await harness.create_admin("F")))["status"] == "executed"
    assert await driver.count_refunds(large["transaction_id"]) == (1, 6000)


async def test_merchant_accepts_disputes_without_an_approval(harness: Harness) -> None:
    await set_rules(harness, build_rule("refunds"))
    driver = await create_driver(harness)
    dispute = await driver.create_dispute("80.00")
    accepted = await driver.act(dispute, "respond", **ACCEPT)
    assert (accepted.status_code, accepted.json()["status"]) == (200, "refunded")


async def test_approved_refund_of_a_decided_dispute_fails(harness: Harness) -> None:
    await set_rules(harness, build_rule("refunds"))
    driver = await create_driver(harness)
    dispute = await driver.create_dispute("80.00")
    compliance = await harness.create_admin("C")
    held = require_held(await driver.act(dispute, "decide", auth=compliance, **REFUND))
    await driver.act(dispute, "respond", **ACCEPT)
    executed = await approve(harness, held, await harness.create_admin("F"))
    assert (executed["status"], executed["code"]) == ("failed", "DISPUTE_NOT_OPEN")
    assert await driver.count_refunds(dispute["transaction_id"]) == (1, 8000)


async def test_rule_for_reversals_guards_the_return_of_recalled_money(harness: Harness) -> None:
    await set_rules(harness, build_rule("reversals"))
    sender = await harness.create_subscriber(balance="1000")
    receivers = [await harness.create_subscriber() for _ in range(2)]
    transfers = [await send_p2p(harness, sender, receiver) for receiver in receivers]
    kept, returned = [(await recall(harness, transfer)).json() for transfer in transfers]
    compliance = await harness.create_admin("C")

    async def decide(record: dict[str, Any], decision: str) -> Any:
        return await harness.post(
            f"{V1}/recalls/{record['id']}/decide",
            json={"decision": decision, "reason": "Wrong number"},
            auth=compliance,
        )

    async def get(path: str) -> Any:
        return (await harness.get(f"{V1}/{path}", auth=compliance)).json()

    assert (await decide(kept, "release")).json()["status"] == "decided"
    held = require_held(await decide(returned, "return"))
    assert (held["operation"], held["amount"]) == ("reversals", returned["held_amount"])
    assert (await get(f"recalls/{returned['id']}"))["status"] == "open"
    executed = await approve(harness, held, await harness.create_admin("F"))
    assert (executed["status"], executed["code"]) == ("executed", None)
    assert (await get(f"recalls/{returned['id']}"))["status"] == "decided"
    assert (await get(f"balance/{receivers[1]['id']}"))["held"] == "0.00"


async def test_rule_for_transfers_guards_batches(harness: Harness) -> None:
    """A batch of one line would otherwise be a transfer without an approval."""
    await set_rules(harness, build_rule("wallet_transfer", above="100.00"))
    maker, approver = await harness.create_admin("F"), await harness.create_admin("F")
    customer = await harness.create_subscriber()

    async def run(amount: str, reference: str) -> Any:
        batch_id = await create_draft(harness, [(customer["phone_number"], amount, reference)])
        validated = await change_batch(harness, batch_id, "validate", maker)
        assert validated.json()["valid"] == 1, validated.text
        return await change_batch(harness, batch_id, "run", maker)

    assert (await run("60.00", "May")).json()["status"] == "running"
    held = require_held(await run("60.00", "June"))  # 120.00 within a day
    assert (held["operation"], held["amount"]) == ("wallet_transfer", "60.00")
    executed = await approve(harness, held, approver)
    assert (executed["status"], executed["code"]) == ("executed", None)
