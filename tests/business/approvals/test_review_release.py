"""Who asked for a transaction cannot release it, with or without an approval rule."""

from typing import Any

import pytest

from builders.approvals import (
    V1,
    GuardedRecords,
    approve,
    build_rule,
    decide,
    require_held,
    set_email,
    set_rules,
)
from builders.payments import (
    PosDriver,
    decode_id,
    get_transaction_status,
    list_alerts,
    update_rule,
)
from harness import PIN, BearerAuth, Harness, HmacAuth, parse_error
from tapgate.ledger.commands import ReviewDecision

RELEASE = {"status": "resolved", "resolution_notes": "OK", "transaction_decision": "release"}

PROCESSOR = {
    "name": "Kiosk",
    "public_name": "Kiosk",
    "phone_number": "+23276000009",
    "email": "kiosk@example.com",
}


async def transfer(harness: Harness, auth: BearerAuth) -> dict[str, Any]:
    """Transfer money with a request that is held for review, and return its alert."""
    await update_rule(harness, "Large amount", threshold="100")
    sender, receiver = [await harness.create_subscriber(balance="900") for _ in range(2)]
    body = {
        "from_account_id": sender["account_id"],
        "to_account_id": receiver["account_id"],
        "amount": "500",
        "pin": PIN,
    }
    sent = await harness.post(f"{V1}/wallet/transfer", json=body, auth=auth)
    assert sent.json()["status"] == "under_review", sent.text
    (alert,) = await list_alerts(harness, subscriber_id=sender["id"])
    return alert


async def release(harness: Harness, alert: dict[str, Any], auth: BearerAuth) -> Any:
    return await harness.post(
        f"{V1}/compliance/alerts/{alert['id']}/resolve", json=RELEASE, auth=auth
    )


async def test_admin_cannot_release_an_own_transaction(harness: Harness) -> None:
    ada, ben = await harness.create_admin(), await harness.create_admin("C")
    alert = await transfer(harness, ada)
    assert parse_error(await release(harness, alert, ada)) == (403, "FORBIDDEN")
    second = await harness.create_admin()
    for auth, email in ((ada, "ada@example.com"), (second, "Ada+2@example.com")):
        await set_email(harness, auth, email)
    assert parse_error(await release(harness, alert, second)) == (403, "FORBIDDEN")
    assert (await release(harness, alert, ben)).status_code == 200
    assert await get_transaction_status(harness, alert["transaction_id"]) == ("completed", None)


async def test_admin_can_reject_an_own_transaction(harness: Harness) -> None:
    ada = await harness.create_admin()
    alert = await transfer(harness, ada)
    rejected = await harness.post(
        f"{V1}/compliance/alerts/{alert['id']}/resolve",
        json={**RELEASE, "transaction_decision": "reject"},
        auth=ada,
    )
    assert rejected.status_code == 200


async def test_holders_of_an_api_key_cannot_release_its_transactions(harness: Harness) -> None:
    creator, rotator, other = [await harness.create_admin() for _ in range(3)]
    body = {"name": "Shop", "scopes": ["payments:write"]}
    created = (await harness.post(f"{V1}/admin/api-keys", json=body, auth=creator)).json()
    rotated = await harness.post(
        f"{V1}/admin/api-keys/{created['id']}/rotate", json={}, auth=rotator
    )
    alert = await transfer(harness, BearerAuth(rotated.json()["key"], created["id"]))
    for holder in (creator, rotator):
        assert parse_error(await release(harness, alert, holder)) == (403, "FORBIDDEN")
    assert (await release(harness, alert, other)).status_code == 200


async def create_signer(harness: Harness, owner: str, auth: BearerAuth) -> HmacAuth:
    """Create a processor, terminal or partner, and return its signing key."""
    if owner == "partner":
        path, body = "/admin/partners", {"name": "Bank"}
    else:
        path, body = "/processors", PROCESSOR
        if owner == "terminal":
            merchant = await harness.create_processor()
            path = f"/processors/{await harness.get_processor_id(merchant)}/terminals"
            body = {"name": "Till"}
    created = await harness.post(V1 + path, json=body, auth=auth)
    assert created.status_code == 201, created.text
    record = created.json()
    partner_id = record["partner"]["id"] if owner == "partner" else None
    return HmacAuth(record["api_key_id"], record["hmac_secret"], partner_id)


