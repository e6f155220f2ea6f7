"""An admin leaves: who created and rotated keys, and what to do before disabling the admin."""

from typing import Any

import httpx2
import pytest

from builders.approvals import build_rule, set_rules
from builders.auth import Headers, LogIn
from drivers.console import ConsoleClients
from drivers.in_process import AppTransport
from harness import Harness
from tapgate.server.gateway import create_app

V1 = "/api/v1"
KEYS = f"{V1}/admin/api-keys"
USERS = f"{V1}/admin/users"
PEOPLE = ("created_by", "created_by_name", "rotated_by", "rotated_by_name")


async def create_key(client: httpx2.AsyncClient, headers: Headers, name: str) -> dict[str, Any]:
    body = {"name": name, "scopes": ["cards:read"]}
    response = await client.post(KEYS, json=body, headers=headers)
    assert response.status_code == 201, response.text
    return dict(response.json())


async def get_data(client: httpx2.AsyncClient, path: str, headers: Headers) -> list[dict[str, Any]]:
    response = await client.get(path, headers=headers)
    assert response.status_code == 200, response.text
    return list(response.json()["data"])


@pytest.fixture
async def bens_session(ben: dict[str, Any], log_in: LogIn) -> Headers:
    return await log_in(ben["email"])


async def test_api_keys_show_who_created_and_last_rotated_them(
    client: httpx2.AsyncClient, ada: Headers, ben: dict[str, Any], bens_session: Headers
) -> None:
    me = (await client.get(f"{V1}/admin/me", headers=ada)).json()
    key = await create_key(client, ada, "Shop")
    assert [key[field] for field in PEOPLE] == [me["id"], me["name"], None, None]
    assert key["rotated_at"] is None
    rotated = await client.post(f"{KEYS}/{key['id']}/rotate", headers=bens_session)
    assert [rotated.json()[field] for field in PEOPLE] == [me["id"], me["name"], ben["id"], "Ben"]
    assert rotated.json()["rotated_at"]
    (listed,) = await get_data(client, KEYS, ada)
    assert [listed[field] for field in PEOPLE] == [me["id"], me["name"], ben["id"], "Ben"]
    assert "key" not in listed


async def test_admin_keys_are_the_keys_the_admin_created_or_last_rotated(
    client: httpx2.AsyncClient, ada: Headers, ben: dict[str, Any], bens_session: Headers
) -> None:
    by_ada, by_ben = await create_key(client, ada, "1"), await create_key(client, bens_session, "2")
    rotated = await create_key(client, ada, "3")
    rotated_back = await create_key(client, ada, "4")
    for key, headers in (
        (rotated, bens_session),
        (rotated_back, bens_session),
        (rotated_back, ada),
        (by_ben, ada),
    ):
        await client.post(f"{KEYS}/{key['id']}/rotate", headers=headers)
    listed = await get_data(client, f"{KEYS}?admin_id={ben['id']}", ada)
    assert [key["id"] for key in listed] == [rotated["id"], by_ben["id"]]
    assert by_ada["id"] in [key["id"] for key in await get_data(client, KEYS, ada)]
    offboarding = await client.get(f"{USERS}/{ben['id']}/offboarding", headers=ada)
    assert offboarding.json() == {
        "api_keys": listed[:1],  # Ada has rotated the other one
        "signing_keys": [], "webhook_endpoints": [], "partners": [], "scarce_approvers": [],
    }  # fmt: skip
    grace = {"grace_seconds": 600}
    await client.post(f"{KEYS}/{rotated['id']}/rotate", json=grace, headers=ada)
    offboarding = await client.get(f"{USERS}/{ben['id']}/offboarding", headers=ada)
    assert [key["id"] for key in offboarding.json()["api_keys"]] == [rotated["id"]]
    await client.delete(f"{KEYS}/{rotated['id']}", headers=ada)
    offboarding = await client.get(f"{USERS}/{ben['id']}/offboarding", headers=ada)
    assert offboarding.json()["api_keys"] == []


