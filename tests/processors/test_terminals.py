"""A processor's terminals."""

from typing import Any

import httpx2
import pytest

from processors.stage import GOOD, URL, created, said_to, signed
from tapgate import ids
from tapgate.clock import format_rfc3339
from tapgate.edge.services import Services
from world import World

BLOCKED = (403, "TERMINAL_BLOCKED")


async def _terminals(world: World) -> str:
    """The address of a new processor's terminals."""
    return f"{URL}/{(await created(world))['processor_id']}/terminals"


async def _added(world: World, terminals: str, name: str = "Till 1") -> dict[str, Any]:
    answer = await world.client.post(terminals, json={"name": name}, auth=await world.admin())
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_a_terminal_is_added_with_a_key_of_its_own(
    client: httpx2.AsyncClient, world: World, services: Services
) -> None:
    terminals = await _terminals(world)
    added = await _added(world, terminals)
    assert list(added) == ["terminal", "api_key_id", "hmac_secret"]
    terminal = added["terminal"]
    assert terminal == {
        "id": terminal["id"],
        "processor_id": terminals.split("/")[4],
        "name": "Till 1",
        "status": "active",
        "api_key_id": added["api_key_id"],
        "last_seen_at": None,
        "created_at": terminal["created_at"],
    }
    assert terminal["id"].startswith("ter_")
    assert await said_to(client, signed(added)) == GOOD
    key = await services.authenticator.hmac_keys.find(added["api_key_id"].encode())
    assert key is not None
    assert key.principal.terminal_id == ids.decode(ids.TERMINAL, terminal["id"])
    (entry,) = await world.audit(terminal["id"], "terminal.created")
    assert entry["changes"]["processor_id"] == [None, terminal["processor_id"]]
    assert added["hmac_secret"] not in str(entry)


async def test_terminals_are_listed_newest_first_in_pages(
    client: httpx2.AsyncClient, world: World, services: Services
) -> None:
    terminals, admin = await _terminals(world), await world.admin()
    await _added(world, await _terminals(world), "another's")
    made = [(await _added(world, terminals, name))["terminal"] for name in ("one", "two", "three")]
    seen = services.clock()
    await services.database.execute(
        "UPDATE terminals SET last_seen_at = $2 WHERE id = $1",
        ids.decode(ids.TERMINAL, made[1]["id"]),
        seen,
    )
    made[1]["last_seen_at"] = format_rfc3339(seen)
    first = (await client.get(terminals, params={"limit": 2}, auth=admin)).json()
    assert first["data"] == [made[2], made[1]]
    rest = {"limit": 2, "cursor": first["next_cursor"]}
    second = (await client.get(terminals, params=rest, auth=admin)).json()
    assert second == {"data": [made[0]], "has_more": False, "next_cursor": None}


async def test_a_blocked_terminals_key_is_refused_at_once_in_every_process(
    client: httpx2.AsyncClient, other_client: httpx2.AsyncClient, world: World
) -> None:
    terminals, admin = await _terminals(world), await world.admin()
    till, another = await _added(world, terminals), await _added(world, terminals)
    url = f"{terminals}/{till['terminal']['id']}"
    for verb, status, said in (
        ("block", "blocked", BLOCKED),
        ("unblock", "active", GOOD),
        ("block", "blocked", BLOCKED),
    ):
        answer = await client.post(f"{url}/{verb}", json={"reason": "stolen"}, auth=admin)
        assert answer.status_code == 200, answer.text
        assert list(answer.json()) == ["success", "message", "terminal"]
        assert answer.json()["terminal"] == till["terminal"] | {"status": status}
        for process in (other_client, client):
            assert await said_to(process, signed(till)) == said
            assert await said_to(process, signed(another)) == GOOD
    first, second = await world.audit(till["terminal"]["id"], "terminal.blocked")
    assert first["changes"] == second["changes"] == {"status": ["active", "blocked"]}
    assert first["reason"] == "stolen"


async def test_a_move_that_is_not_there_is_refused(
    client: httpx2.AsyncClient, world: World
) -> None:
    terminals, admin = await _terminals(world), await world.admin()
    url = f"{terminals}/{(await _added(world, terminals))['terminal']['id']}"
    answer = await client.post(f"{url}/unblock", auth=admin)
    assert (answer.status_code, answer.json()["code"]) == (409, "NOT_BLOCKED")
    await client.post(f"{url}/block", auth=admin)
    answer = await client.post(f"{url}/block", auth=admin)
    assert (answer.status_code, answer.json()["code"]) == (409, "ALREADY_BLOCKED")


async def test_another_processors_terminal_is_not_found(
    client: httpx2.AsyncClient, world: World
) -> None:
    terminals, admin = await _terminals(world), await world.admin()
    others = (await _added(world, await _terminals(world)))["terminal"]["id"]
    for id in (others, ids.encode(ids.TERMINAL, 1), "ter_1", "é"):
        for verb in ("block", "unblock"):
            answer = await client.post(f"{terminals}/{id}/{verb}", auth=admin)
            assert (answer.status_code, answer.json()["code"]) == (404, "TERMINAL_NOT_FOUND")


@pytest.mark.parametrize(("body", "status"), [({}, 400), ({"name": 1}, 400), ({"name": ""}, 422)])
async def test_a_terminal_needs_a_name(
    client: httpx2.AsyncClient, world: World, body: dict[str, object], status: int
) -> None:
    answer = await client.post(await _terminals(world), json=body, auth=await world.admin())
    assert answer.status_code == status
