"""Every protected endpoint rejects an invalid credential with the same error."""

from collections.abc import Sequence

import pytest

from cases import run_cases
from server.gateway.bad_credentials import (
    BadCredential,
    TamperedAuth,
    list_bad_credentials,
    replace_headers,
)
from server.gateway.fixtures import AccessFixtures, build_missing_path, get_status_and_code
from tapgate.http.endpoint import Endpoint
from tapgate.server.gateway import list_endpoints

PROTECTED_ENDPOINTS = [endpoint for endpoint in list_endpoints() if not endpoint.access.public]


class BadCredentialFixtures:
    def __init__(
        self, access_fixtures: AccessFixtures, kinds: Sequence[Sequence[BadCredential]]
    ) -> None:
        self.access_fixtures = access_fixtures
        self.first_of_each_kind = [kind[0] for kind in kinds]
        self.bad_credentials = [bad for kind in kinds for bad in kind]


@pytest.fixture(scope="session")
async def bad_credential_fixtures(access_fixtures: AccessFixtures) -> BadCredentialFixtures:
    return BadCredentialFixtures(access_fixtures, await list_bad_credentials(access_fixtures))


async def test_invalid_credentials_are_rejected_and_not_audited_as_denials(
    bad_credential_fixtures: BadCredentialFixtures,
) -> None:
    """Try one of each kind at every endpoint, and all at one endpoint per kind of access."""
    seen: set[tuple[bool, bool, bool, str | None]] = set()
    cases = []
    for endpoint in PROTECTED_ENDPOINTS:
        access = endpoint.access
        shape = (access.scope is None, not access.roles, access.service, access.hmac)
        bad = bad_credential_fixtures.first_of_each_kind
        if shape not in seen:
            bad = bad_credential_fixtures.bad_credentials
        seen.add(shape)
        check = check_rejected(bad_credential_fixtures.access_fixtures, endpoint, bad)
        cases.append((endpoint.name, check))
    await run_cases(cases)


async def check_rejected(
    access_fixtures: AccessFixtures, endpoint: Endpoint, bad_credentials: Sequence[BadCredential]
) -> None:
    path, before = build_missing_path(endpoint), await access_fixtures.count_denials()
    for bad in bad_credentials:
        response = await access_fixtures.client.request(
            endpoint.method, path, content=b"{}", auth=bad.auth
        )
        assert get_status_and_code(response) == (bad.status, bad.code), (bad.name, response.text)
        assert response.status_code == 403 or response.headers["WWW-Authenticate"]
        assert "details" not in response.json(), bad.name
    # No principal was authenticated, so no denial is recorded.
    assert await access_fixtures.count_denials() == before


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


async def test_bearer_token_decides_when_several_credentials_are_sent(
    bad_credential_fixtures: BadCredentialFixtures,
) -> None:
    """docs/signing.md sets the order. The rights of two credentials are never combined."""
    access_fixtures, path = bad_credential_fixtures.access_fixtures, "/api/v1/admin/me"
    harness, client = access_fixtures.harness, access_fixtures.client
    admin, service = await harness.create_admin(), harness.get_service_auth()
    token = (await client.get(path, auth=admin)).request.headers["Authorization"]
    key = (await client.get(path, auth=await harness.create_api_key("cards:read"))).request
    for other in (
        access_fixtures.processor,
        access_fixtures.terminal,
        access_fixtures.partner,
        service,
    ):
        both = TamperedAuth(other, replace_headers(Authorization=token))
        assert (await client.get(path, auth=both)).status_code == 200
    for authorization, status in ((key.headers["Authorization"], 403), ("Bearer nonsense", 401)):
        both = TamperedAuth(service, replace_headers(Authorization=authorization))
        assert (await client.get("/api/v1/subscribers", auth=both)).status_code == status
    # A generated client sends its token in every header that an operation documents.
    names = ("X_Service_Name", "X_Service_Timestamp", "X_Service_Signature", "X_API_Key_ID")
    names += ("X_Timestamp", "X_Signature", "X_Partner_ID")
    for value in ("svc_test_x", ""):
        everywhere = TamperedAuth(admin, replace_headers(**dict.fromkeys(names, value)))
        assert (await client.get(path, auth=everywhere)).status_code == 200
