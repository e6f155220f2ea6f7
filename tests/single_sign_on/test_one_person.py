"""An account of single sign-on and a local account with the same email are one person."""

from typing import Any

import pytest

from builders.approvals import (
    RULES_URL,
    GuardedRecords,
    approve,
    build_rule,
    decide,
    require_held,
    set_email,
    set_rules,
)
from builders.auth import Headers
from builders.single_sign_on import SsoClient
from drivers.identity_provider import FINANCE_GROUP, FakeProvider
from harness import BearerAuth, Harness, parse_error

ME = "/api/v1/admin/me"


@pytest.fixture
async def platform(harness: Harness) -> GuardedRecords:
    platform = GuardedRecords(harness, await harness.create_admin())
    await platform.create_records()
    return platform


async def fund(platform: GuardedRecords, auth: BearerAuth) -> dict[str, Any]:
    path = f"/agents/{platform.agent['id']}/fund"
    response = await platform.send("POST", path, {"amount": "5"}, auth)
    return require_held(response)


def to_auth(headers: Headers) -> BearerAuth:
    return BearerAuth(headers["Authorization"].removeprefix("Bearer "), "")


async def test_person_cannot_approve_with_an_account_of_single_sign_on(
    platform: GuardedRecords, harness: Harness, sso: SsoClient
) -> None:
    await set_email(harness, platform.maker, "grace@example.com")
    session = await sso.require_login(email="Grace+sso@example.com")
    assert (await sso.verify(session)).status_code == 200
    second = to_auth(session)
    await set_rules(harness, build_rule("agent_fund"))
    held = await fund(platform, platform.maker)
    assert parse_error(await decide(harness, held, "approve", second)) == (403, "FORBIDDEN")
    held = await fund(platform, second)
    refused = await decide(harness, held, "approve", platform.maker)
    assert parse_error(refused) == (403, "FORBIDDEN")
    assert (await approve(harness, held))["status"] == "executed"


async def test_identity_whose_password_was_reset_gets_no_second_account(
    harness: Harness, sso: SsoClient, provider: FakeProvider, ada: Headers
) -> None:
    """The person could change the email address at the provider in the meantime."""
    me = (await harness.get(ME, headers=await sso.require_login())).json()
    reset = await harness.post(f"/api/v1/admin/users/{me['id']}/reset-password", headers=ada)
    token = reset.json()["url"].partition("#")[2]
    body = {"token": token, "password": "another horse battery"}
    await harness.post("/api/v1/admin/invitations/accept", json=body)

    provider.claims = {"email": "hopper@example.com"}
    login = await sso.start()
    assert parse_error(await sso.complete(login)) == (409, "DUPLICATE_EMAIL")
    linked = await sso.complete(login, password=body["password"])
    assert linked.status_code == 200, linked.text
    headers = {"Authorization": f"Bearer {linked.json()['token']}"}
    assert (await harness.get(ME, headers=headers)).json()["id"] == me["id"]
    count = "SELECT count(*) FROM admins WHERE email LIKE '%hopper%' OR email LIKE 'grace%'"
    assert await harness.database.fetchval(count) == 1


async def test_sign_in_without_the_role_of_the_last_possible_approver_is_refused(
    harness: Harness, sso: SsoClient, provider: FakeProvider, ada: Headers
) -> None:
    """The person keeps no session with the old role, and the rules can still be satisfied."""
    session = await sso.require_login()
    rule = build_rule("keysets", roles=["system_admin"])
    saved = await harness.put(RULES_URL, json={"data": [rule]}, headers=ada)
    assert saved.status_code == 200, saved.text
    provider.claims = {"groups": [FINANCE_GROUP]}
    refused = await sso.log_in()
    assert parse_error(refused) == (403, "FORBIDDEN")
    assert refused.json()["details"]["missing"][0]["operation"] == "keysets"
    assert (await harness.get(ME, headers=session)).status_code == 401
    await harness.create_admin()
    assert (await sso.log_in()).status_code == 200