async def test_offboarding_lists_signing_keys_and_webhook_secrets(
    client: httpx2.AsyncClient, ada: Headers, ben: dict[str, Any], bens_session: Headers
) -> None:
    """The admin who leaves has seen them. They disappear when they are deleted or rotated."""
    shop = {"name": "Shop", "phone_number": "+23276000001", "email": "shop@example.com"}
    hooks, partners = f"{V1}/admin/webhook-endpoints", f"{V1}/admin/partners"

    async def post(path: str, headers: Headers, body: Any = None) -> dict[str, Any]:
        response = await client.post(path, json=body, headers=headers)
        assert response.status_code in (200, 201), response.text
        return dict(response.json())

    processor = await post(f"{V1}/processors", bens_session, shop)
    path = f"{V1}/processors/{processor['processor_id']}"
    terminal = await post(f"{path}/terminals", bens_session, {"name": "Till"})
    partner = await post(partners, bens_session, {"name": "Bank"})
    others_partner = await post(partners, ada, {"name": "Union"})
    others_path = f"{partners}/{others_partner['partner']['id']}"
    hook = await post(hooks, bens_session, {"url": "http://127.0.0.1:9/", "events": ["*"]})
    others_hook = await post(hooks, ada, {"url": "http://127.0.0.1:9/2", "events": ["*"]})

    async def load() -> dict[str, Any]:
        response = await client.get(f"{USERS}/{ben['id']}/offboarding", headers=ada)
        assert response.status_code == 200, response.text
        return dict(response.json())

    known = await load()
    assert [
        (key["api_key_id"], key["owner_name"], key["terminal_name"])
        for key in known["signing_keys"]
    ] == [
        (partner["api_key_id"], "Bank", None),
        (terminal["api_key_id"], "Shop", "Till"),
        (processor["api_key_id"], "Shop", None),
    ]
    assert [item["id"] for item in known["webhook_endpoints"]] == [hook["id"]]
    assert known["partners"] == [{"id": partner["partner"]["id"], "name": "Bank"}]

    await post(f"{hooks}/{others_hook['id']}/rotate-secret", bens_session, {})
    await post(f"{others_path}/rotate-webhook-secret", bens_session, {})
    known = await load()
    assert len(known["webhook_endpoints"]) == len(known["partners"]) == 2

    for endpoint in (hook, others_hook):
        await post(f"{hooks}/{endpoint['id']}/rotate-secret", ada, {})
    for owner in (partner, others_partner):
        await post(f"{partners}/{owner['partner']['id']}/rotate-webhook-secret", ada, {})
    deleted = [
        *(f"{path}/keys/{key['api_key_id']}" for key in (processor, terminal)),
        f"{partners}/{partner['partner']['id']}/keys/{partner['api_key_id']}",
    ]
    for key in deleted:
        assert (await client.delete(key, headers=ada)).status_code == 204
    known = await load()
    assert not any(known.values())


