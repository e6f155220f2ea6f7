"""Owner users are people of their own: they neither connect platform admins nor hide from them."""

from itertools import permutations
from typing import Any

import pytest

from builders.approvals import (
    RULES_URL,
    V1,
    build_rule,
    decide,
    get_email,
    require_held,
    set_email,
    set_rules,
)
from builders.participants import create_agent
from builders.payouts import BANK_ACCOUNTS_URL, build_bank_account, fund_owner, post_payout
from harness import BearerAuth, Harness
from tapgate.auth.owners import Owner
from tapgate.business.approval_rules.people import LinkedPeople, identify_person
from tapgate.cli import admin as admin_command
from tapgate_client import ids
from tapgate_client.errors import ApiError
from tapgate_client.schemas.owners import OwnerType

USERS_URL = f"{V1}/admin/users"
PASSWORD = "correct horse battery staple 9"


def to_alias(email: str, suffix: str) -> str:
    local, _, domain = email.rpartition("@")
    return f"{local}+{suffix}@{domain}"


async def create_user(
    harness: Harness, auth: BearerAuth, email: str, owner: str, **fields: Any
) -> dict[str, Any]:
    body = {"email": email, "name": "X", "role": "merchant_cashier", "owner_id": owner, **fields}
    response = await harness.post(USERS_URL, json=body, auth=auth)
    assert response.status_code == 201, response.text
    return dict(response.json())


async def sign_in(harness: Harness, email: str, admin_id: str) -> BearerAuth:
    response = await harness.post(f"{V1}/admin/login", json={"email": email, "password": PASSWORD})
    assert response.status_code == 200, response.text
    return BearerAuth(response.json()["token"], admin_id)


async def list_decisions(
    harness: Harness, agent: dict[str, Any], admins: list[BearerAuth]
) -> set[int]:
    """Let each admin approve a request of each other admin; return the HTTP statuses."""
    statuses = set()
    for maker, approver in permutations(admins, 2):
        response = await harness.post(
            f"{V1}/agents/{agent['id']}/fund", json={"amount": "1"}, auth=maker
        )
        held = require_held(response)
        statuses.add((await decide(harness, held, "approve", approver)).status_code)
    return statuses


@pytest.mark.parametrize("is_invited", [True, False])
async def test_manager_cannot_connect_platform_admins(
    harness: Harness, *, is_invited: bool
) -> None:
    """A manager invites an alias of every admin. All would be connected by the manager."""
    shop = await harness.get_processor_id(await harness.create_processor())
    agent = await create_agent(harness)
    admins = [await harness.create_admin(letter) for letter in "AFF"]
    manager = await harness.create_owner_user("M", shop)
    await set_rules(harness, build_rule("agent_fund"), build_rule("admin_users"))
    people = (await harness.get(RULES_URL, auth=admins[0])).json()["people"]
    fields = {} if is_invited else {"password": PASSWORD}
    for admin in admins:
        email = to_alias(await get_email(harness, admin), "shop")
        user = await create_user(harness, manager, email, shop, **fields)
        if not is_invited:
            await sign_in(harness, email, user["id"])
    assert (await harness.get(RULES_URL, auth=admins[0])).json()["people"] == people
    assert await list_decisions(harness, agent, admins) == {200}


