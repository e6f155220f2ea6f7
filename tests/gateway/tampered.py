"""Credentials that were good, or nearly are: one of each way of not being good."""

import time
from collections.abc import Callable, Generator, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import httpx2
import jwt

from gateway.house import House, terminal_key
from tapgate import ids, signing
from tapgate.admin.model import SCOPES
from tapgate.clock import format_rfc3339, system_clock
from tapgate.credentials.access_tokens import AccessTokens
from world import Bearer, RequestSignature, ServiceSignature, World

Change = Callable[[httpx2.Request], None]


class Tampered(httpx2.Auth):
    """Another credential, changed after it was put on the request."""

    requires_request_body = True

    def __init__(self, inner: httpx2.Auth | None, change: Change) -> None:
        self._inner = inner
        self._change = change

    def auth_flow(
        self, request: httpx2.Request
    ) -> Generator[httpx2.Request, httpx2.Response, None]:
        if self._inner is not None:
            request = next(self._inner.auth_flow(request))
        self._change(request)
        yield request


def sent(**headers: str | None) -> Change:
    """With these headers in the place of what was there; None leaves one out."""

    changed = {name.replace("_", "-").lower(): value for name, value in headers.items()}

    def change(request: httpx2.Request) -> None:
        kept = [one for one in request.headers.raw if one[0].decode().lower() not in changed]
        new = [
            (name.encode(), value.encode()) for name, value in changed.items() if value is not None
        ]
        request.headers = httpx2.Headers([*kept, *new])

    return change


def twice(name: str, other: str | None = None) -> Change:
    """The same header once more, with the same or another value."""

    def change(request: httpx2.Request) -> None:
        value = request.headers[name] if other is None else other
        request.headers = httpx2.Headers([*request.headers.multi_items(), (name, value)])

    return change


def resigned(key: RequestSignature, **parts: Any) -> Change:
    """Signed for something else than what is sent."""

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


def service_signed(secret: str, name: str, **parts: Any) -> Change:
    def change(request: httpx2.Request) -> None:
        timestamp = str(int(time.time() - parts.get("ago", 0)))
        path, _, query = request.url.raw_path.partition(b"?")
        request.headers["X-Service-Name"] = name
        request.headers["X-Service-Timestamp"] = timestamp
        request.headers["X-Service-Signature"] = signing.sign_service(
            secret.encode(), request.method, path.decode(), parts.get("query", query), timestamp
        )

    return change


class Bad(NamedTuple):
    name: str
    auth: httpx2.Auth
    status: int = 401
    code: str = "UNAUTHORIZED"


def bearer(token: str) -> Bearer:
    return Bearer(token, "")


async def bad_credentials(house: House) -> Sequence[Bad]:
    return [
        *_malformed(),
        *await _api_keys(house.world),
        *await _tokens(house.world),
        *await _signatures(house.world, house.processor, house.partner),
        *await _stopped(house.world),
        *_services(house.world),
        *await _several(house.world, house.processor),
    ]


def _malformed() -> Sequence[Bad]:
    values = ("", "Bearer", "Bearer  ", "Basic YTpi", "Token x", "svc_test_x", "Bearer \xe9\xff")
    return [Bad(f"Authorization: {v!r}", Tampered(None, sent(Authorization=v))) for v in values]


async def _api_keys(world: World) -> Sequence[Bad]:
    good, deleted = await world.api_key(*SCOPES), await world.api_key(*SCOPES)
    key = _credential(good)
    services = world.services
    async with services.database.transaction() as tx:
        _, expired = await services.authenticator.api_keys.create(
            tx,
            name="old",
            scopes=SCOPES,
            expires_at=services.clock() - timedelta(seconds=1),
            created_by=await tx.fetchval("SELECT id FROM admins LIMIT 1"),
        )
    admin = await world.admin()
    gone = await world.client.delete(f"/api/v1/admin/api-keys/{deleted.id}", auth=admin)
    assert gone.status_code == 204
    return [
        Bad("unknown key", bearer("svc_test_" + "x" * 43)),
        Bad("a key of production", bearer(key.replace("svc_test_", "svc_live_"))),
        Bad("a key without its environment", bearer(key.replace("svc_test_", "svc_"))),
        Bad("a longer key", bearer(f"{key}x")),
        Bad("a shorter key", bearer(key[:-1])),
        Bad("a key in capitals", bearer(key.upper())),
        Bad("a key's id", bearer(good.id)),
        Bad("an expired key", bearer(expired)),
        Bad("a deleted key", deleted),
        Bad("a key as a signing key", RequestSignature(good.id, key)),
    ]


