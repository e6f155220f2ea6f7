"""Each guardable operation is held, and executed once approved."""

from datetime import timedelta
from typing import Any

import pytest

from builders.approvals import (
    APPROVALS_URL,
    RULES_URL,
    V1,
    GuardedRecords,
    approve,
    build_rule,
    create_approvers,
    decide,
    get_approval,
    require_held,
    set_rules,
)
from harness import BearerAuth, Harness, parse_error
from tapgate.business.approvals.operations import require_unguarded_key
from tapgate_client import ids
from tapgate_client.errors import ApiError
from tapgate_client.schemas.approvals import GUARDABLE_OPERATIONS


async def test_every_operation_is_held_and_executed_once_approved(
    harness: Harness, platform: GuardedRecords
) -> None:
    await set_rules(harness, *(build_rule(operation) for operation in GUARDABLE_OPERATIONS))
    requests, approver = await platform.list_requests(), await harness.create_admin("F")
    assert {operation for operation, *_ in requests} == set(GUARDABLE_OPERATIONS)
    for operation, method, path, body in requests:
        approval = require_held(await platform.send(method, path, body))
        assert approval["operation"] == operation, path
        executed = await approve(harness, approval, approver)
        assert (executed["status"], executed["code"]) == ("executed", None), (path, executed)
    stored = await harness.database.fetchval(
        "SELECT count(*) FROM admins WHERE email = 'eve@example.com'"
    )
    assert stored
    keyset = (await platform.get("/cards/keysets"))["data"][0]
    held = require_held(await platform.send("POST", f"/cards/keysets/{keyset['id']}/retire"))
    assert (await approve(harness, held, approver))["status"] == "executed"


async def test_approved_change_returns_the_new_values(
    harness: Harness, platform: GuardedRecords
) -> None:
    await set_rules(harness, build_rule("branding"))
    held = require_held(await platform.send("PUT", "/admin/branding", {"name": "Corner Shop"}))
    executed = await approve(harness, held, await harness.create_admin("F"))
    assert executed["result"]["name"] == "Corner Shop"


async def test_secrets_are_shown_once_to_the_maker(
    harness: Harness, platform: GuardedRecords
) -> None:
    await set_rules(harness, build_rule("api_keys"), build_rule("keysets"))
    new_key = {"name": "Shop", "scopes": ["payments:write", "payments:read"]}
    approval = require_held(await platform.send("POST", "/admin/api-keys", new_key))
    approver = await harness.create_admin()
    assert (await approve(harness, approval, approver))["result"]["key"] == "***"
    assert (await get_approval(harness, approval, approver))["result"]["key"] == "***"
    listed = (await harness.get(APPROVALS_URL, auth=platform.maker)).json()["data"][0]
    assert listed["result"]["key"] == "***"
    url = f"{APPROVALS_URL}/{approval['id']}"
    await harness.client.head(url, auth=platform.maker)
    key = (await get_approval(harness, approval, platform.maker))["result"]["key"]
    used = await harness.get(f"{V1}/transactions", auth=BearerAuth(key, ""))
    assert used.status_code == 200
    assert (await get_approval(harness, approval, platform.maker))["result"]["key"] == "***"
    body = {"name": "Bureau", "meta_read_key": "0" * 32}
    keyset = require_held(await platform.send("POST", "/cards/keysets", body))
    assert keyset["changes"] == {"name": [None, "Bureau"], "meta_read_key": [None, "***"]}


async def test_requests_that_the_rules_do_not_mean_are_not_held(
    harness: Harness, platform: GuardedRecords
) -> None:
    await set_rules(harness, *(build_rule(operation) for operation in GUARDABLE_OPERATIONS))
    reading = {"name": "Reader", "scopes": ["payments:read"]}
    assert (await platform.send("POST", "/admin/api-keys", reading)).status_code == 201
    partner = f"/admin/partners/{platform.partner.partner_id}"
    assert (await platform.send("PUT", partner, {"name": "Renamed"})).json()["name"] == "Renamed"
    customer = f"/subscribers/{platform.customer['id']}"
    same = {"phone_number": platform.customer["phone_number"], "address": "12 Main Street"}
    assert (await platform.send("PUT", customer, same)).status_code == 200
    for _, method, path, _ in platform.suspended:
        stop = path.replace("unblock", "block").replace("/activate", "/suspend")
        again = await platform.send(method, stop, {"reason": "Under investigation"})
        assert parse_error(again)[0] == 409


