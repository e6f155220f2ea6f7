"""The identity provider: discovery, caching, outages, slow and oversized responses."""

from datetime import timedelta
from typing import Any

import pytest

from builders.auth import EMAIL, PASSWORD, FakeClock, Headers
from builders.single_sign_on import LOGIN_URL, SsoClient
from cases import each
from drivers.identity_provider import FakeProvider, Response
from harness import Harness, parse_error
from tapgate.auth.oidc import requests
from tapgate.auth.oidc.cached_document import LIFETIME, RETRY_DELAY
from tapgate.auth.oidc.provider import Provider
from tapgate.auth.oidc.requests import MAX_RESPONSE_BYTES, ProviderError

DISCOVERY = "/.well-known/openid-configuration"


async def test_nothing_is_downloaded_before_the_first_login(
    harness: Harness, provider: FakeProvider, ada: Headers
) -> None:
    assert provider.requests == []
    await harness.post(f"{LOGIN_URL}/start")
    await harness.post(f"{LOGIN_URL}/start")
    assert provider.requests == [DISCOVERY]


async def test_metadata_is_downloaded_again_after_an_hour(provider: FakeProvider) -> None:
    clock = FakeClock()
    remote = Provider(provider.settings, clock)
    await remote.get_metadata()
    clock.now += LIFETIME - timedelta(seconds=1)
    await remote.get_metadata()
    assert len(provider.requests) == 1
    clock.now += timedelta(seconds=1)
    await remote.get_metadata()
    assert len(provider.requests) == 2


@each(
    "metadata",
    [
        {"issuer": "http://127.0.0.1:1"},
        {"issuer": None},
        {"token_endpoint": None},
        {"token_endpoint": 7},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "/keys"},
        {"token_endpoint": "http://[invalid/"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": "http://provider/\r\nSet-Cookie: a=b"},
        {"authorization_endpoint": "http://provider/authorize#fragment"},
        {"end_session_endpoint": "//provider/logout"},
    ],
)
async def test_malformed_metadata_is_rejected(
    provider: FakeProvider, metadata: dict[str, Any]
) -> None:
    provider.metadata = metadata
    with pytest.raises(ProviderError):
        await Provider(provider.settings, FakeClock()).get_metadata()


def test_https_issuer_must_have_https_endpoints(provider: FakeProvider) -> None:
    settings = provider.settings.replace(issuer="https://provider.example.com")
    remote = Provider(settings, FakeClock())
    with pytest.raises(ProviderError, match="invalid endpoint"):
        remote.require_valid_endpoint("http://provider.example.com/token")
    remote.require_valid_endpoint("https://login.example.com/token")


@each(
    "response",
    [
        Response(500),
        Response(404, b"{}"),
        Response(200, b"<html>"),
        Response(200, b"[" * 100_000),
        Response(200, b"{}"),
        Response(302, b"", ("Location: http://127.0.0.1:1/",)),
        Response(200, b" " * (MAX_RESPONSE_BYTES + 1)),
        Response(200, b"{}", ("Content-Encoding: gzip",)),
    ],
)
async def test_unusable_response_makes_the_provider_unavailable(
    harness: Harness, provider: FakeProvider, response: Response
) -> None:
    provider.responses = {DISCOVERY: response}
    clock = FakeClock()
    remote = Provider(provider.settings, clock)
    with pytest.raises(ProviderError):
        await remote.get_metadata()
    provider.responses = {}
    clock.now += RETRY_DELAY
    await remote.get_metadata()


async def test_failed_download_is_not_repeated_for_some_seconds(provider: FakeProvider) -> None:
    provider.responses = {DISCOVERY: Response(503)}
    clock = FakeClock()
    remote = Provider(provider.settings, clock)
    for _ in range(3):
        with pytest.raises(ProviderError):
            await remote.get_metadata()
    assert len(provider.requests) == 1


@each(
    "path, response",
    [
        ("/token", Response(200, b"x" * (MAX_RESPONSE_BYTES + 1))),
        ("/token", Response(200, b'{"access_token": "no ID token"}')),
        ("/keys", Response(200, b'{"keys": [' + b"{}," * 100 + b"{}]}")),
    ],
)
async def test_unusable_token_or_key_response_is_reported_as_unavailable(
    sso: SsoClient, provider: FakeProvider, path: str, response: Response
) -> None:
    provider.responses = {path: response}
    failed = await sso.log_in()
    assert parse_error(failed) == (503, "SERVICE_UNAVAILABLE")
    assert int(failed.headers["Retry-After"]) > 0


async def test_password_login_works_while_the_provider_is_down(
    harness: Harness, provider: FakeProvider, ada: Headers
) -> None:
    provider.responses = {DISCOVERY: Response(503)}
    assert parse_error(await harness.post(f"{LOGIN_URL}/start")) == (503, "SERVICE_UNAVAILABLE")
    login = {"email": EMAIL, "password": PASSWORD}
    assert (await harness.post("/api/v1/admin/login", json=login)).status_code == 200


async def test_slow_provider_times_out(
    harness: Harness, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "TIMEOUT_SECONDS", 0.05)
    provider.responds.clear()
    assert parse_error(await harness.post(f"{LOGIN_URL}/start")) == (503, "SERVICE_UNAVAILABLE")


async def test_unreachable_provider_is_unavailable(provider: FakeProvider) -> None:
    settings = provider.settings.replace(issuer="http://127.0.0.1:1")
    with pytest.raises(ProviderError):
        await Provider(settings, FakeClock()).get_metadata()


@pytest.mark.parametrize(
    "methods", [["client_secret_post"], ["client_secret_basic", "client_secret_post"], None]
)
async def test_client_authenticates_as_the_provider_supports(
    harness: Harness, provider: FakeProvider, sso: SsoClient, methods: list[str] | None
) -> None:
    provider.metadata = {"token_endpoint_auth_methods_supported": methods}
    await sso.require_login()