async def _tokens(world: World) -> Sequence[Bad]:
    services, secret = world.services, world.services.settings.jwt_secret
    good, disabled, out = await world.admin(), await world.admin(), await world.admin()
    admin = await world.admin()
    answer = await world.client.post(f"/api/v1/admin/users/{disabled.id}/disable", auth=admin)
    assert answer.status_code == 200, answer.text
    assert (await world.client.post("/api/v1/admin/logout", auth=out)).status_code == 204
    token = _credential(good)
    header, claims = jwt.get_unverified_header(token), jwt.decode(token, secret, ["HS256"])
    sid = {"sid": header["sid"]}
    async with services.database.transaction() as tx:
        number = ids.decode(ids.ADMIN, good.id) or 0
        refresh = (await services.authenticator.sessions.start(tx, number)).refresh_token
    old = AccessTokens(secret).issue(
        session_id=ids.decode("ses_", header["sid"]) or 0,
        admin_id=number,
        email="ada@example.com",
        role="system_admin",
        now=services.clock() - timedelta(days=1, seconds=1),
    )
    head, body, signature = token.split(".")
    longer = {**claims, "exp": claims["exp"] + 86400}
    return [
        Bad("an expired token", bearer(old)),
        Bad("a refresh token", bearer(refresh)),
        Bad("a disabled admin", disabled),
        Bad("an ended session", out),
        Bad("a token of another secret", bearer(jwt.encode(claims, "x" * 32, "HS256", sid))),
        Bad("a token without algorithm", bearer(jwt.encode(claims, None, "none", sid))),
        Bad("a token of HS512", bearer(jwt.encode(claims, secret * 2, "HS512", sid))),
        Bad("a token without session", bearer(jwt.encode(claims, secret, "HS256"))),
        Bad(
            "a token of another's session",
            bearer(jwt.encode({**claims, "sub": disabled.id}, secret, "HS256", sid)),
        ),
        Bad("a token with a longer life", bearer(f"{head}.{_claims(longer)}.{signature}")),
        Bad("a token without signature", bearer(f"{head}.{body}.")),
    ]


async def _signatures(
    world: World, till: RequestSignature, partner: RequestSignature
) -> Sequence[Bad]:
    other, other_partner = await world.processor(), await world.partner()
    rotated = await world.another_key(till)
    admin, owner = await world.admin(), await world.processor_of(till)
    gone = await world.client.delete(f"/api/v1/processors/{owner}/keys/{rotated.id}", auth=admin)
    assert gone.status_code == 204
    too_long = timedelta(minutes=6)
    changes: dict[str, Change] = {
        "no key id": sent(X_API_Key_ID=None),
        "no timestamp": sent(X_Timestamp=None),
        "no signature": sent(X_Signature=None),
        "a malformed timestamp": sent(X_Timestamp="now"),
        "an empty signature": sent(X_Signature=""),
        "a signature that is no ASCII": sent(X_Signature="\xe9" * 64),
        "the key id of another": sent(X_API_Key_ID=other.id),
        "a processor that says it is a partner": sent(X_Partner_ID=partner.partner_id),
        "signed long ago": resigned(till, off=-too_long),
        "signed in the future": resigned(till, off=too_long),
        "another method": resigned(till, method="PATCH"),
        "another path": resigned(till, path="/api/v1/pos/lookup-card/"),
        "another body": resigned(till, body=b'{"amount":"1.00"}'),
        "a signing key's id as a service": sent(
            X_API_Key_ID=None, X_Signature=None, X_Service_Name=till.id
        ),
    }
    capitals = Tampered(till, lambda r: r.headers.update({"X-Signature": r.headers["X-Signature"].upper()}))  # fmt: skip  # noqa: E501
    return [
        *(Bad(name, Tampered(till, change)) for name, change in changes.items()),
        Bad("a signature in capitals", capitals),
        Bad("an unknown signing key", RequestSignature("key_" + "0" * 13, till.secret)),
        Bad("another's secret", RequestSignature(till.id, other.secret)),
        Bad("a deleted signing key", rotated),
        Bad("a partner that does not say so", Tampered(partner, sent(X_Partner_ID=None))),
        Bad(
            "a partner that says it is another",
            RequestSignature(partner.id, partner.secret, other_partner.partner_id),
        ),
    ]


