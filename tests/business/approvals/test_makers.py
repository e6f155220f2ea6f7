"""Who makes a request: holders of API keys, changed rules, and the command line."""

import pytest

from builders.approvals import (
    V1,
    GuardedRecords,
    approve,
    build_rule,
    create_approvers,
    decide,
    get_approval,
    get_email,
    require_held,
    set_email,
    set_rules,
)
from drivers.processes import run_command_on
from harness import BearerAuth, Harness, parse_error
from tapgate.business.approvals.operations import require_unguarded_key
from tapgate_client import ids
from tapgate_client.errors import ApiError
from tapgate_sandbox.demo.administrator import DemoError
from tapgate_sandbox.demo.build import acquire_build_lock

PHONE = {"phone_number": "+23276123499"}


async def rotate(
    harness: Harness, key: BearerAuth, admin: BearerAuth, grace_seconds: int = 0
) -> BearerAuth:
    """Rotate an API key and return the new one."""
    response = await harness.post(
        f"{V1}/admin/api-keys/{key.id}/rotate", json={"grace_seconds": grace_seconds}, auth=admin
    )
    assert response.status_code == 200, response.text
    return BearerAuth(response.json()["key"], key.id)


async def test_everyone_who_received_an_api_key_is_its_maker(
    harness: Harness, platform: GuardedRecords
) -> None:
    """An admin could otherwise rotate a colleague's key and approve its requests."""
    await set_rules(harness, build_rule("subscriber_phone", roles=["system_admin"]))
    creator, mallory = await harness.create_admin(), await harness.create_admin()
    await harness.database.execute(
        "UPDATE api_keys SET created_by = $1", ids.decode(ids.ADMIN, creator.id)
    )
    key = await rotate(harness, platform.writing_key, mallory)
    path = f"/subscribers/{platform.customer['id']}"
    held = require_held(await platform.send("PUT", path, PHONE, key))
    assert held["maker"] == mallory.id
    assert held["summary"].endswith(", by API key Shop")
    for holder in (mallory, creator):
        refused = await decide(harness, held, "approve", holder)
        assert parse_error(refused) == (403, "FORBIDDEN")
    second = await harness.create_admin()
    await set_email(harness, second, (await get_email(harness, creator)).replace("@", "+2@"))
    assert parse_error(await decide(harness, held, "approve", second)) == (403, "FORBIDDEN")
    assert (await approve(harness, held, platform.maker))["status"] == "executed"


async def test_amounts_of_a_rotated_key_count_for_the_new_holder(
    harness: Harness, platform: GuardedRecords
) -> None:
    await set_rules(harness, build_rule("wallet_transfer", above="100"))
    partner = platform.partner.partner_id
    response = await platform.send("POST", f"/admin/partners/{partner}/fund", {"amount": "500"})
    assert response.status_code == 200
    key = await rotate(harness, platform.paying_key, platform.maker)
    body = {"partner_id": partner, "subscriber_id": platform.customer["id"], "amount": "60"}
    for number, (auth, status) in enumerate([(key, 200), (platform.maker, 202), (key, 202)]):
        top_up = {**body, "partner_reference": f"T-{number}"}
        sent = await platform.send("POST", "/wallet/fund-from-partner", top_up, auth)
        assert sent.status_code == status, sent.text


async def test_command_line_keys_cannot_make_guarded_requests(
    harness: Harness, platform: GuardedRecords
) -> None:
    """Their holders are not known."""
    done = await run_command_on(
        harness.services, "keys", "create", "--name", "K", "--scope", "subscribers:write"
    )
    key_id = await harness.database.fetchval("SELECT max(id) FROM api_keys")
    key = BearerAuth(done.stdout.strip(), ids.encode(ids.KEY, key_id))
    path = f"/subscribers/{platform.customer['id']}"
    assert (await platform.send("PUT", path, PHONE, key)).status_code == 200
    await set_rules(harness, build_rule("subscriber_phone"))
    other = {"phone_number": "+23276123498"}
    assert parse_error(await platform.send("PUT", path, other, key)) == (403, "FORBIDDEN")
    with_grace = await rotate(harness, key, platform.maker, 60)
    assert parse_error(await platform.send("PUT", path, other, with_grace)) == (403, "FORBIDDEN")
    rotated = await rotate(harness, key, platform.maker)
    require_held(await platform.send("PUT", path, other, rotated))


