"""Suspending and activating a processor."""

import asyncio

import httpx2

from builders.participants import (
    PROCESSORS_URL,
    SUSPEND_BODY,
    VALID_CREDENTIAL,
    create_processor,
    get_processor_auth,
    probe_credential,
)
from cases import each
from harness import Harness

PROCESSOR_SUSPENDED = (403, "PROCESSOR_SUSPENDED")


async def test_keys_of_a_suspended_processor_are_rejected_immediately_in_every_process(
    other_process_client: httpx2.AsyncClient, harness: Harness
) -> None:
    new = await create_processor(harness)
    url, admin = f"{PROCESSORS_URL}/{new['processor_id']}", await harness.create_admin("C")
    terminal = (
        await harness.post(
            f"{url}/terminals", json={"name": "Till"}, auth=await harness.create_admin()
        )
    ).json()
    another = await create_processor(harness)
    for verb, expected in (
        ("suspend", PROCESSOR_SUSPENDED),
        ("activate", VALID_CREDENTIAL),
        ("suspend", PROCESSOR_SUSPENDED),
    ):
        response = await harness.post(f"{url}/{verb}", json=SUSPEND_BODY, auth=admin)
        assert response.status_code == 200, response.text
        for process in (other_process_client, harness.client):
            assert await probe_credential(process, get_processor_auth(new)) == expected
            assert await probe_credential(process, get_processor_auth(terminal)) == expected
            assert await probe_credential(process, get_processor_auth(another)) == VALID_CREDENTIAL


async def test_suspension_and_activation_are_recorded_and_audited(harness: Harness) -> None:
    before = (await create_processor(harness))["processor"]
    url, admin = f"{PROCESSORS_URL}/{before['id']}", await harness.create_admin("C")
    suspended = (await harness.post(f"{url}/suspend", json=SUSPEND_BODY, auth=admin)).json()
    assert list(suspended) == ["success", "message", "processor"]
    after = suspended["processor"]
    assert after["updated_at"] > before["updated_at"]
    assert after == before | {
        "status": "suspended",
        "suspend_reason": "chargebacks",
        "updated_at": after["updated_at"],
    }
    assert (await harness.get(url, auth=admin)).json() == after

    activated = (await harness.post(f"{url}/activate", auth=admin)).json()["processor"]
    assert (activated["status"], activated["suspend_reason"]) == ("active", None)

    (entry,) = await harness.list_audit_entries(before["id"], "processor.suspended")
    assert (entry["actor"]["id"], entry["reason"]) == (admin.id, "chargebacks")
    assert entry["changes"] == {
        "status": ["active", "suspended"],
        "suspend_reason": [None, "chargebacks"],
    }
    (entry,) = await harness.list_audit_entries(before["id"], "processor.activated")
    assert entry["changes"] == {
        "status": ["suspended", "active"],
        "suspend_reason": ["chargebacks", None],
    }


@each(
    "earlier_verbs, verb, code",
    [(["suspend"], "suspend", "ALREADY_SUSPENDED"), ([], "activate", "NOT_SUSPENDED")],
)
async def test_invalid_transition_is_rejected(
    harness: Harness, earlier_verbs: list[str], verb: str, code: str
) -> None:
    url = f"{PROCESSORS_URL}/{(await create_processor(harness))['processor_id']}"
    admin = await harness.create_admin()
    for earlier_verb in earlier_verbs:
        await harness.post(f"{url}/{earlier_verb}", json=SUSPEND_BODY, auth=admin)
    response = await harness.post(f"{url}/{verb}", json=SUSPEND_BODY, auth=admin)
    assert (response.status_code, response.json()["code"]) == (409, code)


async def test_suspension_requires_a_reason(harness: Harness) -> None:
    url = f"{PROCESSORS_URL}/{(await create_processor(harness))['processor_id']}"
    response = await harness.post(f"{url}/suspend", json={}, auth=await harness.create_admin())
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST")


async def test_concurrent_suspensions_apply_once(harness: Harness) -> None:
    processor_id = (await create_processor(harness))["processor_id"]
    admin = await harness.create_admin()
    responses = await asyncio.gather(
        *(
            harness.post(f"{PROCESSORS_URL}/{processor_id}/suspend", json=SUSPEND_BODY, auth=admin)
            for _ in range(10)
        )
    )
    assert sorted(response.status_code for response in responses) == [200] + [409] * 9
    assert len(await harness.list_audit_entries(processor_id, "processor.suspended")) == 1


async def test_suspension_is_published_as_an_event(harness: Harness) -> None:
    await harness.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
           VALUES (1, 'https://example.com', '{processor.suspended}', '', now())"""
    )
    url = f"{PROCESSORS_URL}/{(await create_processor(harness))['processor_id']}"
    admin = await harness.create_admin()
    suspended = (await harness.post(f"{url}/suspend", json=SUSPEND_BODY, auth=admin)).json()
    await harness.post(f"{url}/activate", auth=admin)
    (event,) = await harness.database.fetch("SELECT type, data FROM events")
    assert tuple(event) == ("processor.suspended", suspended["processor"])
