"""Every protected endpoint rejects an invalid credential with the same error."""

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
from tapgate.api.endpoint import Endpoint
from tapgate.cli.manual import list_endpoints

PROTECTED_ENDPOINTS = [endpoint for endpoint in list_endpoints() if not endpoint.access.public]


class BadCredentialFixtures:
    def __init__(self, access_fixtures: AccessFixtures, bad: Sequence[BadCredential]) -> None:
        self.access_fixtures = access_fixtures
        self.bad_credentials = bad


@pytest.fixture(scope="module")
async def bad_credential_fixtures(
    tmp_path_factory: pytest.TempPathFactory, postgres: str, scratch_databases: ScratchDatabases
) -> AsyncIterator[BadCredentialFixtures]:
    async with run_access_fixtures(
        tmp_path_factory.mktemp("gateway"), postgres, scratch_databases
    ) as access_fixtures:
        yield BadCredentialFixtures(access_fixtures, await list_bad_credentials(access_fixtures))


@pytest.mark.parametrize("endpoint", PROTECTED_ENDPOINTS, ids=lambda endpoint: endpoint.name)
async def test_invalid_credentials_are_rejected_and_not_audited_as_denials(
    bad_credential_fixtures: BadCredentialFixtures, endpoint: Endpoint
) -> None:
    client, path, before = (
        bad_credential_fixtures.access_fixtures.client,
        build_missing_path(endpoint),
        await bad_credential_fixtures.access_fixtures.count_denials(),
    )
    for bad in bad_credential_fixtures.bad_credentials:
        response = await client.request(endpoint.method, path, content=b"{}", auth=bad.auth)
        assert get_status_and_code(response) == (bad.status, bad.code), (bad.name, response.text)
        assert response.status_code == 403 or response.headers["WWW-Authenticate"]
        assert "details" not in response.json(), bad.name
    # No principal was authenticated, so no denial is recorded.
    assert await bad_credential_fixtures.access_fixtures.count_denials() == before


async def test_error_does_not_reveal_whether_a_credential_exists(
    bad_credential_fixtures: BadCredentialFixtures,
) -> None:
    client = bad_credential_fixtures.access_fixtures.client
    texts: dict[str, set[str]] = {}
    names_by_kind = {
        "key": ("unknown key", "a longer key", "a shorter key", "an expired key", "a deleted key"),
        "signature": (
            "an unknown signing key",
            "another processor's secret",
            "a deleted signing key",
            "another body",
            "a suspended processor, wrongly signed",
        ),
        "service": ("an unknown service", "a service with another service's secret"),
        "session": ("a disabled admin", "an ended session", "a token with another admin's session"),
    }
    auth_by_name = {bad.name: bad.auth for bad in bad_credential_fixtures.bad_credentials}
    for kind, names in names_by_kind.items():
        for name in names:
            response = await client.post(
                "/api/v1/pos/lookup-card", json={}, auth=auth_by_name[name]
            )
            texts.setdefault(kind, set()).add(response.text)
    assert {kind: len(values) for kind, values in texts.items()} == dict.fromkeys(names_by_kind, 1)


async def test_first_credential_kind_decides_when_several_are_valid(
    bad_credential_fixtures: BadCredentialFixtures,
) -> None:
    """docs/signing.md sets the order: client signatures, service signatures, then Authorization."""
    access_fixtures, path = bad_credential_fixtures.access_fixtures, "/api/v1/admin/me"
    admin = await access_fixtures.harness.create_admin()
    token = (await access_fixtures.client.get(path, auth=admin)).request.headers["Authorization"]
    assert (await access_fixtures.client.get(path, auth=admin)).status_code == 200
    for other in (
        access_fixtures.processor,
        access_fixtures.terminal,
        access_fixtures.partner,
        access_fixtures.harness.get_service_auth(),
    ):
        both = TamperedAuth(other, replace_headers(Authorization=token))
        assert get_status_and_code(await access_fixtures.client.get(path, auth=both)) == (
            403,
            "FORBIDDEN",
        )
    service = access_fixtures.harness.get_service_auth()
    both = TamperedAuth(service, replace_headers(Authorization="Bearer nonsense"))
    assert (await access_fixtures.client.get("/api/v1/subscribers", auth=both)).status_code == 200


async def test_new_signing_key_is_valid_alongside_the_old_key(
    bad_credential_fixtures: BadCredentialFixtures,
) -> None:
    harness = bad_credential_fixtures.access_fixtures.harness
    terminal_auth = await harness.create_processor()
    owner, admin = await harness.get_processor_id(terminal_auth), await harness.create_admin()
    added = await harness.client.post(f"/api/v1/processors/{owner}/keys", json={}, auth=admin)
    new = type(terminal_auth)(added.json()["api_key_id"], added.json()["hmac_secret"])
    look_up = "/api/v1/pos/lookup-card"
    for key in (terminal_auth, new):
        response = await harness.client.post(look_up, json={"card_identifier": "X"}, auth=key)
        assert get_status_and_code(response) == (404, "CARD_NOT_FOUND")
    await harness.client.delete(f"/api/v1/processors/{owner}/keys/{terminal_auth.id}", auth=admin)
    for key, expected in ((terminal_auth, (401, "UNAUTHORIZED")), (new, (404, "CARD_NOT_FOUND"))):
        response = await harness.client.post(look_up, json={"card_identifier": "X"}, auth=key)
        assert get_status_and_code(response) == expected


async def test_access_token_is_not_accepted_as_a_refresh_token(
    bad_credential_fixtures: BadCredentialFixtures,
) -> None:
    access_fixtures = bad_credential_fixtures.access_fixtures
    admin = await access_fixtures.harness.create_admin()
    token = (await access_fixtures.client.get("/api/v1/admin/me", auth=admin)).request.headers[
        "Authorization"
    ]
    body = {"refresh_token": token.removeprefix("Bearer ")}
    response = await access_fixtures.client.post("/api/v1/admin/refresh", json=body)
    assert get_status_and_code(response) == (401, "UNAUTHORIZED")
    assert (await access_fixtures.client.get("/api/v1/admin/me", auth=admin)).status_code == 200