async def test_activation_of_an_active_record_is_rejected_and_not_held(
    harness: Harness, platform: GuardedRecords
) -> None:
    requests = platform.suspended
    for _, method, path, body in requests:
        assert (await platform.send(method, path, body)).status_code == 200
    await set_rules(harness, *(build_rule(operation) for operation in GUARDABLE_OPERATIONS))
    for _, method, path, body in requests:
        assert parse_error(await platform.send(method, path, body))[0] == 409, path


async def test_new_agent_has_the_first_commission_tier_while_a_rule_applies(
    harness: Harness, platform: GuardedRecords
) -> None:
    """Otherwise one admin registers a new agent instead of changing the tier of an agent."""
    agent = {
        "agent_type": "super_agent", "name": "Kiosk", "phone_number": "+23276123497", "pin": "4821",
    }  # fmt: skip
    await set_rules(harness, build_rule("agent_phone"))
    refused = await platform.send("POST", "/agents", {**agent, "commission_tier": 2})
    assert parse_error(refused) == (422, "VALIDATION_FAILED")
    assert refused.json()["details"]["fields"].keys() == {"commission_tier"}
    registered = await platform.send("POST", "/agents", agent)
    assert registered.status_code == 201, registered.text
    path = f"/agents/{registered.json()['agent_id']}"
    require_held(await platform.send("PUT", path, {"commission_tier": 2}))


async def test_api_key_acts_for_the_admin_who_created_it(
    harness: Harness, platform: GuardedRecords
) -> None:
    await set_rules(harness, build_rule("subscriber_phone"))
    path = f"/subscribers/{platform.customer['id']}"
    body = {"phone_number": "+23276123499"}
    held = require_held(await platform.send("PUT", path, body, platform.writing_key))
    creator = await harness.database.fetchval(
        "SELECT created_by FROM api_keys WHERE id = $1",
        ids.decode(ids.KEY, platform.writing_key.id),
    )
    assert held["maker"] == ids.encode(ids.ADMIN, creator)


async def test_phone_numbers_of_restricted_customers_are_masked(
    harness: Harness, platform: GuardedRecords
) -> None:
    await set_rules(harness, build_rule("subscriber_phone"))
    path = f"/subscribers/{platform.customer['id']}"
    held = require_held(await platform.send("PUT", path, {"phone_number": "+23276123499"}))
    assert held["changes"]["phone_number"][1] == "+23276123499"
    await harness.database.execute("UPDATE subscribers SET restricted = true")
    approver = await harness.create_admin()
    masked = await get_approval(harness, held, approver)
    assert (masked["masked"], masked["changes"]["phone_number"]) == (True, ["***", "***"])
    blind = await decide(harness, held, "approve", approver)
    assert parse_error(blind) == (403, "OTP_REQUIRED")
    assert (await get_approval(harness, held, approver))["approvers"] == []
    await grant_restricted_access(harness, platform.customer, approver)
    assert "masked" not in await get_approval(harness, held, approver)
    failed = await approve(harness, held, approver)  # the maker has no access
    assert (failed["status"], failed["code"]) == ("failed", "OTP_REQUIRED")


async def grant_restricted_access(
    harness: Harness, customer: dict[str, Any], admin: BearerAuth
) -> None:
    """Store that the admin has verified a code sent to the customer."""
    await harness.database.execute(
        """INSERT INTO restricted_access (subscriber_id, admin_id, expires_at)
           VALUES ($1, $2, $3)""",
        ids.decode(ids.SUBSCRIBER, customer["id"]),
        ids.decode(ids.ADMIN, admin.id),
        harness.services.clock() + timedelta(minutes=15),
    )


