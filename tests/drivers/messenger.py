"""Phones that chat with the messenger and fill in its flows."""

import asyncio
import base64
import contextlib
import itertools
import json
import os
import time
from collections.abc import AsyncIterator
from functools import cache
from typing import Any, Self

import httpx2
import msgspec
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_public_key,
)

from drivers.in_process import AppTransport
from harness import Harness
from tapgate.core.vault import Vault
from tapgate.messenger.app import App
from tapgate.messenger.channel.render import render_plain_text
from tapgate.messenger.flows.cipher import (
    AES_KEY_BYTES,
    IV_BYTES,
    OAEP_PADDING,
    Envelope,
    flip_bits,
)
from tapgate.messenger.model import OptionList, OutgoingMessage, PinForm, Template
from tapgate.messenger.outbox.outbox_messages import open_message
from tapgate.messenger.services import Services
from tapgate.messenger.wiring import open_services
from tapgate.runtime.store.database import Database
from tapgate.server.gateway import create_app


class FlowClient:
    """Client for a single request and its response."""

    def __init__(self, public_pem: str) -> None:
        key = load_pem_public_key(public_pem.encode())
        if not isinstance(key, RSAPublicKey):
            raise ValueError("the public key must be an RSA key")
        self._key = key
        self.aes_key = os.urandom(AES_KEY_BYTES)
        self._vector = os.urandom(IV_BYTES)

    def encrypt(self, request: dict[str, Any]) -> bytes:
        """Return a request's encrypted body."""
        plain = msgspec.json.encode(request)
        return msgspec.json.encode(
            Envelope(
                encrypted_aes_key=_encode_base64(self._key.encrypt(self.aes_key, OAEP_PADDING)),
                encrypted_flow_data=_encode_base64(
                    AESGCM(self.aes_key).encrypt(self._vector, plain, None)
                ),
                initial_vector=_encode_base64(self._vector),
            )
        )

    def decrypt(self, body: str) -> dict[str, Any]:
        sealed = base64.b64decode(body, validate=True)
        plain = AESGCM(self.aes_key).decrypt(flip_bits(self._vector), sealed, None)
        return msgspec.json.decode(plain, type=dict[str, Any])


def _encode_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


WEBHOOK_PATH = "/api/v1/webhooks/messaging"
FLOWS_PATH = f"{WEBHOOK_PATH}/flows"
BRIDGE_PATH = "/api/v1/external/messaging"
SIMULATOR_PATH = "/api/v1/simulator"

_sequence = itertools.count(1)


def build_text(body: str) -> dict[str, Any]:
    return {"type": "text", "text": {"body": body}}


def build_button_reply(option_id: str) -> dict[str, Any]:
    reply = {"type": "button_reply", "button_reply": {"id": option_id, "title": "as shown"}}
    return {"type": "interactive", "interactive": reply}


