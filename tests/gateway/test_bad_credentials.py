"""A credential that is not good any more, or never was, opens no endpoint, and every endpoint says
so in the same words."""

from collections.abc import AsyncIterator, Sequence

import pytest

from conftest import Copies
from gateway.house import House, open_house, path_of, said
from gateway.tampered import Bad, Tampered, bad_credentials, sent
from tapgate.cli.manual import list_endpoints
from tapgate.edge.endpoint import Endpoint

CLOSED = [endpoint for endpoint in list_endpoints() if not endpoint.access.public]


class Scene:
    def __init__(self, house: House, bad: Sequence[Bad]) -> None:
        self.house = house
        self.bad = bad


@pytest.fixture(scope="module")
async def scene(
    tmp_path_factory: pytest.TempPathFactory, postgres: str, copies: Copies
) -> AsyncIterator[Scene]:
    async with open_house(tmp_path_factory.mktemp("house"), postgres, copies) as house:
        yield Scene(house, await bad_credentials(house))


@pytest.mark.parametrize("endpoint", CLOSED, ids=lambda endpoint: endpoint.name)
async def test_no_bad_credential_passes(scene: Scene, endpoint: Endpoint) -> None:
    client, path, before = scene.house.client, path_of(endpoint), await scene.house.denials()
    for bad in scene.bad:
        answer = await client.request(endpoint.method, path, content=b"{}", auth=bad.auth)
        assert said(answer) == (bad.status, bad.code), (bad.name, answer.text)
        assert answer.status_code == 403 or answer.headers["WWW-Authenticate"]
        assert "details" not in answer.json(), bad.name
    # Nobody was known, so nobody was refused a right.
    assert await scene.house.denials() == before


async def test_a_key_that_exists_is_not_told_from_one_that_does_not(scene: Scene) -> None:
    client = scene.house.client
    words: dict[str, set[str]] = {}
    alike = {
        "key": ("unknown key", "a longer key", "a shorter key", "an expired key", "a deleted key"),
        "signature": (
            "an unknown signing key",
            "another's secret",
            "a deleted signing key",
            "another body",
            "a suspended processor, wrongly signed",
        ),
        "service": ("an unknown service", "a service with another's secret"),
        "session": ("a disabled admin", "an ended session", "a token of another's session"),
    }
    for kind, names in alike.items():
        for bad in scene.bad:
            if bad.name in names:
                answer = await client.post("/api/v1/pos/lookup-card", json={}, auth=bad.auth)
                words.setdefault(kind, set()).add(answer.text)
    assert {kind: len(said) for kind, said in words.items()} == dict.fromkeys(alike, 1)


async def test_of_several_good_credentials_the_first_kind_decides(scene: Scene) -> None:
    """The order is in docs/signing.md: signatures of clients, of services, then Authorization."""
    house, path = scene.house, "/api/v1/admin/me"
    admin = await house.world.admin()
    token = (await house.client.get(path, auth=admin)).request.headers["Authorization"]
    assert (await house.client.get(path, auth=admin)).status_code == 200
    for other in (house.processor, house.terminal, house.partner, house.world.service()):
        both = Tampered(other, sent(Authorization=token))
        assert said(await house.client.get(path, auth=both)) == (403, "FORBIDDEN")
    service = house.world.service()
    both = Tampered(service, sent(Authorization="Bearer nonsense"))
    assert (await house.client.get("/api/v1/subscribers", auth=both)).status_code == 200


async def test_a_rotated_key_is_good_beside_the_old_one(scene: Scene) -> None:
    world = scene.house.world
    till = await world.processor()
    owner, admin = await world.processor_of(till), await world.admin()
    added = await world.client.post(f"/api/v1/processors/{owner}/keys", json={}, auth=admin)
    new = type(till)(added.json()["api_key_id"], added.json()["hmac_secret"])
    look_up = "/api/v1/pos/lookup-card"
    for key in (till, new):
        answer = await world.client.post(look_up, json={"card_identifier": "X"}, auth=key)
        assert said(answer) == (404, "CARD_NOT_FOUND")
    await world.client.delete(f"/api/v1/processors/{owner}/keys/{till.id}", auth=admin)
    for key, expected in ((till, (401, "UNAUTHORIZED")), (new, (404, "CARD_NOT_FOUND"))):
        answer = await world.client.post(look_up, json={"card_identifier": "X"}, auth=key)
        assert said(answer) == expected


async def test_an_access_token_is_no_refresh_token(scene: Scene) -> None:
    house = scene.house
    admin = await house.world.admin()
    token = (await house.client.get("/api/v1/admin/me", auth=admin)).request.headers[
        "Authorization"
    ]
    body = {"refresh_token": token.removeprefix("Bearer ")}
    answer = await house.client.post("/api/v1/admin/refresh", json=body)
    assert said(answer) == (401, "UNAUTHORIZED")
    assert (await house.client.get("/api/v1/admin/me", auth=admin)).status_code == 200
