"""Both services in this process on one database: a gateway and any number of messengers."""

import contextlib
from collections.abc import AsyncIterator
from functools import cache
from typing import Any

import httpx2
import msgspec
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from drivers.app_transport import AppTransport
from drivers.phone import Phone
from harness import Harness
from tapgate.gateway import create_app
from tapgate.messenger.app import App
from tapgate.messenger.model.replies import Template
from tapgate.messenger.outbox.sealing import open_message
from tapgate.messenger.services import Services
from tapgate.messenger.wiring import open_services


@cache
def build_flow_key() -> tuple[str, str]:
    """Return the private and the public key in PEM format."""
    key = rsa.generate_private_key(65537, 2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


class ServicesDriver:
    def __init__(self, harness: Harness, database_url: str) -> None:
        self.harness = harness
        self.gateway = harness.client
        self._database_url = database_url

    @contextlib.asynccontextmanager
    async def run_messenger(
        self, *, http: httpx2.AsyncBaseTransport | None = None, **settings: Any
    ) -> AsyncIterator["MessengerDriver"]:
        """Run a messenger; PIN forms are enabled unless the settings disable them."""
        overrides = {"messenger_flow_private_key": build_flow_key()[0], **settings}
        messenger_settings = msgspec.structs.replace(self.harness.services.settings, **overrides)
        gateway_transport = http or AppTransport(create_app(self.harness.services))
        async with open_services(
            messenger_settings, self._database_url, http=gateway_transport
        ) as services:
            transport = AppTransport(App(services))
            async with httpx2.AsyncClient(transport=transport, base_url="http://m") as client:
                yield MessengerDriver(self.harness, services, client)

    async def list_sent_texts(self) -> tuple[str, list[str]]:
        """Return all texts sent to people, and the one-time codes among them."""
        services = self.harness.services
        rows = await services.database.fetch(
            "SELECT id, content FROM messenger.outbox WHERE content IS NOT NULL"
        )
        messages = [open_message(services.vault, row["id"], row["content"]) for row in rows]
        codes = [
            code
            for message in messages
            if isinstance(message, Template) and message.name == "one_time_code"
            for code in message.parameters
        ]
        return "\n".join(map(str, messages)), codes

    async def get_balance(self, subscriber_id: str) -> str:
        response = await self.gateway.get(
            f"/api/v1/balance/{subscriber_id}", auth=self.harness.get_service_auth()
        )
        return str(response.json()["balance"])

    async def list_transfers(self, subscriber_id: str) -> list[dict[str, Any]]:
        response = await self.gateway.get(
            f"/api/v1/transactions?user_id={subscriber_id}&type=transfer_p2p",
            auth=self.harness.get_service_auth(),
        )
        data: list[dict[str, Any]] = response.json()["data"]
        return data


class MessengerDriver:
    def __init__(self, harness: Harness, services: Services, client: httpx2.AsyncClient) -> None:
        self._harness = harness
        self.services = services
        self.client = client

    def create_phone(self, number: str) -> Phone:
        """Create a phone that reads through the gateway's pool, which outlives the messenger."""
        gateway_services = self._harness.services
        return Phone(
            number,
            self.client,
            gateway_services.database,
            gateway_services.vault,
            build_flow_key()[1],
        )
