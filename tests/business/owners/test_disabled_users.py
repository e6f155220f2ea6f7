"""Users that the platform disabled stay disabled, and their addresses become free."""

import pytest

from builders.approvals import build_rule, require_held, set_rules
from harness import BearerAuth, Harness, parse_error
from tapgate.business.approval_rules.queries import find_admin
from tapgate_client import ids

USERS = "/api/v1/admin/users"
PASSWORD = "correct horse battery staple 9"
CFO = "cfo@platform.example"


@pytest.fixture
async def shop(harness: Harness) -> str:
    return await harness.get_processor_id(await harness.create_processor())


@pytest.fixture
async def manager(harness: Harness, shop: str) -> BearerAuth:
    return await harness.create_owner_user("M", shop)


async def change(harness: Harness, auth: BearerAuth, user: str, verb: str) -> tuple[int, str]:
    response = await harness.post(f"{USERS}/{user}/{verb}", auth=auth)
    return response.status_code, response.json().get("code", response.json().get("status"))


async def get_disabler(harness: Harness, auth: BearerAuth, user: str) -> str | None:
    listed = (await harness.get(USERS, auth=auth)).json()["data"]
    return {row["id"]: row["disabled_by"] for row in listed}[user]


@pytest.mark.parametrize("has_rule", [True, False])
async def test_manager_cannot_enable_users_that_the_platform_disabled(
    harness: Harness, shop: str, manager: BearerAuth, *, has_rule: bool
) -> None:
    admin, user = await harness.create_admin(), await harness.create_owner_user("M", shop)
    other = await harness.create_owner_user("M", shop)
    if has_rule:
        await set_rules(harness, build_rule("admin_users", roles=["system_admin"]))
    assert await change(harness, admin, user.id, "disable") == (200, "disabled")
    for auth in (manager, other):
        response = await harness.post(f"{USERS}/{user.id}/enable", auth=auth)
        assert parse_error(response) == (403, "FORBIDDEN")
        assert "platform has disabled" in response.json()["message"]
        assert await change(harness, auth, user.id, "disable") == (409, "ALREADY_BLOCKED")
    if has_rule:
        require_held(await harness.post(f"{USERS}/{user.id}/enable", auth=admin))
        return
    assert await change(harness, admin, user.id, "enable") == (200, "active")
    # What the manager disables, each manager of the shop may enable.
    assert await change(harness, manager, user.id, "disable") == (200, "disabled")
    assert await change(harness, other, user.id, "enable") == (200, "active")


async def test_platform_takes_over_what_a_manager_disabled(
    harness: Harness, shop: str, manager: BearerAuth
) -> None:
    admin, user = await harness.create_admin(), await harness.create_owner_user("K", shop)
    assert await get_disabler(harness, manager, user.id) is None
    assert await change(harness, manager, user.id, "disable") == (200, "disabled")
    assert await get_disabler(harness, manager, user.id) == "owner"
    assert await change(harness, admin, user.id, "disable") == (200, "disabled")
    assert await get_disabler(harness, manager, user.id) == "platform"
    assert await change(harness, admin, user.id, "disable") == (409, "ALREADY_BLOCKED")
    assert await change(harness, manager, user.id, "enable") == (403, "FORBIDDEN")


async def test_account_disabled_by_an_unknown_actor_is_enabled_by_the_platform(
    harness: Harness, shop: str, manager: BearerAuth
) -> None:
    """Before this was recorded, or after the command line disabled it."""
    user = await harness.create_owner_user("K", shop)
    await harness.database.execute(
        "UPDATE admins SET status = 'disabled' WHERE id = $1", ids.decode(ids.ADMIN, user.id)
    )
    assert await change(harness, manager, user.id, "enable") == (403, "FORBIDDEN")
    assert await change(harness, await harness.create_admin(), user.id, "enable") == (200, "active")


@pytest.mark.parametrize("new_owner", [True, False])
async def test_platform_gets_an_address_that_a_manager_used_first(
    harness: Harness, shop: str, manager: BearerAuth, *, new_owner: bool
) -> None:
    admin = await harness.create_admin()
    body = {
        "email": CFO, "name": "X", "role": "merchant_cashier", "owner_id": shop,
        "password": PASSWORD,
    }  # fmt: skip
    squatter = (await harness.post(USERS, json=body, auth=manager)).json()["id"]
    squatter_id = ids.decode(ids.ADMIN, squatter)
    assert squatter_id is not None
    before = await find_admin(harness.database, squatter_id)
    new = {"email": CFO.upper(), "name": "CFO", "role": "finance_user"}
    if new_owner:
        other = await harness.get_processor_id(await harness.create_processor())
        new |= {"role": "merchant_manager", "owner_id": other}
    refused = await harness.post(USERS, json=new, auth=admin)
    assert parse_error(refused) == (409, "DUPLICATE_EMAIL")
    assert refused.json()["details"] == {"id": squatter}
    assert await change(harness, admin, squatter, "disable") == (200, "disabled")
    invited = await harness.post(USERS, json=new, auth=admin)
    assert invited.status_code == 201, invited.text
    assert (invited.json()["email"], invited.json()["id"] == squatter) == (CFO, False)
    # The old password opens neither account, and the old account stays disabled.
    credentials = {"email": CFO, "password": PASSWORD}
    login = await harness.post("/api/v1/admin/login", json=credentials)
    assert login.status_code == 401, login.text
    for auth, expected in ((admin, (409, "DUPLICATE_EMAIL")), (manager, (403, "FORBIDDEN"))):
        assert await change(harness, auth, squatter, "enable") == expected
    assert (await find_admin(harness.database, squatter_id)).person == before.person
    entry = await harness.database.fetchrow(
        """SELECT changes, actor ->> 'id' AS actor FROM audit_entries
           WHERE event = 'admin.updated' AND resource_id = $1""",
        squatter,
    )
    assert (entry["actor"], entry["changes"]["email"][0]) == (admin.id, CFO)


async def test_manager_gets_no_address_of_others(
    harness: Harness, shop: str, manager: BearerAuth
) -> None:
    """Neither of the platform nor of another owner, whether disabled or not."""
    admin = await harness.create_admin()
    other = await harness.get_processor_id(await harness.create_processor())
    bodies = [
        {"email": CFO, "name": "CFO", "role": "finance_user", "password": PASSWORD},
        {"email": "owner@shop.example", "name": "M", "role": "merchant_manager", "owner_id": other},
    ]
    for body in bodies:
        created = await harness.post(USERS, json=body, auth=admin)
        assert created.status_code == 201, created.text
        mine = {"email": body["email"], "name": "X", "role": "merchant_cashier", "owner_id": shop}
        for _ in range(2):
            refused = await harness.post(USERS, json=mine, auth=manager)
            assert parse_error(refused) == (409, "DUPLICATE_EMAIL")
            assert "details" not in refused.json()
            await change(harness, admin, created.json()["id"], "disable")
        again = await harness.post(USERS, json=body, auth=admin)
        assert again.status_code == (409 if "owner_id" not in body else 201), again.text