async def test_every_masked_request_cannot_be_approved_blindly(
    harness: Harness, platform: GuardedRecords
) -> None:
    await set_rules(harness, *(build_rule(operation) for operation in GUARDABLE_OPERATIONS))
    held = [
        require_held(await platform.send(method, path, body))
        for _, method, path, body in await platform.list_requests()
    ]
    await harness.database.execute("UPDATE subscribers SET restricted = true")
    approver, masked = await harness.create_admin(), set()
    for approval in held:
        record = await get_approval(harness, approval, approver)
        if record.get("masked"):
            masked.add(approval["operation"])
            blind = await decide(harness, approval, "approve", approver)
            assert parse_error(blind) == (403, "OTP_REQUIRED"), approval["operation"]
            rejected = await decide(harness, approval, "reject", approver, reason="Unknown")
            assert rejected.status_code == 200
    assert masked >= {"subscriber_phone", "wallet_transfer", "processor_transfer"}


async def test_transfers_of_restricted_customers_are_masked(
    harness: Harness, platform: GuardedRecords
) -> None:
    """A transfer result contains the balance, which is personal data."""
    operations = ("wallet_transfer", "processor_transfer")
    await set_rules(harness, *map(build_rule, operations))
    funding = f"/admin/partners/{platform.partner.partner_id}/fund"
    assert (await platform.send("POST", funding, {"amount": "1"})).status_code == 200
    requests = [each for each in await platform.list_requests() if each[0] in operations]
    assert len(requests) == 4
    other_admin = await harness.create_admin()
    for _, method, path, body in requests:
        held = require_held(await platform.send(method, path, body))
        executed = await approve(harness, held)
        assert any("balance" in name for name in executed["result"]), executed
        await harness.database.execute("UPDATE subscribers SET restricted = true")
        masked = await get_approval(harness, held, other_admin)
        assert (masked.get("masked"), masked["result"]) == (True, None), path
        assert masked["amount"] == executed["amount"]
        await harness.database.execute("UPDATE subscribers SET restricted = false")


async def test_events_of_restricted_customers_are_masked(
    harness: Harness, platform: GuardedRecords
) -> None:
    await harness.post(
        "/api/v1/admin/webhook-endpoints",
        json={"url": "https://shop.example/", "events": ["*"]},
        auth=await harness.create_admin(),
    )
    await set_rules(harness, build_rule("wallet_transfer"))
    body = {
        "partner_id": platform.partner.partner_id, "subscriber_id": platform.customer["id"],
        "amount": "60", "partner_reference": "A-1",
    }  # fmt: skip
    for is_restricted in (False, True):
        await harness.database.execute("UPDATE subscribers SET restricted = $1", is_restricted)
        held = require_held(await platform.send("POST", "/wallet/fund-from-partner", body))
        data = await harness.database.fetchval(
            "SELECT data FROM events WHERE type = 'approval.created' AND data ->> 'id' = $1",
            held["id"],
        )
        assert data.get("masked", False) is is_restricted
        assert (data["changes"]["amount"] == ["***", "***"]) is is_restricted


async def test_command_line_cannot_create_a_guarded_key(harness: Harness) -> None:
    await set_rules(harness, build_rule("api_keys"))
    async with harness.services.transaction() as tx:
        await require_unguarded_key(tx, ["payments:read"])
        with pytest.raises(ApiError, match="FORBIDDEN"):
            await require_unguarded_key(tx, ["payments:write"])


