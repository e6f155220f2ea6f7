"""Every messenger route with every messenger and gateway credential.

Only the declared credential is accepted; all others get the declared error.
"""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import jwt
import pytest

from builders.messenger import MessengerApp, build_error, run_messenger_app
from harness import PRODUCTION_ENVIRON, BearerAuth, HmacAuth, ServiceAuth
from server.gateway.bad_credentials import (
    ChangeRequest,
    TamperedAuth,
    duplicate_header,
    replace_headers,
    sign_as_service,
)
from tapgate.http.endpoint import Endpoint
from tapgate.messenger.routes import ENDPOINTS
from tapgate.messenger.routes.access import (
    BAD_FLOW_SIGNATURE,
    BRIDGE,
    CHANNEL,
    FLOW,
    HANDSHAKE,
    PUBLIC,
    SERVICE,
    SMS_PROVIDER,
)
from tapgate_client import signing

BRIDGE_TOKEN = "kT4-the bridge's token-9w"
APP_SECRET = "the channel's secret"
VERIFY_TOKEN = "verify me"
SMS_TOKEN = "the SMS provider's token"
ALL_SECRETS = {
    "TAPGATE_MESSENGER_BRIDGE_TOKEN": BRIDGE_TOKEN,
    "TAPGATE_MESSENGER_APP_SECRET": APP_SECRET,
    "TAPGATE_MESSENGER_VERIFY_TOKEN": VERIFY_TOKEN,
    "TAPGATE_SMS_URL": "https://sms.example.com/messages",
    "TAPGATE_SMS_TOKEN": SMS_TOKEN,
}
OUTBOX_ROUTE = "GET /api/v1/messages/outbox"


class Credential(NamedTuple):
    name: str
    auth: httpx2.Auth
    accepted_access: Sequence[Any] = ()


def sign_as_provider(secret: str, prefix: str = "sha256=") -> ChangeRequest:
    def sign(request: httpx2.Request) -> None:
        signature = signing.webhook_signature(secret.encode(), request.content)
        request.headers["X-Hub-Signature-256"] = f"{prefix}{signature}"

    return sign


def list_credentials(messenger: MessengerApp) -> list[Credential]:
    """Return messenger and gateway credentials, and invalid variants of them."""
    secrets = messenger.services.settings.service_secrets
    name, secret = next(iter(secrets.items()))
    bridge, service = BearerAuth(BRIDGE_TOKEN, ""), ServiceAuth(name, secret)
    channel = TamperedAuth(None, sign_as_provider(APP_SECRET))
    token = jwt.encode({"sub": "adm_1"}, messenger.services.settings.jwt_secret, "HS256")
    changes: dict[str, tuple[httpx2.Auth | None, ChangeRequest]] = {
        "the bridge's token twice": (bridge, duplicate_header("Authorization")),
        "the bridge's token as Basic": (
            None,
            replace_headers(Authorization=f"Basic {BRIDGE_TOKEN}"),
        ),
        "the bridge's token alone": (None, replace_headers(Authorization=BRIDGE_TOKEN)),
        "a bare signature": (None, sign_as_provider(APP_SECRET, "")),
        "another's signature": (None, sign_as_provider("x")),
        "a signature of the verify token": (None, sign_as_provider(VERIFY_TOKEN)),
        "an empty signature": (None, replace_headers(X_Hub_Signature_256="")),
        "a signature twice": (channel, duplicate_header("X-Hub-Signature-256")),
        "a webhook signature of partners": (None, replace_headers(X_Webhook_Signature="0" * 64)),
        "an unknown service": (None, sign_as_service(secret, "courier")),
        "another secret": (None, sign_as_service("x" * 32, name)),
        "signed long ago": (None, sign_as_service(secret, name, ago=360)),
        "signed in the future": (None, sign_as_service(secret, name, ago=-360)),
        "another query": (None, sign_as_service(secret, name, query=b"to=x")),
        "no service name": (service, replace_headers(X_Service_Name=None)),
        "no service timestamp": (service, replace_headers(X_Service_Timestamp=None)),
        "no service signature": (service, replace_headers(X_Service_Signature=None)),
        "a malformed timestamp": (service, replace_headers(X_Service_Timestamp="now")),
        "a service's name twice": (service, duplicate_header("X-Service-Name")),
    }
    return [
        Credential("none", TamperedAuth(None, replace_headers())),
        Credential("the bridge", bridge, (BRIDGE,)),
        Credential("the channel", channel, (CHANNEL, FLOW)),
        Credential("the SMS provider", BearerAuth(SMS_TOKEN, ""), (SMS_PROVIDER,)),
        Credential("the app secret as a token", BearerAuth(APP_SECRET, "")),
        Credential("the service", service, (SERVICE,)),
        Credential("a service's secret as a token", BearerAuth(secret, "")),
        Credential("an API key", BearerAuth("svc_test_" + "x" * 43, "")),
        Credential("an access token", BearerAuth(token, "")),
        Credential("a processor", HmacAuth("key_0800000000000", secret)),
        Credential("a partner", HmacAuth("key_0800000000000", secret, "ptn_1")),
        *(
            Credential(description, TamperedAuth(*arguments))
            for description, arguments in changes.items()
        ),
    ]


@pytest.fixture
async def protected_messenger(tmp_path: Path, database_url: str) -> AsyncIterator[MessengerApp]:
    async with run_messenger_app(tmp_path, database_url, **ALL_SECRETS) as app:
        yield app