async def _stopped(world: World) -> Sequence[Bad]:
    """Right signatures that are refused nevertheless, and not so when they are wrong."""
    till, shop, partner = await world.processor(), await world.processor(), await world.partner()
    terminal, blocked = await terminal_key(world, till), await terminal_key(world, shop)
    admin, client = await world.admin(), world.client
    owner = await world.processor_of(till)
    other = await world.processor_of(shop)
    terminals = await client.get(f"/api/v1/processors/{other}/terminals", auth=admin)
    (found,) = terminals.json()["data"]
    for path in (
        f"/api/v1/processors/{owner}/suspend",
        f"/api/v1/processors/{other}/terminals/{found['id']}/block",
        f"/api/v1/admin/partners/{partner.partner_id}/suspend",
    ):
        answer = await client.post(path, json={"reason": "looked into"}, auth=admin)
        assert answer.status_code == 200, answer.text
    wrong = Tampered(till, sent(X_Signature="0" * 64))
    return [
        Bad("a suspended processor", till, 403, "PROCESSOR_SUSPENDED"),
        Bad("a terminal of a suspended processor", terminal, 403, "PROCESSOR_SUSPENDED"),
        Bad("a blocked terminal", blocked, 403, "TERMINAL_BLOCKED"),
        Bad("a suspended partner", partner, 403, "PARTNER_SUSPENDED"),
        Bad("a suspended processor, wrongly signed", wrong),
    ]


def _services(world: World) -> Sequence[Bad]:
    secrets = world.services.settings.service_secrets
    name, secret = "messenger", secrets["messenger"]
    good = ServiceSignature(name, secret)
    changes: dict[str, Change] = {
        "no service name": sent(X_Service_Name=None),
        "no service timestamp": sent(X_Service_Timestamp=None),
        "no service signature": sent(X_Service_Signature=None),
        "a malformed service timestamp": sent(X_Service_Timestamp="1e9"),
        "an unknown service": service_signed(secret, "courier"),
        "a service with another's secret": service_signed(secrets["gateway"], name),
        "a service signed long ago": service_signed(secret, name, ago=360),
        "a service signed in the future": service_signed(secret, name, ago=-360),
        "a service signed for another query": service_signed(secret, name, query=b"x=1"),
        "X-Service-Auth": sent(
            X_Service_Name=None, X_Service_Signature=None, X_Service_Auth=secret
        ),
    }
    return [Bad(what, Tampered(good, change)) for what, change in changes.items()]


async def _several(world: World, till: RequestSignature) -> Sequence[Bad]:
    """One decides: a good one that comes later does not help. None counts that comes twice."""
    admin, key, service = await world.admin(), await world.api_key(*SCOPES), world.service()
    token = f"Bearer {_credential(admin)}"
    return [
        Bad("a bad signature, a good token", Tampered(admin, sent(X_Signature="x"))),
        Bad("a bad signature, a good service", Tampered(service, sent(X_API_Key_ID=till.id))),
        Bad("a bad service, a good token", Tampered(admin, sent(X_Service_Name="messenger"))),
        Bad("a token twice", Tampered(admin, twice("Authorization"))),
        Bad("a key, then a token", Tampered(key, twice("Authorization", token))),
        Bad("nonsense, then a token", Tampered(bearer("x"), twice("Authorization", token))),
        Bad("a key id twice", Tampered(till, twice("X-API-Key-ID"))),
        Bad("a signature twice", Tampered(till, twice("X-Signature"))),
        Bad("a service's name twice", Tampered(service, twice("X-Service-Name"))),
        Bad("a service's signature twice", Tampered(service, twice("X-Service-Signature"))),
    ]


def _credential(auth: Bearer) -> str:
    request = next(auth.auth_flow(httpx2.Request("GET", "http://gateway/")))
    return str(request.headers["Authorization"]).removeprefix("Bearer ")


def _claims(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, "x" * 32, "HS256").split(".")[1]