async def pay_signed(harness: Harness, signer: HmacAuth) -> dict[str, Any]:
    """Move money with a signed request that is held for review, and return its alert."""
    pos = await PosDriver.create(harness)
    if signer.partner_id is None:
        await update_rule(harness, "Large amount", threshold="100")
        paid = await pos.pay("500.00", auth=signer)
    else:
        await harness.database.execute("UPDATE accounts SET overdraft = 1000000")
        await update_rule(harness, "Large cash-in or top-up", threshold="100", action="review")
        body = {
            "subscriber_id": pos.customer["id"],
            "amount": "500.00",
            "partner_reference": "T-1",
        }
        paid = await harness.post(f"{V1}/wallet/fund-from-partner", json=body, auth=signer)
    assert paid.json()["status"] == "under_review", paid.text
    (alert,) = await list_alerts(harness, subscriber_id=pos.customer["id"])
    return alert


@pytest.mark.parametrize("owner", ["processor", "terminal", "partner"])
async def test_creators_of_signing_keys_cannot_release_signed_transactions(
    harness: Harness, owner: str
) -> None:
    creator, other = await harness.create_admin(), await harness.create_admin()
    signer = await create_signer(harness, owner, creator)
    await create_signer(harness, "processor", other)  # of another merchant
    alert = await pay_signed(harness, signer)
    assert parse_error(await release(harness, alert, creator)) == (403, "FORBIDDEN")
    assert (await release(harness, alert, other)).status_code == 200


async def test_any_key_of_the_signer_counts_even_if_deleted(harness: Harness) -> None:
    """Its request scope is the owner, or an older owner key whose creator is unknown."""
    creator, other = await harness.create_admin(), await harness.create_admin()
    merchant = await harness.create_processor()
    await harness.database.execute("UPDATE hmac_keys SET request_scope = 'owner'")
    url = f"{V1}/processors/{await harness.get_processor_id(merchant)}/keys"
    created = (await harness.post(url, json={}, auth=creator)).json()
    alert = await pay_signed(harness, HmacAuth(created["api_key_id"], created["hmac_secret"]))
    deleted = await harness.client.delete(f"{url}/{created['api_key_id']}", auth=creator)
    assert deleted.status_code == 204, deleted.text
    assert parse_error(await release(harness, alert, creator)) == (403, "FORBIDDEN")
    assert (await release(harness, alert, other)).status_code == 200


async def test_guarded_release_is_executed_once_by_other_people(
    harness: Harness, platform: GuardedRecords
) -> None:
    ada = platform.maker
    alert = await transfer(harness, ada)
    await set_rules(harness, build_rule("review_release", roles=["system_admin"]))
    ben, cleo = await harness.create_admin(), await harness.create_admin()
    assert parse_error(await release(harness, alert, ada)) == (403, "FORBIDDEN")
    held = require_held(await release(harness, alert, ben))
    # The admin who asked for the transaction cannot approve its release either.
    assert parse_error(await decide(harness, held, "approve", ada)) == (403, "FORBIDDEN")
    executed = await approve(harness, held, cleo)
    assert (executed["status"], executed["code"]) == ("executed", None)
    assert await get_transaction_status(harness, alert["transaction_id"]) == ("completed", None)
    actor = await harness.database.fetchval(
        "SELECT actor FROM audit_entries WHERE event = 'alert.resolved' AND resource_id = $1",
        alert["id"],
    )
    assert (actor["id"], actor["approval_id"]) == (ben.id, held["id"])


async def test_guarded_release_of_a_decided_transaction_only_resolves_the_alert(
    harness: Harness, platform: GuardedRecords
) -> None:
    alert = await transfer(harness, platform.maker)
    await set_rules(harness, build_rule("review_release", roles=["system_admin"]))
    ben, cleo = await harness.create_admin(), await harness.create_admin()
    held = require_held(await release(harness, alert, ben))
    decision = ReviewDecision(transaction_id=decode_id(alert["transaction_id"]), release=False)
    (await harness.services.ledger.submit(decision)).require_accepted()
    executed = await approve(harness, held, cleo)
    assert (executed["status"], executed["code"]) == ("executed", None)
    assert executed["result"]["message"].endswith("was decided earlier: failed.")
    (resolved,) = await list_alerts(harness, status="resolved")
    assert resolved["id"] == alert["id"]


