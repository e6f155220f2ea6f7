"""Suspending and activating a processor."""

import asyncio

import httpx2
import pytest

from processors.stage import GOOD, REASON, URL, created, said_to, signed
from tapgate.edge.services import Services
from world import World

SUSPENDED = (403, "PROCESSOR_SUSPENDED")


async def test_a_suspended_processors_keys_are_refused_at_once_in_every_process(
    client: httpx2.AsyncClient, other_client: httpx2.AsyncClient, world: World
) -> None:
    new = await created(world)
    url, admin = f"{URL}/{new['processor_id']}", await world.admin("C")
    till = (
        await client.post(f"{url}/terminals", json={"name": "Till"}, auth=await world.admin())
    ).json()
    another = await created(world)
    for verb, said in (("suspend", SUSPENDED), ("activate", GOOD), ("suspend", SUSPENDED)):
        answer = await client.post(f"{url}/{verb}", json=REASON, auth=admin)
        assert answer.status_code == 200, answer.text
        for process in (other_client, client):
            assert await said_to(process, signed(new)) == said
            assert await said_to(process, signed(till)) == said
            assert await said_to(process, signed(another)) == GOOD


async def test_only_a_right_signature_is_told_about_the_suspension(
    client: httpx2.AsyncClient, world: World
) -> None:
    new = await created(world)
    admin = await world.admin()
    await client.post(f"{URL}/{new['processor_id']}/suspend", json=REASON, auth=admin)
    assert await said_to(client, signed(new | {"hmac_secret": "x"})) == (401, "UNAUTHORIZED")


async def test_both_states_and_the_reason_are_in_record_and_audit_log(
    client: httpx2.AsyncClient, world: World
) -> None:
    before = (await created(world))["processor"]
    url, admin = f"{URL}/{before['id']}", await world.admin("C")
    suspended = (await client.post(f"{url}/suspend", json=REASON, auth=admin)).json()
    assert list(suspended) == ["success", "message", "processor"]
    after = suspended["processor"]
    assert after["updated_at"] > before["updated_at"]
    assert after == before | {
        "status": "suspended",
        "suspend_reason": "chargebacks",
        "updated_at": after["updated_at"],
    }
    assert (await client.get(url, auth=admin)).json() == after

    activated = (await client.post(f"{url}/activate", auth=admin)).json()["processor"]
    assert (activated["status"], activated["suspend_reason"]) == ("active", None)

    (entry,) = await world.audit(before["id"], "processor.suspended")
    assert (entry["actor"]["id"], entry["reason"]) == (admin.id, "chargebacks")
    assert entry["changes"] == {
        "status": ["active", "suspended"],
        "suspend_reason": [None, "chargebacks"],
    }
    (entry,) = await world.audit(before["id"], "processor.activated")
    assert entry["changes"] == {
        "status": ["suspended", "active"],
        "suspend_reason": ["chargebacks", None],
    }


@pytest.mark.parametrize(
    ("first", "verb", "code"),
    [(["suspend"], "suspend", "ALREADY_SUSPENDED"), ([], "activate", "NOT_SUSPENDED")],
)
async def test_a_move_that_is_not_there_is_refused(
    client: httpx2.AsyncClient, world: World, first: list[str], verb: str, code: str
) -> None:
    url, admin = f"{URL}/{(await created(world))['processor_id']}", await world.admin()
    for move in first:
        await client.post(f"{url}/{move}", json=REASON, auth=admin)
    answer = await client.post(f"{url}/{verb}", json=REASON, auth=admin)
    assert (answer.status_code, answer.json()["code"]) == (409, code)


async def test_a_reason_is_needed_to_suspend(client: httpx2.AsyncClient, world: World) -> None:
    url = f"{URL}/{(await created(world))['processor_id']}"
    answer = await client.post(f"{url}/suspend", json={}, auth=await world.admin())
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")


async def test_of_many_at_once_one_suspends(client: httpx2.AsyncClient, world: World) -> None:
    processor_id, admin = (await created(world))["processor_id"], await world.admin()
    answers = await asyncio.gather(
        *(client.post(f"{URL}/{processor_id}/suspend", json=REASON, auth=admin) for _ in range(10))
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 9
    assert len(await world.audit(processor_id, "processor.suspended")) == 1


async def test_who_asked_to_be_told_is_told_about_the_suspension(
    client: httpx2.AsyncClient, world: World, services: Services
) -> None:
    await services.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
           VALUES (1, 'https://example.com', '{processor.suspended}', '', now())"""
    )
    url, admin = f"{URL}/{(await created(world))['processor_id']}", await world.admin()
    suspended = (await client.post(f"{url}/suspend", json=REASON, auth=admin)).json()
    await client.post(f"{url}/activate", auth=admin)
    (event,) = await services.database.fetch("SELECT type, data FROM events")
    assert tuple(event) == ("processor.suspended", suspended["processor"])
