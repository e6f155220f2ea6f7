"""Audit entries name the user or key and its owner, for every change that an owner may make."""

from collections.abc import Mapping
from typing import Final

import pytest

from builders.approvals import approve, build_rule, require_held, set_rules
from builders.owner_changes import ACTS, PASSWORD, OwnerStage, refund
from builders.participants import AGENT_PIN, create_agent, create_partner
from builders.payments import new_request_id
from cases import run_cases
from harness import PIN, Harness
from tapgate.http.api.owner_access import Binding, get_owner_access
from tapgate.server.gateway import list_endpoints
from tapgate_client import ids

V1 = "/api/v1"
#: It returns a challenge and stores nothing.
_WITHOUT_ENTRY: Final = {"POST /api/v1/admin/me/passkeys/options"}


def _list_changes() -> Mapping[str, str]:
    """Return the role letters of each operation with which an owner user changes something."""
    return {
        endpoint.name: get_owner_access(endpoint).roles
        for endpoint in list_endpoints()
        if get_owner_access(endpoint).binding is not Binding.NEVER
        and get_owner_access(endpoint).roles
        and endpoint.effect != "reads"
    }


def test_every_change_of_an_owner_is_driven() -> None:
    assert ACTS.keys() == _list_changes().keys()


@pytest.fixture
async def owners(harness: Harness) -> dict[str, str]:
    await harness.disable_compliance_rules()
    shop = await harness.get_processor_id(await harness.create_processor())
    partner = (await create_partner(harness, balance="900"))["partner"]["id"]
    agent = (await create_agent(harness, balance="900"))["id"]
    return {"M": shop, "K": shop, "P": partner, "G": agent}


async def _list_actors(harness: Harness, request_id: str) -> list[dict[str, str]]:
    rows = await harness.database.fetch(
        "SELECT actor FROM audit_entries WHERE request_id = $1", request_id
    )
    return [row["actor"] for row in rows]


async def test_every_change_of_an_owner_user_names_user_and_owner(
    harness: Harness, owners: dict[str, str]
) -> None:
    async def check(name: str, role: str) -> None:
        stage = OwnerStage(harness, role, owners[role])
        await stage.create_user()
        response = await ACTS[name](stage)
        assert response.is_success, (name, role, response.text)
        actors = await _list_actors(harness, response.headers["x-request-id"])
        assert bool(actors) == (name not in _WITHOUT_ENTRY), (name, role)
        for actor in actors:
            assert actor == stage.actor, (name, role)

    await run_cases(
        (f"{name} {role}", check(name, role))
        for name, roles in _list_changes().items()
        for role in roles
    )


async def _sign_in_at_the_shop(
    harness: Harness, owners: dict[str, str], role: str = "M"
) -> OwnerStage:
    stage = OwnerStage(harness, role, owners[role])
    await stage.create_user()
    return stage


async def test_sign_in_and_password_of_an_invitation_name_the_owner(
    harness: Harness, owners: dict[str, str]
) -> None:
    stage = await _sign_in_at_the_shop(harness, owners)
    login = await stage.sign_in()
    assert await _list_actors(harness, login.headers["x-request-id"]) == [stage.actor]
    body = {"name": "Isata", "role": "merchant_cashier", "owner_id": stage.owner_id}
    email = f"isata{harness.new_phone_number()[1:]}@example.com"
    created = await stage.prepare("POST", f"{V1}/admin/users", email=email, **body)
    token = created["invitation"]["url"].partition("#")[2]
    accepted = await harness.post(
        f"{V1}/admin/invitations/accept", json={"token": token, "password": PASSWORD}
    )
    assert accepted.status_code == 204, accepted.text
    (actor,) = await _list_actors(harness, accepted.headers["x-request-id"])
    assert (actor["id"], actor["owner_id"]) == (created["id"], stage.owner_id)


async def test_rejected_requests_of_owners_name_user_or_key_and_owner(
    harness: Harness, owners: dict[str, str]
) -> None:
    stage = await _sign_in_at_the_shop(harness, owners)
    denied = await stage.send("GET", f"{V1}/subscribers")
    assert denied.status_code == 403
    assert await _list_actors(harness, denied.headers["x-request-id"]) == [stage.actor]
    key = await harness.create_api_key("payments:read", owner_id=stage.owner_id)
    denied = await harness.get(f"{V1}/subscribers", auth=key)
    assert denied.status_code == 403
    (actor,) = await _list_actors(harness, denied.headers["x-request-id"])
    assert actor == {
        "type": "api_key", "id": key.id, "name": "Shop", "owner_id": stage.owner_id,
    }  # fmt: skip


async def test_approved_request_of_an_owner_names_its_maker(
    harness: Harness, owners: dict[str, str]
) -> None:
    stage = await _sign_in_at_the_shop(harness, owners)
    await set_rules(harness, build_rule("refunds"))
    held = await refund(stage)
    assert await _list_actors(harness, held.headers["x-request-id"]) == [stage.actor]
    approval = await approve(harness, require_held(held))
    assert approval["status"] == "executed", approval
    actors = await _list_actors(harness, approval["id"])
    assert actors
    expected = {**stage.actor, "approval_id": approval["id"]}
    assert all(actor == expected for actor in actors), actors


async def test_payments_of_owner_keys_are_in_the_request_log_with_the_owner(
    harness: Harness, owners: dict[str, str]
) -> None:
    """Payments have no audit entries: the ledger and the request log have them all."""
    key = await harness.create_api_key("payments:write", owner_id=owners["G"])
    customer = await harness.create_subscriber(balance="100")
    for verb, more in (("cashin", {}), ("cashout", {"pin": PIN})):
        body = {"agent_id": owners["G"], "subscriber_id": customer["id"], "amount": "20", **more}
        body |= {"agent_pin": AGENT_PIN, "request_id": new_request_id()}
        done = await harness.post(f"{V1}/agents/{verb}", json=body, auth=key)
        assert done.status_code == 200, done.text
    await harness.services.request_log.flush()
    rows = await harness.database.fetch(
        "SELECT path, owner_id FROM request_logs WHERE key_id = $1",
        ids.decode(ids.KEY, key.id),
    )
    agent = ids.decode(ids.AGENT, owners["G"])
    assert {(row["path"].rpartition("/")[2], row["owner_id"]) for row in rows} == {
        ("cashin", agent),
        ("cashout", agent),
    }
