"""ID tokens: every claim wrong in turn, algorithms, keys and their rotation."""

from typing import Any

import jwt
import pytest

from builders.single_sign_on import SsoClient
from cases import each
from drivers.identity_provider import CLIENT_ID, FakeProvider, build_jwk, build_key
from harness import parse_error
from tapgate.auth.oidc import cached_document
from tapgate.runtime.store.database import Database

_HASH_OF_ACCESS = "oFYf1knNtrqnhAVfBRuteQ"


async def require_rejected(sso: SsoClient, reason: str) -> None:
    response = await sso.log_in()
    assert parse_error(response) == (401, "UNAUTHORIZED"), response.text
    assert response.json()["message"].endswith(f"({reason})."), response.text


@each(
    "claims, reason",
    [
        ({"iss": "http://127.0.0.1:1"}, "iss"),
        ({"iss": None}, "missing or malformed claim"),
        ({"sub": None}, "missing or malformed claim"),
        ({"sub": ""}, "sub"),
        ({"sub": "x" * 256}, "sub"),
        ({"sub": "a\0b"}, "sub"),
        ({"sub": 7}, "missing or malformed claim"),
        ({"aud": "other"}, "aud"),
        ({"aud": ["other", "another"]}, "aud"),
        ({"aud": []}, "aud"),
        ({"aud": None}, "missing or malformed claim"),
        ({"aud": [CLIENT_ID, "other"]}, "azp"),
        ({"azp": "other"}, "azp"),
        ({"exp": lambda now: now - 120}, "exp"),
        ({"exp": None}, "missing or malformed claim"),
        ({"exp": "tomorrow"}, "missing or malformed claim"),
        ({"exp": float("nan")}, "exp"),
        ({"iat": lambda now: now + 600}, "iat"),
        ({"iat": None}, "missing or malformed claim"),
        ({"nbf": lambda now: now + 600}, "nbf"),
        ({"nonce": "other"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"at_hash": "AAAA"}, "at_hash"),
        ({"email": "grace"}, "email"),
        ({"email": ["grace@example.com"]}, "missing or malformed claim"),
    ],
)
async def test_token_with_one_wrong_claim_is_rejected(
    sso: SsoClient, provider: FakeProvider, database: Database, claims: dict[str, Any], reason: str
) -> None:
    provider.claims = claims
    await require_rejected(sso, reason)
    assert await database.fetchval("SELECT count(*) FROM admins") == 0


@each(
    "claims, message",
    [
        ({"email": None}, "sent no email address"),
        ({"email_verified": False}, "not verified"),
        ({"email_verified": "false"}, "not verified"),
        ({"groups": None}, "no role in Tapgate"),
        ({"groups": ["staff"]}, "no role in Tapgate"),
        ({"groups": {"tapgate-admins": True}}, "no role in Tapgate"),
    ],
)
async def test_person_without_verified_email_or_role_is_refused(
    sso: SsoClient, provider: FakeProvider, database: Database, claims: dict[str, Any], message: str
) -> None:
    provider.claims = claims
    response = await sso.log_in()
    assert parse_error(response) == (403, "FORBIDDEN")
    assert message in response.json()["message"]
    assert await database.fetchval("SELECT count(*) FROM admins") == 0


@each(
    "claims",
    [
        {"aud": [CLIENT_ID, "other"], "azp": CLIENT_ID},
        {"at_hash": _HASH_OF_ACCESS},
        {"email_verified": None},
        {"email_verified": "true"},
        {"exp": lambda now: now - 10},
        {"groups": "tapgate-admins"},
        {"name": "\ud800"},
        {"name": None},
    ],
)
async def test_unusual_valid_tokens_are_accepted(sso: SsoClient, claims: dict[str, Any]) -> None:
    await sso.require_login(**claims)


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
async def test_accepted_algorithms(sso: SsoClient, provider: FakeProvider, algorithm: str) -> None:
    provider.use_key(algorithm, "key")
    await sso.require_login()


async def test_unsigned_token_is_rejected(sso: SsoClient, provider: FakeProvider) -> None:
    provider.key, provider.algorithm = None, "none"
    await require_rejected(sso, "alg")


async def test_token_signed_with_the_public_key_as_secret_is_rejected(
    sso: SsoClient, provider: FakeProvider
) -> None:
    provider.key, provider.algorithm = provider.keys[0]["n"], "HS256"
    await require_rejected(sso, "alg")


async def test_token_signed_with_the_client_secret_is_rejected(
    sso: SsoClient, provider: FakeProvider
) -> None:
    provider.key, provider.algorithm = provider.settings.client_secret, "HS256"
    await require_rejected(sso, "alg")


async def test_token_signed_with_another_key_is_rejected(
    sso: SsoClient, provider: FakeProvider
) -> None:
    provider.key = build_key("RS256", 1)
    await require_rejected(sso, "signature")


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"alg": "PS256"}, "kid"),
        ({"crit": ["exp"]}, "format"),
    ],
)
async def test_token_with_a_wrong_header_is_rejected(
    sso: SsoClient, provider: FakeProvider, headers: dict[str, Any], reason: str
) -> None:
    provider.token_headers = headers
    await require_rejected(sso, reason)


@each(
    "token, reason",
    [
        ("nonsense", "format"),
        ("..", "format"),
        ("x" * 70_000, "length"),
        (
            jwt.api_jws.encode(b"[]", build_key("RS256"), "RS256", {"kid": "first"}),
            "signature",
        ),
    ],
)
async def test_malformed_token_is_rejected(
    sso: SsoClient, provider: FakeProvider, token: str, reason: str
) -> None:
    provider.id_token = token
    await require_rejected(sso, reason)


async def test_token_without_key_id_uses_the_only_key(
    sso: SsoClient, provider: FakeProvider
) -> None:
    provider.key_id = None
    await sso.require_login()


async def test_token_without_key_id_is_rejected_if_there_are_several_keys(
    sso: SsoClient, provider: FakeProvider
) -> None:
    provider.key_id = None
    provider.keys.append(build_jwk("RS256", build_key("RS256", 1), kid="second"))
    await require_rejected(sso, "kid")


@pytest.mark.parametrize(
    "key",
    [
        {"use": "enc"},
        {"n": "AQAB"},
        {"n": "?"},
        {"n": None},
        {"kty": "oct", "k": "AAAA"},
    ],
)
async def test_unsuitable_key_is_not_used(
    sso: SsoClient, provider: FakeProvider, key: dict[str, Any]
) -> None:
    provider.keys = [{**provider.keys[0], **key}]
    await require_rejected(sso, "kid")


async def test_new_key_of_the_provider_is_loaded_at_most_once_a_minute(
    sso: SsoClient, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sso.require_login()
    provider.use_key("ES256", "second")
    await require_rejected(sso, "kid")
    await require_rejected(sso, "kid")
    assert provider.requests.count("/keys") == 1
    monkeypatch.setattr(cached_document, "MIN_REFRESH_INTERVAL", cached_document.LIFETIME * 0)
    await sso.require_login()
    assert provider.requests.count("/keys") == 2
