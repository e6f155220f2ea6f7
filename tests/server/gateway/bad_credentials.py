"""Invalid credentials, one per failure mode: expired, deleted, tampered with, and so on."""

import time
from collections.abc import Callable, Generator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import httpx2
import jwt

from harness import BearerAuth, Harness, HmacAuth, ServiceAuth
from server.gateway.fixtures import AccessFixtures, create_terminal_key
from tapgate.auth.access_tokens import AccessTokens
from tapgate_client import ids, signing
from tapgate_client.clock import format_rfc3339, system_clock
from tapgate_client.schemas.admin import Scope

ChangeRequest = Callable[[httpx2.Request], None]


class TamperedAuth(httpx2.Auth):
    """Adds a credential, if any, to the request and then changes the request."""

    requires_request_body = True

    def __init__(self, inner: httpx2.Auth | None, change: ChangeRequest) -> None:
        self._inner = inner
        self._change_request = change

    def auth_flow(
        self, request: httpx2.Request
    ) -> Generator[httpx2.Request, httpx2.Response, None]:
        if self._inner is not None:
            request = next(self._inner.auth_flow(request))
        self._change_request(request)
        yield request


def replace_headers(**headers: str | None) -> ChangeRequest:
    """Replace these headers; None removes a header."""

    changed = {name.replace("_", "-").lower(): value for name, value in headers.items()}

    def change(request: httpx2.Request) -> None:
        kept = [item for item in request.headers.raw if item[0].decode().lower() not in changed]
        new = [
            (name.encode(), value.encode()) for name, value in changed.items() if value is not None
        ]
        request.headers = httpx2.Headers([*kept, *new])

    return change


def duplicate_header(name: str, other: str | None = None) -> ChangeRequest:
    """Repeat a header, with the same or a different value."""

    def change(request: httpx2.Request) -> None:
        value = request.headers[name] if other is None else other
        request.headers = httpx2.Headers([*request.headers.multi_items(), (name, value)])

    return change


def sign_differently(key: HmacAuth, **parts: Any) -> ChangeRequest:
    """Sign a different method, path or body than the request's, or send a shifted timestamp."""

    def change(request: httpx2.Request) -> None:
        timestamp = format_rfc3339(system_clock() + parts.get("off", timedelta()))
        path = request.url.raw_path.partition(b"?")[0].decode()
        request.headers["X-Timestamp"] = timestamp
        request.headers["X-Signature"] = signing.sign(
            key.secret.encode(),
            parts.get("method", request.method),
            parts.get("path", path),
            timestamp,
            parts.get("body", request.content),
        )

    return change


def sign_as_service(secret: str, name: str, **parts: Any) -> ChangeRequest:
    def change(request: httpx2.Request) -> None:
        timestamp = str(int(time.time() - parts.get("ago", 0)))
        path, _, query = request.url.raw_path.partition(b"?")
        request.headers["X-Service-Name"] = name
        request.headers["X-Service-Timestamp"] = timestamp
        request.headers["X-Service-Signature"] = signing.sign_service(
            secret.encode(), request.method, path.decode(), parts.get("query", query), timestamp
        )

    return change


class BadCredential(NamedTuple):
    name: str
    auth: httpx2.Auth
    status: int = 401
    code: str = "UNAUTHORIZED"


def build_bearer(token: str) -> BearerAuth:
    return BearerAuth(token, "")


async def list_bad_credentials(
    access_fixtures: AccessFixtures,
) -> Sequence[Sequence[BadCredential]]:
    """Return the bad credentials of each kind."""
    harness, processor = access_fixtures.harness, access_fixtures.processor
    return [
        _list_malformed(),
        await _list_bad_api_keys(harness),
        await _list_bad_tokens(harness),
        await _list_bad_signatures(harness, processor, access_fixtures.partner),
        await _list_suspended_keys(harness),
        _list_bad_service_signatures(harness),
        await _list_multiple_credentials(harness, processor),
    ]


