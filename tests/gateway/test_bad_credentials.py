"""Invalid credentials are rejected by every endpoint with the same error."""

from collections.abc import AsyncIterator, Sequence

import pytest

from conftest import ScratchDatabases
from gateway.access_fixtures import (
    AccessFixtures,
    build_missing_path,
    get_status_and_code,
    run_access_fixtures,
)
from gateway.bad_credentials import (
    BadCredential,
    TamperedAuth,
    list_bad_credentials,
    replace_headers,
)
from tapgate.cli.manual import list_endpoints
from tapgate.edge.endpoint import Endpoint

PROTECTED_ENDPOINTS = [endpoint for endpoint in list_endpoints() if not endpoint.access.public]


class BadCredentialFixtures:
    def __init__(self, house: AccessFixtures, bad: Sequence[BadCredential]) -> None:
        self.access_fixtures = house
        self.bad_credentials = bad


@pytest.fixture(scope="module")
async def scene(
    tmp_path_factory: pytest.TempPathFactory, postgres: str, copies: ScratchDatabases
) -> AsyncIterator[BadCredentialFixtures]:
    async with run_access_fixtures(tmp_path_factory.mktemp("house"), postgres, copies) as house:
        yield BadCredentialFixtures(house, await list_bad_credentials(house))


@pytest.mark.parametrize("endpoint", PROTECTED_ENDPOINTS, ids=lambda endpoint: endpoint.name)
async def test_bad_credentials_are_rejected(
    scene: BadCredentialFixtures, endpoint: Endpoint
) -> None:
    client, path, before = (
        scene.access_fixtures.client,
        build_missing_path(endpoint),
        await scene.access_fixtures.count_denials(),
    )
    for bad in scene.bad_credentials:
        answer = await client.request(endpoint.method, path, content=b"{}", auth=bad.auth)
        assert get_status_and_code(answer) == (bad.status, bad.code), (bad.name, answer.text)
        assert answer.status_code == 403 or answer.headers["WWW-Authenticate"]
        assert "details" not in answer.json(), bad.name
    # No principal was authenticated, so no denial is recorded.
    assert await scene.access_fixtures.count_denials() == before


async def test_error_does_not_reveal_whether_a_credential_exists(
    scene: BadCredentialFixtures,
) -> None:
    client = scene.access_fixtures.client
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
        for bad in scene.bad_credentials:
            if bad.name in names:
                answer = await client.post("/api/v1/pos/lookup-card", json={}, auth=bad.auth)
                words.setdefault(kind, set()).add(answer.text)
    assert {kind: len(said) for kind, said in words.items()} == dict.fromkeys(alike, 1)


async def test_first_credential_kind_decides_when_several_are_valid(
    scene: BadCredentialFixtures,
) -> None:
    """docs/signing.md sets the order: client signatures, service signatures, then Authorization."""
    house, path = scene.access_fixtures, "/api/v1/admin/me"
    admin = await house.harness.create_admin()
    token = (await house.client.get(path, auth=admin)).request.headers["Authorization"]
    assert (await house.client.get(path, auth=admin)).status_code == 200
    for other in (house.processor, house.terminal, house.partner, house.harness.get_service_auth()):
        both = TamperedAuth(other, replace_headers(Authorization=token))
        assert get_status_and_code(await house.client.get(path, auth=both)) == (403, "FORBIDDEN")
    service = house.harness.get_service_auth()
    both = TamperedAuth(service, replace_headers(Authorization="Bearer nonsense"))
    assert (await house.client.get("/api/v1/subscribers", auth=both)).status_code == 200


async def test_new_signing_key_is_valid_alongside_the_old_key(scene: BadCredentialFixtures) -> None:
    world = scene.access_fixtures.harness
    till = await world.create_processor()
    owner, admin = await world.get_processor_id(till), await world.create_admin()
    added = await world.client.post(f"/api/v1/processors/{owner}/keys", json={}, auth=admin)
    new = type(till)(added.json()["api_key_id"], added.json()["hmac_secret"])
    look_up = "/api/v1/pos/lookup-card"
    for key in (till, new):
        answer = await world.client.post(look_up, json={"card_identifier": "X"}, auth=key)
        assert get_status_and_code(answer) == (404, "CARD_NOT_FOUND")
    await world.client.delete(f"/api/v1/processors/{owner}/keys/{till.id}", auth=admin)
    for key, expected in ((till, (401, "UNAUTHORIZED")), (new, (404, "CARD_NOT_FOUND"))):
        answer = await world.client.post(look_up, json={"card_identifier": "X"}, auth=key)
        assert get_status_and_code(answer) == expected


async def test_access_token_is_not_accepted_as_a_refresh_token(
    scene: BadCredentialFixtures,
) -> None:
    house = scene.access_fixtures
    admin = await house.harness.create_admin()
    token = (await house.client.get("/api/v1/admin/me", auth=admin)).request.headers[
        "Authorization"
    ]
    body = {"refresh_token": token.removeprefix("Bearer ")}
    answer = await house.client.post("/api/v1/admin/refresh", json=body)
    assert get_status_and_code(answer) == (401, "UNAUTHORIZED")
    assert (await house.client.get("/api/v1/admin/me", auth=admin)).status_code == 200
