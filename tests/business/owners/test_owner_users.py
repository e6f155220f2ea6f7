"""Users and API keys of processors, partners and agents: creation and management."""

from typing import Any

import pytest

from builders.participants import create_agent, create_agent_in_status, create_partner
from cases import each
from harness import BearerAuth, Harness
from tapgate_client import ids

V1 = "/api/v1"
USERS = f"{V1}/admin/users"
UNKNOWN = ids.encode(ids.PROCESSOR, 0)


def build_user(harness: Harness, **fields: Any) -> dict[str, Any]:
    name = harness.new_phone_number()[1:]
    return {"email": f"u{name}@example.com", "name": "Musa", "role": "merchant_cashier", **fields}


async def create_shop(harness: Harness) -> str:
    return await harness.get_processor_id(await harness.create_processor())


@each(
    "role, owner",
    [
        ("merchant_manager", "processor"),
        ("merchant_cashier", "processor"),
        ("partner_user", "partner"),
        ("agent_user", "agent"),
    ],
)
async def test_user_belongs_to_an_owner_of_the_kind_of_the_role(
    harness: Harness, role: str, owner: str
) -> None:
    admin = await harness.create_admin()
    owners = {
        "processor": await create_shop(harness),
        "partner": (await create_partner(harness))["partner"]["id"],
        "agent": (await create_agent(harness))["id"],
    }
    for kind, owner_id in {**owners, "missing": None}.items():
        body = build_user(harness, role=role, owner_id=owner_id)
        response = await harness.post(USERS, json=body, auth=admin)
        if kind != owner:
            assert response.status_code == 422, response.text
            assert list(response.json()["details"]["fields"]) == ["owner_id"]
            continue
        assert response.status_code == 201, response.text
        assert response.json()["owner_id"] == owner_id
        assert response.json()["invitation"]["url"]


async def test_platform_role_has_no_owner(harness: Harness) -> None:
    admin, shop = await harness.create_admin(), await create_shop(harness)
    body = build_user(harness, role="finance_user", owner_id=shop)
    response = await harness.post(USERS, json=body, auth=admin)
    assert (response.status_code, list(response.json()["details"]["fields"])) == (422, ["owner_id"])


async def test_unknown_role_is_rejected_before_its_owner_and_not_echoed(harness: Harness) -> None:
    admin, shop = await harness.create_admin(), await create_shop(harness)
    body = build_user(harness, role="janitor", owner_id=shop)
    response = await harness.post(USERS, json=body, auth=admin)
    assert (response.status_code, list(response.json()["details"]["fields"])) == (422, ["role"])
    assert "janitor" not in response.text


async def test_unknown_owner_is_not_found(harness: Harness) -> None:
    admin = await harness.create_admin()
    response = await harness.post(USERS, json=build_user(harness, owner_id=UNKNOWN), auth=admin)
    assert (response.status_code, response.json()["code"]) == (404, "PROCESSOR_NOT_FOUND")
    key = {"name": "Shop", "scopes": ["payments:read"], "owner_id": UNKNOWN}
    response = await harness.post(f"{V1}/admin/api-keys", json=key, auth=admin)
    assert (response.status_code, response.json()["code"]) == (404, "PROCESSOR_NOT_FOUND")


async def test_terminated_agent_gets_no_users_keys_or_webhooks(harness: Harness) -> None:
    admin, agent = await harness.create_admin(), await create_agent_in_status(harness, "terminated")
    user = build_user(harness, role="agent_user")
    key = {"name": "Own", "scopes": ["payments:read"]}
    endpoint = {"url": "http://127.0.0.1:9/", "events": ["*"]}
    for path, body in (("users", user), ("api-keys", key), ("webhook-endpoints", endpoint)):
        body |= {"owner_id": agent["id"]}
        response = await harness.post(f"{V1}/admin/{path}", json=body, auth=admin)
        assert response.status_code == 422, (path, response.text)
        fields = response.json()["details"]["fields"]
        assert fields == {"owner_id": "must not be a terminated agent"}
    suspended = await create_agent_in_status(harness, "suspended")
    body = build_user(harness, role="agent_user", owner_id=suspended["id"])
    assert (await harness.post(f"{V1}/admin/users", json=body, auth=admin)).status_code == 201


async def test_role_can_change_only_to_one_with_the_same_kind_of_owner(harness: Harness) -> None:
    admin, shop = await harness.create_admin(), await create_shop(harness)
    user = await harness.create_owner_user("K", shop)
    for role, status in (
        ("merchant_manager", 200),
        ("partner_user", 422),
        ("system_admin", 422),
    ):
        response = await harness.put(f"{USERS}/{user.id}", json={"role": role}, auth=admin)
        assert response.status_code == status, response.text
    support = await harness.create_admin("S")
    response = await harness.put(
        f"{USERS}/{support.id}", json={"role": "merchant_cashier"}, auth=admin
    )
    assert response.status_code == 422, response.text