async def test_disabled_account_that_was_never_used_connects_no_people(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The server command names the alias; the account is confirmed or disabled."""
    agent = await create_agent(harness)
    ada, ben, cleo = [await harness.create_admin() for _ in range(3)]
    await set_email(harness, ada, "ada@platform.example")
    alias = {"email": "ada+2@platform.example", "name": "Ada", "role": "support_user"}
    created = await harness.post(USERS_URL, json=alias, auth=ben)
    assert created.status_code == 201, created.text
    await set_rules(harness, build_rule("agent_fund"))
    assert await list_decisions(harness, agent, [ada, ben]) == {403}
    tasks: list[Any] = []
    monkeypatch.setattr(admin_command, "run_with_services", tasks.append)
    admin_command.confirm(email="ada@platform.example")
    await tasks.pop()(harness.services)
    assert "same person: ada+2@platform.example." in capsys.readouterr().out
    admin_command.confirm(email=alias["email"])
    with pytest.raises(ApiError) as refused:
        await tasks.pop()(harness.services)
    assert "Disable an account" in refused.value.message
    url = f"{USERS_URL}/{created.json()['id']}"
    assert (await harness.post(f"{url}/disable", auth=cleo)).status_code == 200
    assert await list_decisions(harness, agent, [ada, ben]) == {200}
    assert (await harness.post(f"{url}/enable", auth=cleo)).status_code == 200
    assert await list_decisions(harness, agent, [ada, ben]) == {403}
    # Once the account was used, disabling it does not erase who may have used it.
    await harness.database.execute(
        "UPDATE admins SET last_login_at = now() WHERE id = $1",
        ids.decode(ids.ADMIN, created.json()["id"]),
    )
    assert (await harness.post(f"{url}/disable", auth=cleo)).status_code == 200
    assert await list_decisions(harness, agent, [ada, ben]) == {403}
    admin_command.confirm(email="ada@platform.example")
    await tasks.pop()(harness.services)
    assert alias["email"] in capsys.readouterr().out


async def test_declared_approvers_are_those_whom_a_decision_allows(harness: Harness) -> None:
    """Cleo invited aliases of Ada and Ben, so Ada and Ben need Dan."""
    agent = await create_agent(harness)
    await harness.database.execute("UPDATE admins SET status = 'disabled'")
    ada, ben, cleo, dan = [await harness.create_admin() for _ in range(4)]
    rule = build_rule("agent_fund", roles=["system_admin"])
    saved = await harness.put(RULES_URL, json={"data": [rule]}, auth=ada)
    assert saved.status_code == 200, saved.text
    for admin in (ada, ben):
        email = to_alias(await get_email(harness, admin), "2")
        alias = {"email": email, "name": "X", "role": "support_user"}
        assert (await harness.post(USERS_URL, json=alias, auth=cleo)).status_code == 201
    disabled = await harness.post(f"{USERS_URL}/{cleo.id}/disable", auth=dan)
    assert disabled.status_code == 200, disabled.text
    assert await list_decisions(harness, agent, [ada, ben]) == {403}
    assert await list_decisions(harness, agent, [ada, dan]) == {200}
    refused = await harness.post(f"{USERS_URL}/{dan.id}/disable", auth=ada)
    assert refused.status_code == 422, refused.text
    assert refused.json()["details"]["missing"][0]["available"] == 0


async def verify_and_approve(
    harness: Harness, shop: str, user: BearerAuth, admin: BearerAuth
) -> tuple[int, int]:
    """Let an admin verify the bank account of an owner user, and approve a payout of the user."""
    added = await harness.post(BANK_ACCOUNTS_URL, json=build_bank_account(shop), auth=user)
    assert added.status_code == 201, added.text
    verified = await harness.post(f"{BANK_ACCOUNTS_URL}/{added.json()['id']}/verify", auth=admin)
    if verified.status_code != 200:
        honest = await harness.create_admin()
        url = f"{BANK_ACCOUNTS_URL}/{added.json()['id']}/verify"
        assert (await harness.post(url, auth=honest)).status_code == 200
    await harness.database.execute(
        "UPDATE bank_accounts SET verified_at = verified_at - interval '2 days'"
    )
    held = require_held(await post_payout(harness, shop, user, amount="100"))
    approved = await decide(harness, held, "approve", admin)
    return verified.status_code, approved.status_code


async def test_admin_is_followed_through_users_that_users_created(harness: Harness) -> None:
    """An admin takes a manager's link; the manager types the passwords of further managers."""
    shop = await harness.get_processor_id(await harness.create_processor())
    agent = await create_agent(harness)
    rules = ("admin_users", "payouts", "agent_fund")
    await set_rules(harness, *(build_rule(each, roles=["system_admin"]) for each in rules))
    await fund_owner(harness, shop, "10000")
    evil, honest, third = [await harness.create_admin() for _ in range(3)]
    body = {"email": "m0@shop.example", "name": "M", "role": "merchant_manager", "owner_id": shop}
    held = require_held(await harness.post(USERS_URL, json=body, auth=evil))
    result = (await decide(harness, held, "approve", honest)).json()["result"]
    link = {"token": result["invitation"]["url"].partition("#")[2], "password": PASSWORD}
    accepted = await harness.post(f"{V1}/admin/invitations/accept", json=link)
    assert accepted.status_code == 204, accepted.text
    users = [await sign_in(harness, body["email"], result["id"])]
    for number in (1, 2):
        email = f"m{number}@shop.example"
        fields = {"role": "merchant_manager", "password": PASSWORD}
        created = await create_user(harness, users[-1], email, shop, **fields)
        assert {evil.id, users[-1].id} <= {*created["link_seen_by"]}
        users.append(await sign_in(harness, email, created["id"]))
    for user in users:
        assert await verify_and_approve(harness, shop, user, evil) == (403, 403)
    assert await verify_and_approve(harness, shop, users[-1], third) == (200, 200)
    # The managers remain linked downward only: the admins are different people.
    assert await list_decisions(harness, agent, [evil, third]) == {200}
    refused = await harness.post(f"{USERS_URL}/{users[-1].id}/confirm", auth=evil)
    assert refused.status_code == 403, refused.text
    confirmed = await harness.post(f"{USERS_URL}/{users[-1].id}/confirm", auth=third)
    assert (confirmed.status_code, confirmed.json()["link_seen_by"]) == (200, [])
    assert await verify_and_approve(harness, shop, users[-1], evil) == (200, 200)
    assert await verify_and_approve(harness, shop, users[1], evil) == (403, 403)


async def test_typed_password_of_an_owner_user_is_a_link(harness: Harness) -> None:
    """For an admin as for a manager; a password for a platform admin remains none."""
    shop = await harness.get_processor_id(await harness.create_processor())
    await set_rules(harness, build_rule("payouts"))
    await fund_owner(harness, shop, "10000")
    evil = await harness.create_admin()
    fields = {"role": "merchant_manager", "password": PASSWORD}
    created = await create_user(harness, evil, "m@shop.example", shop, **fields)
    assert created["link_seen_by"] == [evil.id]
    user = await sign_in(harness, "m@shop.example", created["id"])
    assert await verify_and_approve(harness, shop, user, evil) == (403, 403)


def test_platform_person_may_use_owner_users_but_never_the_reverse() -> None:
    shop, other = (Owner(OwnerType.PROCESSOR, number) for number in (1, 2))
    ada, ben = identify_person("Ada@x.example"), identify_person("ben@x.example")
    alias, manager = [
        identify_person(email, shop) for email in ("ada+shop@x.example", "manager@shop.example")
    ]
    cashier, stranger = [
        identify_person(email, owner)
        for email, owner in (("till@shop.example", shop), ("manager2@shop.example", other))
    ]
    linked = LinkedPeople([(manager, ben), (cashier, manager), (alias, manager)])
    assert linked.may_be_same(ada, alias)
    assert linked.may_be_same(ben, cashier)
    assert not linked.may_be_same(ada, ben)
    assert not linked.may_be_same(cashier, stranger)
    assert linked.count([ada, ben]) == 2
    assert len({ada, alias, identify_person("ada@x.example", other)}) == 3
