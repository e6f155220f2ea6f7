"""Simulated phone that uses the webhook or simulator API, the compatibility endpoint and forms."""

import asyncio
import itertools
import json
import time
from typing import Any, Self

import httpx2

from drivers.flow_client import FlowClient
from tapgate.messenger.channel.plain_text import render_plain_text
from tapgate.messenger.model.replies import OptionList, OutgoingMessage, PinForm
from tapgate.messenger.outbox.sealing import open_message
from tapgate.store.database import Database
from tapgate.vault import Vault

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
        """Wait at most 30 seconds until every message of this phone has been processed."""
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