class Phone:
    """Sends to a messenger through `client`, and reads replies from the outbox table."""

    def __init__(
        self,
        number: str,
        client: httpx2.AsyncClient,
        database: Database,
        vault: Vault,
        public_key: str | None = None,
    ) -> None:
        self.number = number
        self.client = client
        self._database = database
        self._vault = vault
        self._public_key = public_key
        self._timestamp = int(time.time())
        self._last_read_id = 0
        self._delivery_path, self._flow_path = WEBHOOK_PATH, FLOWS_PATH
        self._auth: httpx2.Auth | None = None

    def use_simulator(self, auth: httpx2.Auth) -> Self:
        """Send further deliveries and form requests through the simulator API."""
        self._delivery_path, self._flow_path = (
            f"{SIMULATOR_PATH}/deliveries",
            f"{SIMULATOR_PATH}/flows",
        )
        self._auth = auth
        return self

    # The webhook

    def build_message(self, content: dict[str, Any], **fields: str) -> dict[str, Any]:
        """Build a message with a later timestamp than the previous one."""
        self._timestamp += 1
        return {
            "from": self.number.removeprefix("+"),
            "id": f"wamid.{next(_sequence)}",
            "timestamp": str(self._timestamp),
            **content,
            **fields,
        }

    async def deliver(self, *messages: dict[str, Any]) -> None:
        """Post one delivery in the provider's format and require its acknowledgment."""
        value = {
            "messaging_product": "whatsapp",
            "metadata": {"display_phone_number": "15550783881", "phone_number_id": "1065"},
            "contacts": [{"profile": {"name": "A"}, "wa_id": self.number.removeprefix("+")}],
            "messages": list(messages),
        }
        body = {
            "object": "whatsapp_business_account",
            "entry": [{"id": "1022", "changes": [{"value": value, "field": "messages"}]}],
        }
        response = await self.client.post(
            self._delivery_path, content=json.dumps(body), auth=self._auth
        )
        assert response.status_code == 200, response.text

    async def wait_until_handled(self) -> None:
        """Wait at most 30 seconds until every message from this phone has been processed."""
        async with asyncio.timeout(30):
            while await self._database.fetchval(
                """SELECT EXISTS (SELECT FROM messenger.received
                                  WHERE address = $1 AND status = 'waiting')""",
                self.number,
            ):
                await asyncio.sleep(0.01)

    async def send_text(self, body: str) -> str:
        """Send a text and return the replies as one text."""
        return await self.send(build_text(body))

    async def send(self, content: dict[str, Any]) -> str:
        await self.deliver(self.build_message(content))
        await self.wait_until_handled()
        return render_plain_text(await self.read_replies())  # type: ignore[arg-type]

    async def tap_option(self, title: str) -> str:
        """Tap the option with this title in the last offer, and return the replies."""
        offer = await self.get_last(OptionList)
        (option_id,) = (option.id for option in offer.options if option.title == title)
        return await self.send(build_button_reply(option_id))

    async def read_replies(self, *, everything: bool = False) -> list[OutgoingMessage]:
        """Return the replies since the last read, or all of them."""
        rows = await self._database.fetch(
            """SELECT id, content FROM messenger.outbox
               WHERE address = $1 AND id > $2 ORDER BY id""",
            self.number,
            0 if everything else self._last_read_id,
        )
        if rows:
            self._last_read_id = rows[-1]["id"]
        return [open_message(self._vault, row["id"], row["content"]) for row in rows]

    async def get_last(self, kind: type[Any]) -> Any:
        """Return the newest message of the given type to this phone."""
        rows = await self._database.fetch(
            "SELECT id, content FROM messenger.outbox WHERE address = $1 ORDER BY id DESC",
            self.number,
        )
        for row in rows:
            message = open_message(self._vault, row["id"], row["content"])
            if isinstance(message, kind):
                return message
        raise AssertionError(f"no {kind.__name__} was sent")

    # Forms

    async def submit_form(
        self, data: dict[str, str], token: str | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Submit a form, by default the newest; return the status and decrypted response."""
        return await self.send_flow_request("data_exchange", token, data=data)

    async def send_flow_request(
        self, action: str, token: str | None = None, **fields: Any
    ) -> tuple[int, dict[str, Any]]:
        assert self._public_key is not None
        token = token or (await self.get_last(PinForm)).token
        flow_client = FlowClient(self._public_key)
        body = flow_client.encrypt(
            {"version": "3.0", "action": action, "flow_token": token, **fields}
        )
        response = await self.client.post(self._flow_path, content=body, auth=self._auth)
        return response.status_code, flow_client.decrypt(response.text)

    # The compatibility endpoint

    async def send_by_bridge(self, body: str) -> str:
        response = await self.post_to_bridge(message=body, messageType="text")
        assert response.status_code == 200, response.text
        assert response.json()["status"] == "success"
        return str(response.json()["answer"])

    async def post_to_bridge(self, **fields: Any) -> httpx2.Response:
        body = {"event": "message", "from": self.number, "phoneE164": self.number, **fields}
        return await self.client.post(BRIDGE_PATH, json=body)


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
        messenger_settings = self.harness.services.settings.replace(**overrides)
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