async def test_overdraft_limit_covers_the_overdraft_in_use(
    harness: Harness, platform: GuardedRecords
) -> None:
    partner = f"/admin/partners/{platform.partner.partner_id}"
    assert (await platform.send("PUT", partner, {"overdraft_limit": "100"})).status_code == 200
    top_up = {
        "partner_id": platform.partner.partner_id, "subscriber_id": platform.customer["id"],
        "amount": "60", "partner_reference": "A-1",
    }  # fmt: skip
    funded = await platform.send("POST", "/wallet/fund-from-partner", top_up)
    assert funded.status_code == 200, funded.text
    lower = await platform.send("PUT", partner, {"overdraft_limit": "59.99"})
    assert parse_error(lower) == (422, "VALIDATION_FAILED")
    assert (await platform.send("PUT", partner, {"overdraft_limit": "60"})).status_code == 200


async def test_failed_database_operation_leaves_nothing(
    harness: Harness, platform: GuardedRecords
) -> None:
    await set_rules(harness, build_rule("admin_users"))
    new_admin = {"email": "eve@example.com", "name": "Eve", "role": "support_user"}
    held = [require_held(await platform.send("POST", "/admin/users", new_admin)) for _ in range(2)]
    assert (await approve(harness, held[0]))["status"] == "executed"
    failed = await approve(harness, held[1])
    assert (failed["status"], failed["code"]) == ("failed", "DUPLICATE_EMAIL")
    again = await decide(harness, held[1], "approve", await harness.create_admin())
    assert parse_error(again) == (409, "APPROVAL_NOT_PENDING")


PHONE_AND_LEVEL = {"phone_number": "+23276123499", "kyc_level": 2}


def build_customer_rules(phone_roles: list[str], level_roles: list[str]) -> list[dict[str, Any]]:
    return [
        build_rule("subscriber_phone", roles=phone_roles),
        build_rule("kyc_level", roles=level_roles),
    ]


async def test_changes_that_different_roles_approve_are_sent_separately(
    harness: Harness, platform: GuardedRecords
) -> None:
    """Otherwise a support_user approves a KYC level, which only a compliance_user may approve."""
    await set_rules(harness, *build_customer_rules(["support_user"], ["compliance_user"]))
    path = f"/subscribers/{platform.customer['id']}"
    refused = await platform.send("PUT", path, PHONE_AND_LEVEL)
    assert parse_error(refused) == (422, "VALIDATION_FAILED")
    assert refused.json()["details"]["operations"] == ["subscriber_phone", "kyc_level"]
    for field, role in (("phone_number", "support_user"), ("kyc_level", "compliance_user")):
        held = require_held(await platform.send("PUT", path, {field: PHONE_AND_LEVEL[field]}))
        assert held["roles"] == [role]


async def test_summary_names_all_changes(harness: Harness, platform: GuardedRecords) -> None:
    roles = ["system_admin", "compliance_user"]
    await set_rules(harness, *build_customer_rules(roles, roles[::-1]))
    customer = platform.customer["id"]
    held = require_held(await platform.send("PUT", f"/subscribers/{customer}", PHONE_AND_LEVEL))
    expected = f"Change the phone number of customer {customer} and raise the KYC level to 2"
    assert held["summary"] == expected
    assert held["changes"].keys() == {"phone_number", "kyc_level"}


@pytest.mark.parametrize(
    ("level_roles", "expected"),
    [
        (["compliance_user", "system_admin"], ["system_admin"]),
        (["compliance_user"], ["system_admin", "support_user"]),
    ],
)
async def test_new_rules_leave_a_pending_request_to_roles_that_may_approve_all_changes(
    harness: Harness, platform: GuardedRecords, level_roles: list[str], expected: list[str]
) -> None:
    roles = ["system_admin", "support_user"]
    await set_rules(harness, *build_customer_rules(roles, roles))
    path = f"/subscribers/{platform.customer['id']}"
    held = require_held(await platform.send("PUT", path, PHONE_AND_LEVEL))
    rules = build_customer_rules(roles, level_roles)
    await create_approvers(harness, *rules)
    change = require_held(
        await harness.put(RULES_URL, json={"data": rules}, auth=await harness.create_admin())
    )
    assert (await approve(harness, change, await harness.create_admin()))["status"] == "executed"
    assert (await get_approval(harness, held, platform.maker))["roles"] == expected