@pytest.fixture
async def protected_production_messenger(
    tmp_path: Path, database_url: str
) -> AsyncIterator[MessengerApp]:
    async with run_messenger_app(
        tmp_path, database_url, **(PRODUCTION_ENVIRON | ALL_SECRETS)
    ) as app:
        yield app


def get_expected_status(route: Endpoint) -> int:
    """Return the status for a request without the required credential."""
    return {
        BRIDGE: 401,
        CHANNEL: 401,
        FLOW: BAD_FLOW_SIGNATURE,
        SERVICE: 401,
        SMS_PROVIDER: 401,
        HANDSHAKE: 403,
    }[route.access]


async def send(messenger: MessengerApp, route: Endpoint, auth: Any) -> httpx2.Response:
    return await messenger.client.request(route.method, route.path, content=b"{}", auth=auth)


async def assert_only_declared_credentials_are_accepted(messenger: MessengerApp) -> None:
    for route in ENDPOINTS:
        for credential in list_credentials(messenger):
            response = await send(messenger, route, credential.auth)
            case = (route.name, credential.name, response.text)
            if messenger.services.settings.is_production and not route.in_production:
                expected = (404, build_error("Not found"))
                assert (response.status_code, response.json()) == expected, case
            elif route.access is PUBLIC:
                assert response.status_code in (200, 503), case
            elif route.access in credential.accepted_access:
                assert response.status_code not in (401, 403, BAD_FLOW_SIGNATURE), case
                assert response.status_code != 500, case
            else:
                assert response.status_code == get_expected_status(route), case
                found = (
                    route.access is HANDSHAKE or response.status_code in route.access.error_statuses
                )
                assert found
                assert set(response.json()) == {"error", "status"}, case


async def test_only_the_declared_credential_is_accepted(protected_messenger: MessengerApp) -> None:
    await assert_only_declared_credentials_are_accepted(protected_messenger)


async def test_only_the_declared_credential_is_accepted_in_production(
    protected_production_messenger: MessengerApp,
) -> None:
    await assert_only_declared_credentials_are_accepted(protected_production_messenger)


async def test_unset_secrets_are_not_required_outside_production(messenger: MessengerApp) -> None:
    for route in ENDPOINTS:
        response = await send(messenger, route, None)
        if route.access in (BRIDGE, CHANNEL, FLOW):
            assert response.status_code not in (401, 403, BAD_FLOW_SIGNATURE), route.name


async def test_routes_with_unset_secrets_return_403_in_production(
    production_messenger: MessengerApp,
) -> None:
    """They also reject tokens and signatures made with an empty secret or with the text `None`."""
    empty = [
        None,
        BearerAuth("", ""),
        BearerAuth("None", ""),
        TamperedAuth(None, sign_as_provider("")),
        TamperedAuth(None, sign_as_provider("None")),
    ]
    for route in ENDPOINTS:
        if route.access in (BRIDGE, CHANNEL, FLOW, SMS_PROVIDER):
            for auth in empty:
                response = await send(production_messenger, route, auth)
                assert response.status_code == 403, (route.name, response.text)
                assert 403 in route.access.error_statuses


@pytest.mark.parametrize(
    ("query", "status"),
    [
        (f"hub.mode=subscribe&hub.verify_token={VERIFY_TOKEN}&hub.challenge=c", 200),
        (f"hub.mode=subscribe&hub.verify_token={VERIFY_TOKEN}", 400),
        (f"hub.mode=unsubscribe&hub.verify_token={VERIFY_TOKEN}&hub.challenge=c", 403),
        (f"hub.verify_token={VERIFY_TOKEN}&hub.challenge=c", 403),
        ("hub.mode=subscribe&hub.verify_token=&hub.challenge=c", 403),
        ("hub.mode=subscribe&hub.challenge=c", 403),
        (f"hub.mode=subscribe&hub.verify_token={VERIFY_TOKEN}x&hub.challenge=c", 403),
        (f"hub.mode=subscribe&hub.verify_token={VERIFY_TOKEN.upper()}&hub.challenge=c", 403),
        ("hub.mode=subscribe&hub.verify_token=dev-verify-token&hub.challenge=c", 403),
    ],
)
async def test_handshake_requires_the_verify_token(
    protected_messenger: MessengerApp, query: str, status: int
) -> None:
    response = await protected_messenger.client.get(
        f"/api/v1/webhooks/messaging?{query.replace(' ', '%20')}"
    )
    assert response.status_code == status
    assert (response.text == "c") == (status == 200)


def test_routes_and_their_access_match_the_specification() -> None:
    assert {route.name: route.access for route in ENDPOINTS} == {
        "POST /api/v1/external/messaging": BRIDGE,
        "GET /api/v1/webhooks/messaging": HANDSHAKE,
        "POST /api/v1/webhooks/messaging": CHANNEL,
        "POST /api/v1/webhooks/messaging/flows": FLOW,
        "POST /api/v1/messages/template": SERVICE,
        "POST /api/v1/messages/sms-status": SMS_PROVIDER,
        OUTBOX_ROUTE: SERVICE,
        "POST /api/v1/simulator/deliveries": SERVICE,
        "POST /api/v1/simulator/flows": SERVICE,
        "GET /api/v1/simulator/form-key": SERVICE,
        "GET /live": PUBLIC,
        "GET /ready": PUBLIC,
        "GET /version": PUBLIC,
        "GET /health": PUBLIC,
    }
    assert [route.name for route in ENDPOINTS if not route.in_production] == [
        OUTBOX_ROUTE,
        "POST /api/v1/simulator/deliveries",
        "POST /api/v1/simulator/flows",
        "GET /api/v1/simulator/form-key",
    ]