def _list_malformed() -> Sequence[BadCredential]:
    values = ("", "Bearer", "Bearer  ", "Basic YTpi", "Token x", "svc_test_x", "Bearer \xe9\xff")
    return [
        BadCredential(f"Authorization: {v!r}", TamperedAuth(None, replace_headers(Authorization=v)))
        for v in values
    ]


async def _list_bad_api_keys(harness: Harness) -> Sequence[BadCredential]:
    good, deleted = await harness.create_api_key(*Scope), await harness.create_api_key(*Scope)
    key = _get_credential(good)
    services = harness.services
    async with services.transaction() as tx:
        _, expired = await services.authenticator.api_keys.create(
            tx,
            name="old",
            scopes=Scope,
            expires_at=services.clock() - timedelta(seconds=1),
            created_by=await tx.fetchval("SELECT id FROM admins LIMIT 1"),
        )
    admin = await harness.create_admin()
    response = await harness.delete(f"/api/v1/admin/api-keys/{deleted.id}", auth=admin)
    assert response.status_code == 204
    return [
        BadCredential("unknown key", build_bearer("svc_test_" + "x" * 43)),
        BadCredential("a production key", build_bearer(key.replace("svc_test_", "svc_live_"))),
        BadCredential(
            "a key without its environment", build_bearer(key.replace("svc_test_", "svc_"))
        ),
        BadCredential("a longer key", build_bearer(f"{key}x")),
        BadCredential("a shorter key", build_bearer(key[:-1])),
        BadCredential("an uppercase key", build_bearer(key.upper())),
        BadCredential("a key's id", build_bearer(good.id)),
        BadCredential("an expired key", build_bearer(expired)),
        BadCredential("a deleted key", deleted),
        BadCredential("an API key as a signing key", HmacAuth(good.id, key)),
    ]


async def _list_bad_tokens(harness: Harness) -> Sequence[BadCredential]:
    services, secret = harness.services, harness.services.settings.jwt_secret
    good = await harness.create_admin()
    disabled = await harness.create_admin()
    logged_out = await harness.create_admin()
    admin = await harness.create_admin()
    response = await harness.post(f"/api/v1/admin/users/{disabled.id}/disable", auth=admin)
    assert response.status_code == 200, response.text
    assert (await harness.post("/api/v1/admin/logout", auth=logged_out)).status_code == 204
    token = _get_credential(good)
    header, claims = jwt.get_unverified_header(token), jwt.decode(token, secret, ["HS256"])
    sid = {"sid": header["sid"]}
    async with services.transaction() as tx:
        number = ids.decode(ids.ADMIN, good.id) or 0
        refresh = (await services.authenticator.sessions.start(tx, number)).refresh_token
    expired = AccessTokens(secret).issue(
        session_id=ids.decode("ses_", header["sid"]) or 0,
        admin_id=number,
        email="ada@example.com",
        role="system_admin",
        now=services.clock() - timedelta(days=1, seconds=1),
    )
    head, body, signature = token.split(".")
    longer = {**claims, "exp": claims["exp"] + 86400}
    return [
        BadCredential("an expired token", build_bearer(expired)),
        BadCredential("a refresh token", build_bearer(refresh)),
        BadCredential("a disabled admin", disabled),
        BadCredential("an ended session", logged_out),
        BadCredential(
            "a token signed with another secret",
            build_bearer(jwt.encode(claims, "x" * 32, "HS256", sid)),
        ),
        BadCredential(
            "a token with algorithm none", build_bearer(jwt.encode(claims, None, "none", sid))
        ),
        BadCredential("an HS512 token", build_bearer(jwt.encode(claims, secret * 2, "HS512", sid))),
        BadCredential(
            "a token without a session", build_bearer(jwt.encode(claims, secret, "HS256"))
        ),
        BadCredential(
            "a token with another admin's session",
            build_bearer(jwt.encode({**claims, "sub": disabled.id}, secret, "HS256", sid)),
        ),
        BadCredential(
            "a token with an extended expiry",
            build_bearer(f"{head}.{_encode_claims(longer)}.{signature}"),
        ),
        BadCredential("a token without a signature", build_bearer(f"{head}.{body}.")),
    ]