async def test_signing_keys_and_webhook_endpoints_show_who_created_them(
    client: httpx2.AsyncClient, ada: Headers, ben: dict[str, Any], bens_session: Headers
) -> None:
    me = (await client.get(f"{V1}/admin/me", headers=ada)).json()
    shop = {"name": "Shop", "phone_number": "+23276000001", "email": "shop@example.com"}
    created = (await client.post(f"{V1}/processors", json=shop, headers=ada)).json()
    processor = f"{V1}/processors/{created['processor']['id']}"
    terminal = await client.post(f"{processor}/terminals", json={"name": "1"}, headers=bens_session)
    assert terminal.status_code == 201, terminal.text
    names = [key["created_by_name"] for key in await get_data(client, f"{processor}/keys", ada)]
    assert names == ["Ben", me["name"]]

    created = (await client.post(f"{V1}/admin/partners", json={"name": "Bank"}, headers=ada)).json()
    partner = f"{V1}/admin/partners/{created['partner']['id']}"
    assert (await client.post(f"{partner}/keys", headers=bens_session)).status_code == 201
    keys = await get_data(client, f"{partner}/keys", ada)
    assert [key["created_by"] for key in keys] == [ben["id"], me["id"]]

    hooks = f"{V1}/admin/webhook-endpoints"
    body = {"url": "http://127.0.0.1:9/", "events": ["*"]}
    hook = (await client.post(hooks, json=body, headers=ada)).json()
    assert [hook[field] for field in PEOPLE] == [me["id"], me["name"], None, None]
    rotated = await client.post(f"{hooks}/{hook['id']}/rotate-secret", headers=bens_session)
    assert rotated.status_code == 200, rotated.text
    (listed,) = await get_data(client, hooks, ada)
    assert [listed[field] for field in PEOPLE] == [me["id"], me["name"], ben["id"], "Ben"]
    assert listed["rotated_at"]


async def test_offboarding_warns_if_no_spare_approver_would_remain(harness: Harness) -> None:
    await set_rules(harness, build_rule("keysets", roles=["system_admin"]))
    auth = await harness.create_admin("A")
    people = (await harness.get(USERS, auth=auth)).json()["data"]
    me, leaving, spare, *others = [person["id"] for person in people]

    async def get_scarce() -> list[tuple[str, int, int]]:
        response = await harness.get(f"{USERS}/{leaving}/offboarding", auth=auth)
        assert response.status_code == 200, response.text
        rules = response.json()["scarce_approvers"]
        return [(rule["operation"], rule["available"], rule["approvers"]) for rule in rules]

    async def disable(admin_id: str) -> int:
        return (await harness.post(f"{USERS}/{admin_id}/disable", auth=auth)).status_code

    assert await get_scarce() == []
    for admin_id in others:
        assert await disable(admin_id) == 200
    # Without the admin, two people remain: one makes a request, and the other one approves it.
    assert await get_scarce() == [("keysets", 1, 1), ("approval_rules", 1, 1)]
    assert await disable(spare) == 200
    assert await get_scarce() == [("keysets", 0, 1), ("approval_rules", 0, 1)]
    assert await disable(leaving) == 422
    assert me == (await harness.get(f"{V1}/admin/me", auth=auth)).json()["id"]


async def test_unknown_admin_has_no_offboarding(client: httpx2.AsyncClient, ada: Headers) -> None:
    response = await client.get(f"{USERS}/adm_0000000000000/offboarding", headers=ada)
    assert response.status_code == 404


async def test_console_offers_to_rotate_or_delete_each_secret(harness: Harness) -> None:
    leaving, admin = await harness.create_admin(), await harness.create_admin()
    shop = {"name": "Shop", "phone_number": "+23276000001", "email": "shop@example.com"}
    for path, body in (
        ("/processors", shop),
        ("/admin/partners", {"name": "Bank"}),
        ("/admin/webhook-endpoints", {"url": "https://shop.example/hook", "events": ["*"]}),
        ("/admin/api-keys", {"name": "Reader", "scopes": ["cards:read"]}),
    ):
        assert (await harness.post(V1 + path, json=body, auth=leaving)).status_code == 201
    transport = AppTransport(create_app(harness.services))
    console = ConsoleClients(harness, transport).create_signed_out()
    console.set_session(admin)
    page = await console.get(f"/console/actions/administrator.disable?id={leaving.id}")
    for name in ("Shop", "Bank", "https://shop.example/hook", "Reader"):
        assert name in page.text
    for action in (
        "api_key.rotate", "api_key.revoke", "processor.delete_key", "partner.delete_key",
        "webhook.rotate_secret", "webhook.delete", "partner.rotate_webhook_secret",
    ):  # fmt: skip
        assert f"/console/actions/{action}?" in page.text