async def test_request_of_a_deleted_api_key_is_not_executed(
    harness: Harness, platform: GuardedRecords
) -> None:
    await set_rules(harness, build_rule("subscriber_phone"))
    path = f"/subscribers/{platform.customer['id']}"
    held = require_held(await platform.send("PUT", path, PHONE, platform.writing_key))
    url = f"/admin/api-keys/{platform.writing_key.id}"
    assert (await platform.send("DELETE", url)).status_code == 204
    failed = await approve(harness, held)
    assert (failed["status"], failed["code"]) == ("failed", "FORBIDDEN")


@pytest.mark.parametrize("loses", ["its scope", "nothing"])
async def test_request_runs_with_the_current_scopes_of_its_api_key(
    harness: Harness, platform: GuardedRecords, loses: str
) -> None:
    scopes = {"its scope": ["payments:read"], "nothing": ["payments:read", "payments:write"]}
    partner = platform.partner.partner_id
    await harness.database.execute(
        "UPDATE accounts SET overdraft = 1000000 WHERE kind = 'clearing'"
    )
    await set_rules(harness, build_rule("wallet_transfer"))
    body = {
        "partner_id": partner,
        "subscriber_id": platform.customer["id"],
        "amount": "1",
        "partner_reference": "R",
    }
    url, key = "/wallet/fund-from-partner", platform.paying_key
    held = require_held(await platform.send("POST", url, body, key))
    changed = await platform.send("PUT", f"/admin/api-keys/{key.id}", {"scopes": scopes[loses]})
    assert changed.status_code == 200, changed.text
    done = await approve(harness, held)
    expected = ("failed", "FORBIDDEN") if loses == "its scope" else ("executed", None)
    assert (done["status"], done["code"]) == expected


async def test_new_rules_apply_to_pending_requests_if_they_are_stricter(
    harness: Harness, platform: GuardedRecords
) -> None:
    await set_rules(harness, build_rule("agent_fund"), build_rule("keysets", approvers=2))
    funding = f"/agents/{platform.agent['id']}/fund"
    small, large = [
        require_held(await platform.send("POST", funding, {"amount": amount}))
        for amount in ("10", "500")
    ]
    keyset = require_held(await platform.send("POST", "/cards/keysets", {"name": "Bureau"}))
    rules = [
        build_rule("agent_fund", roles=["system_admin"], approvers=2, above="1000"),
        build_rule("agent_fund", roles=["compliance_user"], above="100"),
        build_rule("keysets", approvers=1),
    ]
    await create_approvers(harness, *rules)
    change = require_held(await platform.send("PUT", "/admin/approval-rules", {"data": rules}))
    others = [await harness.create_admin("F"), await harness.create_admin()]
    for approver in others:
        change = await approve(harness, change, approver)
    assert change["status"] == "executed"
    for held in (small, large):
        current = await get_approval(harness, held, platform.maker)
        assert (current["roles"], current["required_approvers"]) == (["compliance_user"], 1)
        refused = await decide(harness, held, "approve", others[1])
        assert parse_error(refused) == (403, "FORBIDDEN")
        done = await approve(harness, held, await harness.create_admin("C"))
        assert done["status"] == "executed"
    current = await get_approval(harness, keyset, platform.maker)
    assert current["required_approvers"] == 2, "not fewer than before"


async def test_transfer_into_an_agent_account_needs_the_approvals_of_both_rules(
    harness: Harness, platform: GuardedRecords
) -> None:
    """It counts as funding and as a transfer, so the stricter rule applies."""
    await set_rules(harness, build_rule("agent_fund"), build_rule("wallet_transfer", approvers=2))
    transfer = {
        "from_account_id": platform.customer["account_id"],
        "to_account_id": await platform.get_account(platform.agent["id"], "float"),
        "amount": "1",
    }
    held = require_held(await platform.send("POST", "/wallet/transfer", transfer))
    assert (held["operation"], held["required_approvers"]) == ("wallet_transfer", 2)
    assert (await approve(harness, held))["status"] == "pending"
    assert (await approve(harness, held))["status"] == "executed"


async def test_forbidden_changes_to_the_makers_account_do_not_wait_for_approval(
    harness: Harness, platform: GuardedRecords
) -> None:
    await set_rules(harness, build_rule("admin_users"))
    own = f"/admin/users/{platform.maker.id}"
    for method, path, body in (
        ("PUT", own, {"role": "support_user"}),
        ("POST", f"{own}/reset-factors", None),
        ("POST", f"{own}/reset-password", None),
    ):
        refused = await platform.send(method, path, body)
        assert parse_error(refused) == (403, "FORBIDDEN"), path
    require_held(await platform.send("PUT", own, {"name": "Another name"}))