async def _list_bad_signatures(
    harness: Harness, terminal_auth: HmacAuth, partner: HmacAuth
) -> Sequence[BadCredential]:
    other, other_partner = await harness.create_processor(), await harness.create_partner()
    rotated = await harness.create_second_key(terminal_auth)
    admin, owner = await harness.create_admin(), await harness.get_processor_id(terminal_auth)
    response = await harness.delete(f"/api/v1/processors/{owner}/keys/{rotated.id}", auth=admin)
    assert response.status_code == 204
    too_long = timedelta(minutes=6)
    changes: dict[str, ChangeRequest] = {
        "no key id": replace_headers(X_API_Key_ID=None),
        "no timestamp": replace_headers(X_Timestamp=None),
        "no signature": replace_headers(X_Signature=None),
        "a malformed timestamp": replace_headers(X_Timestamp="now"),
        "an empty signature": replace_headers(X_Signature=""),
        "a non-ASCII signature": replace_headers(X_Signature="\xe9" * 64),
        "the key ID of another processor": replace_headers(X_API_Key_ID=other.id),
        "a processor with a partner ID": replace_headers(X_Partner_ID=partner.partner_id),
        "signed long ago": sign_differently(terminal_auth, off=-too_long),
        "signed in the future": sign_differently(terminal_auth, off=too_long),
        "another method": sign_differently(terminal_auth, method="PATCH"),
        "another path": sign_differently(terminal_auth, path="/api/v1/pos/lookup-card/"),
        "another body": sign_differently(terminal_auth, body=b'{"amount":"1.00"}'),
        "a signing key ID as a service name": replace_headers(
            X_API_Key_ID=None, X_Signature=None, X_Service_Name=terminal_auth.id
        ),
    }
    uppercase = TamperedAuth(terminal_auth, lambda r: r.headers.update({"X-Signature": r.headers["X-Signature"].upper()}))  # fmt: skip  # noqa: E501
    return [
        *(
            BadCredential(name, TamperedAuth(terminal_auth, change))
            for name, change in changes.items()
        ),
        BadCredential("an uppercase signature", uppercase),
        BadCredential("an unknown signing key", HmacAuth("key_" + "0" * 13, terminal_auth.secret)),
        BadCredential("another processor's secret", HmacAuth(terminal_auth.id, other.secret)),
        BadCredential("a deleted signing key", rotated),
        BadCredential(
            "a partner without a partner ID",
            TamperedAuth(partner, replace_headers(X_Partner_ID=None)),
        ),
        BadCredential(
            "a partner with the ID of another partner",
            HmacAuth(partner.id, partner.secret, other_partner.partner_id),
        ),
    ]


async def _list_suspended_keys(harness: Harness) -> Sequence[BadCredential]:
    """List keys of suspended owners and a blocked terminal: 403, or 401 if wrongly signed."""
    terminal_auth = await harness.create_processor()
    other_processor_auth = await harness.create_processor()
    partner = await harness.create_partner()
    terminal = await create_terminal_key(harness, terminal_auth)
    blocked = await create_terminal_key(harness, other_processor_auth)
    admin, client = await harness.create_admin(), harness.client
    owner = await harness.get_processor_id(terminal_auth)
    other = await harness.get_processor_id(other_processor_auth)
    terminals = await client.get(f"/api/v1/processors/{other}/terminals", auth=admin)
    (terminal_record,) = terminals.json()["data"]
    for path in (
        f"/api/v1/processors/{owner}/suspend",
        f"/api/v1/processors/{other}/terminals/{terminal_record['id']}/block",
        f"/api/v1/admin/partners/{partner.partner_id}/suspend",
    ):
        response = await client.post(path, json={"reason": "under investigation"}, auth=admin)
        assert response.status_code == 200, response.text
    wrong = TamperedAuth(terminal_auth, replace_headers(X_Signature="0" * 64))
    return [
        BadCredential("a suspended processor", terminal_auth, 403, "PROCESSOR_SUSPENDED"),
        BadCredential("a terminal of a suspended processor", terminal, 403, "PROCESSOR_SUSPENDED"),
        BadCredential("a blocked terminal", blocked, 403, "TERMINAL_BLOCKED"),
        BadCredential("a suspended partner", partner, 403, "PARTNER_SUSPENDED"),
        BadCredential("a suspended processor, wrongly signed", wrong),
    ]