@pytest.fixture
async def shop(harness: Harness) -> str:
    return await create_shop(harness)


@pytest.fixture
async def manager(harness: Harness, shop: str) -> BearerAuth:
    return await harness.create_owner_user("M", shop)


async def test_manager_invites_disables_and_enables_shop_users(
    harness: Harness, shop: str, manager: BearerAuth
) -> None:
    body = build_user(harness, owner_id=shop)
    invited = await harness.post(USERS, json=body, auth=manager)
    assert invited.status_code == 201, invited.text
    user = invited.json()["id"]
    disabled = await harness.post(f"{USERS}/{user}/disable", auth=manager)
    assert disabled.json()["status"] == "disabled"
    enabled = await harness.post(f"{USERS}/{user}/enable", auth=manager)
    assert enabled.json()["status"] == "active"
    listed = (await harness.get(USERS, auth=manager)).json()["data"]
    assert {item["id"] for item in listed} == {user, manager.id}
    entry = await harness.database.fetchrow(
        "SELECT actor FROM audit_entries WHERE event = 'admin.created' AND resource_id = $1", user
    )
    assert entry["actor"]["owner_id"] == shop
    assert entry["actor"]["id"] == manager.id


@each("role", ["system_admin", "finance_user"])
async def test_manager_cannot_create_platform_admins(
    harness: Harness, manager: BearerAuth, role: str
) -> None:
    response = await harness.post(USERS, json=build_user(harness, role=role), auth=manager)
    assert (response.status_code, response.json()["code"]) == (403, "FORBIDDEN")


async def test_foreign_users_and_owners_answer_like_unknown_ones(
    harness: Harness, manager: BearerAuth
) -> None:
    other_shop = await create_shop(harness)
    other = await harness.create_owner_user("K", other_shop)
    admin = await harness.create_admin()
    unknown = ids.encode(ids.ADMIN, 1 << 40)
    for verb in ("disable", "enable"):
        expected = await harness.post(f"{USERS}/{unknown}/{verb}", auth=manager)
        assert expected.status_code == 404
        for foreign in (other.id, admin.id):
            response = await harness.post(f"{USERS}/{foreign}/{verb}", auth=manager)
            assert (response.status_code, response.json()) == (404, expected.json())
    expected = await harness.post(USERS, json=build_user(harness, owner_id=UNKNOWN), auth=manager)
    response = await harness.post(
        USERS, json=build_user(harness, owner_id=other_shop), auth=manager
    )
    assert (response.status_code, response.json()) == (404, expected.json())


async def test_suspended_owner_reads_but_does_not_change(
    harness: Harness, shop: str, manager: BearerAuth
) -> None:
    admin = await harness.create_admin()
    suspended = await harness.post(
        f"{V1}/processors/{shop}/suspend", json={"reason": "fraud"}, auth=admin
    )
    assert suspended.status_code == 200, suspended.text
    owner = await harness.get(f"{V1}/me/owner", auth=manager)
    assert (owner.status_code, owner.json()["status"]) == (200, "suspended")
    assert (await harness.get(f"{V1}/transactions", auth=manager)).status_code == 200
    response = await harness.post(USERS, json=build_user(harness, owner_id=shop), auth=manager)
    assert (response.status_code, response.json()["code"]) == (403, "PROCESSOR_SUSPENDED")
    preferences = {"theme": "dark", "timezone": None, "language": None}
    changed = await harness.put(f"{V1}/admin/me/preferences", json=preferences, auth=manager)
    assert changed.status_code == 200, changed.text


async def test_owner_record_has_a_balance_except_for_cashiers(harness: Harness, shop: str) -> None:
    cashier = await harness.create_owner_user("K", shop)
    key = await harness.create_api_key("payments:read", owner_id=shop)
    record = (await harness.get(f"{V1}/me/owner", auth=cashier)).json()
    assert record.keys().isdisjoint({"balance", "available"})
    assert (record["id"], record["type"], record["status"]) == (shop, "processor", "active")
    record = (await harness.get(f"{V1}/me/owner", auth=key)).json()
    assert (record["balance"], record["available"]) == ("0.00", "0.00")
    agent = (await create_agent(harness, balance="20"))["id"]
    user = await harness.create_owner_user("G", agent)
    record = (await harness.get(f"{V1}/me/owner", auth=user)).json()
    assert (record["balance"], record["commission_balance"]) == ("20.00", "0.00")
    admin = await harness.create_admin()
    response = await harness.get(f"{V1}/me/owner", auth=admin)
    assert (response.status_code, response.json()["details"]) == (403, {"required": ["owner"]})