async def test_transactions_of_an_approval_have_all_its_makers(
    harness: Harness, platform: GuardedRecords
) -> None:
    await update_rule(harness, "Large amount", threshold="100")
    await set_rules(harness, build_rule("wallet_transfer", roles=["system_admin"]))
    sender, receiver = [await harness.create_subscriber(balance="900") for _ in range(2)]
    body = {
        "from_account_id": sender["account_id"],
        "to_account_id": receiver["account_id"],
        "amount": "500",
    }
    held = require_held(await platform.send("POST", "/wallet/transfer", body))
    cleo = await harness.create_admin()
    assert (await approve(harness, held, cleo))["status"] == "executed"
    (alert,) = await list_alerts(harness, subscriber_id=sender["id"])
    assert parse_error(await release(harness, alert, platform.maker)) == (403, "FORBIDDEN")
    assert (await release(harness, alert, cleo)).status_code == 200


@pytest.mark.parametrize("decision", ["reject", "more_needed"])
async def test_kyc_decisions_wait_only_if_they_raise_the_level(
    harness: Harness, platform: GuardedRecords, decision: str
) -> None:
    await harness.database.execute(
        "UPDATE subscribers SET kyc_status = 'PENDING', kyc_pending_since = now()"
    )
    await harness.database.execute("UPDATE account_rules SET requirements = '{}'")
    await set_rules(harness, build_rule("kyc_level", roles=["system_admin", "compliance_user"]))
    customer = f"/subscribers/{platform.customer['id']}"
    held = require_held(
        await platform.send("POST", f"{customer}/kyc-decision", {"decision": "approve"})
    )
    assert held["changes"]["kyc_level"] == [1, 2]
    assert (await platform.send("PUT", customer, {"kyc_level": 3})).status_code == 202
    executed = await approve(harness, held, await harness.create_admin("C"))
    assert (executed["status"], executed["code"]) == ("executed", None)
    assert (await platform.get(customer))["kyc_level"] == 2
    assert (await platform.send("PUT", customer, {"kyc_level": 1})).status_code == 200
    await harness.database.execute(
        "UPDATE subscribers SET kyc_status = 'PENDING', kyc_pending_since = now()"
    )
    body = {"decision": decision, "reason": "Blurred"}
    decided = await platform.send("POST", f"{customer}/kyc-decision", body)
    assert decided.status_code != 202
    pause = f"/admin/webhook-endpoints/{platform.webhook_endpoint}"
    assert (await platform.send("PUT", pause, {"status": "paused"})).status_code == 200


async def test_agent_phone_change_waits_and_delays_the_pin_reset(
    harness: Harness, platform: GuardedRecords
) -> None:
    """One admin could change the number, reset the PIN a day later and take the float."""
    await set_rules(harness, build_rule("agent_phone"))
    path = f"/agents/{platform.agent['id']}"
    held = require_held(await platform.send("PUT", path, {"phone_number": "+23276123498"}))
    assert held["changes"]["phone_number"][1] == "+23276123498"
    assert (await platform.get(path))["phone_number"] == platform.agent["phone_number"]
    assert (await platform.send("PUT", path, {"address": "12 Main Street"})).status_code == 200
    assert (await approve(harness, held))["status"] == "executed"
    reset = await platform.send("POST", f"{path}/reset-pin")
    assert parse_error(reset) == (403, "FORBIDDEN")
    assert "until" in reset.json()["details"]
    event = await harness.database.fetchval(
        "SELECT count(*) FROM events WHERE data::text LIKE '%+23276123498%'"
    )
    assert event == 0


@pytest.mark.parametrize("operation", ["merchant_keys", "webhook_endpoints"])
async def test_secrets_of_new_keys_go_to_the_maker_once(
    harness: Harness, platform: GuardedRecords, operation: str
) -> None:
    await set_rules(harness, build_rule(operation))
    approver = await harness.create_admin()
    for name, method, path, body in await platform.list_requests():
        if name != operation or (name, method, path, body) in platform.suspended:
            continue
        held = require_held(await platform.send(method, path, body))
        executed = await approve(harness, held, approver)
        secrets = {key: value for key, value in executed["result"].items() if "secret" in key}
        if method == "PUT":
            continue
        assert set(secrets.values()) == {"***"}, path
        url = f"{V1}/approvals/{held['id']}"
        for auth, is_shown in ((approver, False), (platform.maker, True), (platform.maker, False)):
            result = (await harness.get(url, auth=auth)).json()["result"]
            assert all((result[key] != "***") is is_shown for key in secrets), path