def _list_bad_service_signatures(harness: Harness) -> Sequence[BadCredential]:
    secrets = harness.services.settings.service_secrets
    name, secret = "messenger", secrets["messenger"]
    good = ServiceAuth(name, secret)
    changes: dict[str, ChangeRequest] = {
        "no service name": replace_headers(X_Service_Name=None),
        "no service timestamp": replace_headers(X_Service_Timestamp=None),
        "no service signature": replace_headers(X_Service_Signature=None),
        "a malformed service timestamp": replace_headers(X_Service_Timestamp="1e9"),
        "an unknown service": sign_as_service(secret, "courier"),
        "a service with another service's secret": sign_as_service(secrets["gateway"], name),
        "a service signed long ago": sign_as_service(secret, name, ago=360),
        "a service signed in the future": sign_as_service(secret, name, ago=-360),
        "a service signed for another query": sign_as_service(secret, name, query=b"x=1"),
        "X-Service-Auth": replace_headers(
            X_Service_Name=None, X_Service_Signature=None, X_Service_Auth=secret
        ),
    }
    return [BadCredential(label, TamperedAuth(good, change)) for label, change in changes.items()]


async def _list_multiple_credentials(
    harness: Harness, terminal_auth: HmacAuth
) -> Sequence[BadCredential]:
    """List requests with several credentials.

    The kind with the highest precedence decides, and valid credentials of other kinds are ignored.
    A duplicated credential header is rejected.
    """
    admin = await harness.create_admin()
    key = await harness.create_api_key(*Scope)
    service = harness.get_service_auth()
    token = f"Bearer {_get_credential(admin)}"
    return [
        BadCredential(
            "a bad token, a good signature",
            TamperedAuth(terminal_auth, replace_headers(Authorization="Bearer x")),
        ),
        BadCredential(
            "a bad token, a good service",
            TamperedAuth(service, replace_headers(Authorization="Bearer x")),
        ),
        BadCredential(
            "a bad signature, a good service",
            TamperedAuth(service, replace_headers(X_API_Key_ID=terminal_auth.id)),
        ),
        BadCredential("a token twice", TamperedAuth(admin, duplicate_header("Authorization"))),
        BadCredential(
            "a key, then a token", TamperedAuth(key, duplicate_header("Authorization", token))
        ),
        BadCredential(
            "nonsense, then a token",
            TamperedAuth(build_bearer("x"), duplicate_header("Authorization", token)),
        ),
        BadCredential(
            "a key id twice", TamperedAuth(terminal_auth, duplicate_header("X-API-Key-ID"))
        ),
        BadCredential(
            "a signature twice", TamperedAuth(terminal_auth, duplicate_header("X-Signature"))
        ),
        BadCredential(
            "a service's name twice", TamperedAuth(service, duplicate_header("X-Service-Name"))
        ),
        BadCredential(
            "a service's signature twice",
            TamperedAuth(service, duplicate_header("X-Service-Signature")),
        ),
    ]


def _get_credential(auth: BearerAuth) -> str:
    request = next(auth.auth_flow(httpx2.Request("GET", "http://gateway/")))
    return str(request.headers["Authorization"]).removeprefix("Bearer ")


def _encode_claims(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, "x" * 32, "HS256").split(".")[1]
