"""Forged, stolen, and revoked tokens."""

import asyncio
import base64
import hmac
import json
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from harness import BearerAuth, Harness
from tapgate import ids

ADMINS_URL = "/api/v1/admin/users"
LOGIN_URL, LOGOUT_URL = "/api/v1/admin/login", "/api/v1/admin/logout"
REFRESH_URL, ME_URL = "/api/v1/admin/refresh", "/api/v1/admin/me"
EMAIL, PASSWORD = "eve@example.com", "correct horse battery"


@pytest.fixture
async def admin_id(harness: Harness) -> str:
    """Create an admin who can log in, and return the admin's ID."""
    new = {"email": EMAIL, "password": PASSWORD, "name": "Eve", "role": "system_admin"}
    response = await harness.client.post(ADMINS_URL, json=new, auth=await harness.create_admin())
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


async def log_in(client: httpx2.AsyncClient) -> dict[str, Any]:
    response = await client.post(LOGIN_URL, json={"email": EMAIL, "password": PASSWORD})
    assert response.status_code == 200, response.text
    tokens: dict[str, Any] = response.json()
    return tokens


async def refresh(client: httpx2.AsyncClient, refresh_token: str) -> httpx2.Response:
    return await client.post(REFRESH_URL, json={"refresh_token": refresh_token})


async def get_status(client: httpx2.AsyncClient, token: str) -> int:
    response = await client.get(ME_URL, headers={"Authorization": f"Bearer {token}"})
    return response.status_code


def encode_token_part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.fixture
async def valid_token(harness: Harness, admin_id: str) -> str:
    return str((await log_in(harness.client))["token"])


async def test_token_without_a_signature_or_a_valid_algorithm_is_rejected(
    client: httpx2.AsyncClient, valid_token: str
) -> None:
    """Covers `alg: none` in several spellings, other invalid algorithms, and missing parts."""
    header, claims, signature = valid_token.split(".")
    assert await get_status(client, valid_token) == 200
    sid = jwt.get_unverified_header(valid_token)["sid"]
    for algorithm in ("none", "None", "NONE", "nOnE", "", " none", None, 0, [], "HS256\0"):
        head = encode_token_part({"alg": algorithm, "typ": "JWT", "sid": sid})
        for forged in (f"{head}.{claims}.", f"{head}.{claims}", f"{head}.{claims}.{signature}"):
            assert await get_status(client, forged) == 401, algorithm
    for forged in (
        f"{header}.{claims}.",
        f"{header}.{claims}",
        f"{header}..{signature}",
        "..",
        ".",
    ):
        assert await get_status(client, forged) == 401, forged


async def test_token_signed_with_another_key_is_rejected(
    client: httpx2.AsyncClient, valid_token: str
) -> None:
    """Covers keys embedded in or named by the token, guessed keys, and RSA keys."""
    sid = jwt.get_unverified_header(valid_token)["sid"]
    claims = jwt.decode(valid_token, options={"verify_signature": False})
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = private.public_key()
    pem = public.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    jwk = {"kty": "oct", "k": encode_token_part("x" * 32)}
    heads: tuple[dict[str, Any], ...] = (
        {},
        {"kid": "../../../../dev/null"},
        {"kid": "' UNION SELECT 'x"},
        {"jwk": jwk},
        {"jku": "http://127.0.0.1:1/keys"},
        {"x5u": "http://127.0.0.1:1/keys"},
        {"crit": ["exp"]},
        {"b64": False, "crit": ["b64"]},
        {"alg": "HS256", "typ": "at+jwt"},
    )
    for head in heads:
        for key in ("x" * 32, "\0" * 32, sid * 3, valid_token.split(".")[2]):
            forged = jwt.encode(claims, key, algorithm="HS256", headers={"sid": sid} | head)
            assert await get_status(client, forged) == 401, head
    by_rsa = jwt.encode(claims, private, algorithm="RS256", headers={"sid": sid})
    assert await get_status(client, by_rsa) == 401
    head = encode_token_part({"alg": "HS256", "typ": "JWT", "sid": sid})
    signed = f"{head}.{encode_token_part(claims)}"
    digest = hmac.digest(pem, signed.encode(), "sha256")
    confused = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert await get_status(client, f"{signed}.{confused}") == 401


async def test_validly_signed_token_with_changed_claims_gains_no_access(
    client: httpx2.AsyncClient, harness: Harness, admin_id: str
) -> None:
    """Covers a higher role, another admin, invalid expiry and issue times, and an audience."""
    secret = harness.services.settings.jwt_secret
    support = await harness.create_admin("S")
    token = support._credential
    sid = jwt.get_unverified_header(token)["sid"]
    claims = jwt.decode(token, secret, algorithms=["HS256"])

    def sign_token(**changes: Any) -> BearerAuth:
        return BearerAuth(
            jwt.encode(claims | changes, secret, algorithm="HS256", headers={"sid": sid}), ""
        )

    response = await client.get(ADMINS_URL, auth=sign_token(role="system_admin", scopes=["*"]))
    assert response.status_code == 403
    for other in ({"sub": admin_id}, {"sub": ids.encode(ids.ADMIN, 1)}, {"sub": "' OR 1=1"}):
        assert (await client.get(ME_URL, auth=sign_token(**other))).status_code == 401
    now = int(harness.services.clock().timestamp())
    for times in (
        {"exp": now - 1},
        {"exp": -1},
        {"exp": 0},
        {"exp": str(now + 9)},
        {"exp": None},
        {"exp": []},
        {"exp": True},
        {"iat": "yesterday"},
        {"aud": "another service"},
    ):
        assert (await client.get(ME_URL, auth=sign_token(**times))).status_code == 401, times