async def test_request_is_not_executed_if_the_values_have_changed_since(
    harness: Harness, platform: GuardedRecords
) -> None:
    """It would undo a change that the request's approvers do not see."""
    await set_rules(harness, build_rule("fee_rules"), build_rule("subscriber_phone"))
    fees = (await platform.get("/fee-rules"))["data"]
    first, second = [
        require_held(await platform.send("PUT", "/fee-rules", {"data": data}))
        for data in (fees[1:], [])
    ]
    assert (await approve(harness, first))["status"] == "executed"
    failed = await approve(harness, second)
    assert (failed["status"], failed["code"]) == ("failed", "VALIDATION_FAILED")
    assert (await platform.get("/fee-rules"))["data"] == fees[1:]

    path = f"/subscribers/{platform.customer['id']}"
    moves = [
        require_held(await platform.send("PUT", path, {"phone_number": number}))
        for number in ("+23276123498", "+23276123499")
    ]
    assert [(await approve(harness, held))["status"] for held in moves] == ["executed", "failed"]


async def test_pending_rule_change_follows_the_new_rules(
    harness: Harness, platform: GuardedRecords
) -> None:
    await set_rules(harness, build_rule("agent_fund"))
    removal = require_held(await platform.send("PUT", "/admin/approval-rules", {"data": []}))
    stricter = {"data": [build_rule("agent_fund", approvers=2)]}
    await approve(
        harness, require_held(await platform.send("PUT", "/admin/approval-rules", stricter))
    )
    assert (await approve(harness, removal))["status"] == "pending"
    failed = await approve(harness, removal)
    assert (failed["status"], failed["code"]) == ("failed", "VALIDATION_FAILED")


async def get_balance(harness: Harness, platform: GuardedRecords) -> int:
    account = ids.decode(ids.ACCOUNT, platform.customer["account_id"])
    balance: int = await harness.database.fetchval(
        "SELECT balance FROM accounts WHERE id = $1", account
    )
    return balance


async def test_transfer_that_the_partner_has_made_is_not_executed_again(
    harness: Harness, platform: GuardedRecords
) -> None:
    partner = platform.partner.partner_id
    await platform.send("POST", f"/admin/partners/{partner}/fund", {"amount": "500"})
    await set_rules(harness, build_rule("wallet_transfer"))
    before = await get_balance(harness, platform)
    body = {
        "partner_id": partner, "subscriber_id": platform.customer["id"], "amount": "60",
        "partner_reference": "T-1",
    }  # fmt: skip
    held = require_held(await platform.send("POST", "/wallet/fund-from-partner", body))
    made = await harness.post(f"{V1}/wallet/fund-from-partner", json=body, auth=platform.partner)
    assert made.status_code == 200, made.text
    failed = await approve(harness, held)
    assert (failed["status"], failed["code"]) == ("failed", "DUPLICATE_REQUEST")
    assert await get_balance(harness, platform) == before + 60_00


async def test_command_line_creates_no_key_for_guarded_requests(harness: Harness) -> None:
    await set_rules(harness, build_rule("subscriber_phone"), build_rule("wallet_transfer"))
    async with harness.services.transaction() as tx:
        await require_unguarded_key(tx, ["payments:read", "cards:write"])
        for scope in ("payments:write", "subscribers:write"):
            with pytest.raises(ApiError, match="FORBIDDEN"):
                await require_unguarded_key(tx, [scope])


async def test_command_line_resets_no_password_that_other_admins_can_reset(
    harness: Harness,
) -> None:
    ada, ben = await harness.create_admin(), await harness.create_admin()
    await set_rules(harness, build_rule("admin_users", roles=["system_admin"]))
    email = await get_email(harness, ada)
    command = ("admin", "reset-password", email, "--factors")
    refused = await run_command_on(harness.services, *command)
    assert (refused.returncode, "in the console" in refused.stderr) == (1, True)
    assert (await harness.get(f"{V1}/admin/me", auth=ada)).status_code == 200
    await harness.database.execute(
        "UPDATE admins SET status = 'disabled' WHERE id <> ALL ($1)",
        [ids.decode(ids.ADMIN, admin.id) for admin in (ada, ben)],
    )
    done = await run_command_on(harness.services, *command)
    assert "/console/invitation#" in done.stdout, "no two other admins are left"


async def test_command_line_loads_no_demo_data_if_rules_exist(harness: Harness) -> None:
    async with acquire_build_lock(harness.database):
        pass
    await set_rules(harness, build_rule("agent_fund"))
    with pytest.raises(DemoError, match="approval rules exist"):
        async with acquire_build_lock(harness.database):
            pass
