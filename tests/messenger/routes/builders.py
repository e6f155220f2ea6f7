"""Messenger application on a real database, with a fake gateway, for route tests."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2

from harness import ServiceAuth
from production_settings import PRODUCTION_ENVIRON  # noqa: F401 - used by the tests of routes
from tapgate import ids, signing
from tapgate.clock import system_clock
from tapgate.http.throttle import Throttle
from tapgate.messenger.app import App
from tapgate.messenger.model.common import Language
from tapgate.messenger.model.events import (
    GatewayUnreachable,
    Intent,
    RequestRejected,
    RequestSucceeded,
)
from tapgate.messenger.model.gateway_requests import GatewayRequest
from tapgate.messenger.services import Services
from tapgate.settings import load_settings
from tapgate.store.database import Database
from tapgate.vault import Vault

BRIDGE_PATH = "/api/v1/external/messaging"
WEBHOOK_PATH = "/api/v1/webhooks/messaging"
FLOWS_PATH = f"{WEBHOOK_PATH}/flows"
TEMPLATE_PATH = "/api/v1/messages/template"
OUTBOX_PATH = "/api/v1/messages/outbox"
HEALTH_PATH = "/health"

PHONE = "+23276123456"
MESSAGE_BODY = {"event": "message", "from": "23276123456", "phoneE164": PHONE, "message": "menu"}
CODE_BODY = {"to": PHONE, "template": "one_time_code", "parameters": ["918273"]}

#: Limits per address that are reached only by tests that override them.
NO_RATE_LIMITS = {"TAPGATE_RATE_LIMIT": "100000", "TAPGATE_RATE_BURST": "100000"}


class FakeGateway:
    """Gateway that returns None for every request, or is unreachable."""

    def __init__(self) -> None:
        self.is_unreachable = False

    async def perform(
        self, request: GatewayRequest
    ) -> RequestSucceeded | RequestRejected | GatewayUnreachable:
        return (
            GatewayUnreachable(uncertain=False)
            if self.is_unreachable
            else RequestSucceeded(result=None)
        )


async def resolve_nothing(text: str, language: Language | None) -> Intent:
    return Intent()


class MessengerApp:
    def __init__(self, services: Services, gateway: FakeGateway, app: App) -> None:
        self.services = services
        self.gateway = gateway
        transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
        self.client = httpx2.AsyncClient(transport=transport, base_url="http://messenger")

    def get_service_auth(self, name: str = "gateway") -> ServiceAuth:
        return ServiceAuth(name, self.services.settings.service_secrets[name])

    async def post_message(self, **fields: Any) -> httpx2.Response:
        return await self.client.post(BRIDGE_PATH, json=MESSAGE_BODY | fields)

    async def deliver(self, body: bytes, secret: str | None = None) -> httpx2.Response:
        headers = {}
        if secret is not None:
            signature = signing.webhook_signature(secret.encode(), body)
            headers["X-Hub-Signature-256"] = f"sha256={signature}"
        return await self.client.post(WEBHOOK_PATH, content=body, headers=headers)


@contextlib.asynccontextmanager
async def run_messenger_app(
    folder: Path, database_url: str, **variables: str
) -> AsyncIterator[MessengerApp]:
    settings = load_settings({"TAPGATE_DATA_DIR": str(folder), **NO_RATE_LIMITS, **variables})
    database, gateway = await Database.connect(database_url), FakeGateway()
    throttle = Throttle(settings)
    services = Services(
        settings=settings,
        database=database,
        vault=Vault(settings.secret_key),
        clock=system_clock,
        new_id=ids.IdGenerator(7),
        process_id=7,
        gateway=gateway,
        resolve_intent=resolve_nothing,
        throttle=throttle,
    )
    app = MessengerApp(services, gateway, App(services))
    try:
        async with app.client:
            yield app
    finally:
        await throttle.close()
        await database.close()


def build_delivery(message_id: str, text: str = "menu", phone: str = PHONE) -> dict[str, Any]:
    """Build the provider's delivery of one text message."""
    message = {
        "from": phone.removeprefix("+"),
        "id": message_id,
        "timestamp": "1767225600",
        "type": "text",
        "text": {"body": text},
    }
    value = {"messaging_product": "whatsapp", "messages": [message]}
    return {"object": "account", "entry": [{"id": "1", "changes": [{"value": value}]}]}


def build_error(message: str) -> dict[str, str]:
    return {"error": message, "status": "error"}