async def test_truncated_padded_or_altered_token_is_rejected(
    client: httpx2.AsyncClient, valid_token: str
) -> None:
    """Lenient base64 decoders skip unknown characters, so many strings could mean one token."""
    cuts = [valid_token[:length] for length in range(1, len(valid_token), 7)]
    padded = [valid_token + end for end in ("=", "==", "!", ".", "%20", " x", ",", valid_token)]
    altered = [
        valid_token.replace(".", " .", 1),
        valid_token.replace(".", "!.", 1),
        "\\" + valid_token,
    ]
    for variant in (*cuts, *padded, *altered):
        assert await get_status(client, variant) == 401, variant


async def test_token_of_another_installation_is_rejected(
    client: httpx2.AsyncClient, harness: Harness, admin_id: str
) -> None:
    """Installations that share a secret do not share sessions."""
    foreign_token = harness.services.authenticator.sessions._access_tokens.issue(
        session_id=harness.services.new_id(),
        admin_id=ids.decode(ids.ADMIN, admin_id) or 0,
        email=EMAIL,
        role="system_admin",
        now=harness.services.clock(),
    )
    assert await get_status(client, foreign_token) == 401


async def test_token_types_are_not_interchangeable(
    client: httpx2.AsyncClient, harness: Harness, admin_id: str
) -> None:
    """A refresh token is valid for 30 days, so it must not be accepted as an access token."""
    tokens = await log_in(client)
    key = await harness.create_api_key("subscribers:read")
    assert await get_status(client, tokens["refresh_token"]) == 401
    for other in (tokens["token"], key._credential, tokens["refresh_token"] + " ", ""):
        response = await refresh(client, other)
        assert response.status_code in (401, 422)
    assert (await refresh(client, tokens["refresh_token"])).status_code == 200


async def test_concurrent_use_of_one_refresh_token_ends_the_session(
    client: httpx2.AsyncClient, other_process_client: httpx2.AsyncClient, admin_id: str
) -> None:
    """Reuse indicates theft, and the gateway cannot distinguish the thief from the owner."""
    tokens = await log_in(client)
    responses = await asyncio.gather(
        *(
            refresh(process_client, tokens["refresh_token"])
            for process_client in (client, other_process_client)
            for _ in range(3)
        )
    )
    refreshed = [response.json() for response in responses if response.status_code == 200]
    assert len(refreshed) == 1
    assert {response.status_code for response in responses} == {200, 401}
    for process_client in (client, other_process_client):
        for pair in (tokens, *refreshed):
            assert await get_status(process_client, pair["token"]) == 401
            assert (await refresh(process_client, pair["refresh_token"])).status_code == 401


async def test_reuse_of_an_old_refresh_token_ends_the_session(
    client: httpx2.AsyncClient, other_process_client: httpx2.AsyncClient, admin_id: str
) -> None:
    """The thief uses the token after the owner has refreshed several times."""
    first = await log_in(client)
    bystander = await log_in(client)
    newest = first
    for process_client in (client, other_process_client, client):
        newest = (await refresh(process_client, newest["refresh_token"])).json()
    assert await get_status(client, newest["token"]) == 200
    assert (await refresh(other_process_client, first["refresh_token"])).status_code == 401
    for process_client in (client, other_process_client):
        assert await get_status(process_client, newest["token"]) == 401
        assert await get_status(process_client, bystander["token"]) == 200
    assert (await refresh(client, newest["refresh_token"])).status_code == 401


async def test_logout_and_disabling_an_admin_revoke_access_and_refresh_tokens(
    client: httpx2.AsyncClient,
    other_process_client: httpx2.AsyncClient,
    harness: Harness,
    admin_id: str,
) -> None:
    """Enabling the admin again does not make the revoked tokens valid."""
    tokens = await log_in(client)
    response = await client.post(LOGOUT_URL, headers={"Authorization": f"Bearer {tokens['token']}"})
    assert response.status_code == 204
    others = await log_in(client), await log_in(other_process_client)
    response = await client.post(
        f"{ADMINS_URL}/{admin_id}/disable", auth=await harness.create_admin()
    )
    assert response.status_code == 200
    for pair in (tokens, *others):
        for process_client in (client, other_process_client):
            assert await get_status(process_client, pair["token"]) == 401
            assert (await refresh(process_client, pair["refresh_token"])).status_code == 401
    await client.post(f"{ADMINS_URL}/{admin_id}/enable", auth=await harness.create_admin())
    assert (await refresh(client, others[0]["refresh_token"])).status_code == 401
