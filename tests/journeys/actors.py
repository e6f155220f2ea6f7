"""Actors outside the platform: apps, customers, agents, terminals, merchants and partners."""

import asyncio
import copy
import json
import secrets
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2

from harness import PIN, HmacAuth
from journeys.api_caller import ApiCaller, Record, new_phone_number, require_success
from tapgate import signing

AGENT_PIN = "5927"


class App(ApiCaller):
    """Third-party software with an API key, or one of the platform's own services."""

    def __init__(self, client: httpx2.AsyncClient, auth: httpx2.Auth, key_id: str) -> None:
        super().__init__(client, auth)
        self.id = key_id

    async def register_customer(self, name: str = "Aminata Kamara", **fields: Any) -> "Customer":
        first_name, last_name = name.split()
        person = {"first_name": first_name, "last_name": last_name, "pin": PIN, **fields}
        person.setdefault("phone_number", new_phone_number())
        record = require_success(await self.post("subscribers", **person))["subscriber"]
        return Customer(self, record)

    async def link_card(self, serial: str, customer: "Customer") -> Record:
        response = await self.post(
            "cards/link", subscriber_id=customer.id, card_serial=serial, pin=customer.pin
        )
        customer.card = serial
        card: Record = require_success(response)["card"]
        return card


class Customer:
    """A subscriber who acts through an app."""

    def __init__(self, app: App, record: Record) -> None:
        self.app = app
        self.id: str = record["id"]
        self.account_id: str = record["account_id"]
        self.phone: str = record["phone_number"]
        self.pin = PIN
        self.card = ""

    def with_client(self, client: httpx2.AsyncClient) -> Self:
        """Return the same customer with an app that uses another client."""
        other = copy.copy(self)
        other.app = self.app.with_client(client)
        return other

    async def get_record(self) -> Record:
        return require_success(await self.app.get(f"subscribers/{self.id}"))

    async def get_funds(self) -> tuple[str, str]:
        """Return the available and the held balance."""
        found = require_success(await self.app.get(f"balance/{self.id}"))
        return found["available"], found["held"]

    async def get_balance(self) -> str:
        return await self.app.get_balance(self.id)

    async def send_money(self, amount: str, friend: "Customer", **fields: Any) -> httpx2.Response:
        return await self.app.post(
            "wallet/transfer-p2p",
            **{
                "sender_id": self.id,
                "recipient_card_serial": friend.card,
                "amount": amount,
                "pin": self.pin,
                **fields,
            },
        )


class Agent(ApiCaller):
    """An agent with float and a PIN, using counter software with an API key."""

    def __init__(self, counter: App, record: Record) -> None:
        super().__init__(counter.client, counter.auth)
        self.id: str = record["id"]
        self.pin = AGENT_PIN

    async def cash_in(self, amount: str, customer: Customer, **fields: Any) -> httpx2.Response:
        return await self._post_cash_operation(customer, "cashin", amount, **fields)

    async def cash_out(self, amount: str, customer: Customer, **fields: Any) -> httpx2.Response:
        return await self._post_cash_operation(
            customer, "cashout", amount, **{"pin": customer.pin, **fields}
        )

    async def _post_cash_operation(
        self, customer: Customer, verb: str, amount: str, **fields: Any
    ) -> httpx2.Response:
        """Post a cash operation; the customer is identified by ID unless a card serial is given."""
        identifier = {} if "card_serial" in fields else {"subscriber_id": customer.id}
        body = {
            "agent_id": self.id,
            "amount": amount,
            "agent_pin": self.pin,
            **identifier,
            **fields,
        }
        return await self.post(f"agents/{verb}", **body)

    async def transfer_float(
        self, amount: str, sub_agent: "Agent", **fields: Any
    ) -> httpx2.Response:
        body = {"from_agent_id": self.id, "to_agent_id": sub_agent.id, "pin": self.pin, **fields}
        return await self.post("agents/transfer", amount=amount, **body)

    async def get_balances(self) -> tuple[str, str]:
        """Return float and commission."""
        found = require_success(await self.get(f"agents/{self.id}/balance"))
        return found["float_balance"], found["commission_balance"]


class Terminal(ApiCaller):
    """A merchant's terminal, or the merchant's server, with a signing key."""

    def __init__(self, client: httpx2.AsyncClient, value: Record) -> None:
        super().__init__(client, HmacAuth(value["api_key_id"], value["hmac_secret"]))

    async def pay(
        self, amount: str, card: str, pin: str | None = None, **fields: Any
    ) -> httpx2.Response:
        body = {"request_id": new_request_id(), "card_serial": card, "amount": amount, "pin": pin}
        return await self.post("pos/payment", **{**body, **fields})

    async def pay_in_app(self, amount: str, card: str, **fields: Any) -> httpx2.Response:
        """Pay through `/payment`, the unversioned path of the in-app payment endpoint."""
        body = {"request_id": new_request_id(), "card_serial": card, "amount": amount}
        return await self.client.post("/payment", json=body | fields, auth=self.auth)

    async def pay_and_disconnect(self, amount: str, card: str, pin: str, request_id: str) -> None:
        """Send a payment and abort the connection without reading the response."""
        body = {"request_id": request_id, "card_serial": card, "amount": amount, "pin": pin}
        request = self.client.build_request("POST", "/api/v1/pos/payment", json=body)
        next(self.auth.sync_auth_flow(request))
        lines = [f"{name}: {value}" for name, value in request.headers.items()]
        head = "\r\n".join(["POST /api/v1/pos/payment HTTP/1.1", *lines, "", ""])
        address = urlsplit(str(self.client.base_url))
        _, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(head.encode() + request.content)
        await writer.drain()
        writer.transport.abort()

    async def refund(
        self, transaction_id: str, amount: str | None = None, **fields: Any
    ) -> httpx2.Response:
        body = {
            "request_id": new_request_id(),
            "original_transaction_id": transaction_id,
            "amount": amount,
            "reason": "goods returned",
        }
        return await self.post("pos/refund", **{**body, **fields})

    async def verify_card(self, card: str, pin: str) -> httpx2.Response:
        return await self.post("pos/verify-card", card_serial=card, pin=pin)


class Merchant:
    """A merchant (processor) with its server, which has a signing key."""

    def __init__(self, client: httpx2.AsyncClient, created: Record) -> None:
        self.id: str = created["processor_id"]
        self.server = Terminal(client, created)


class Partner(ApiCaller):
    """A bank that tops up wallets by signed requests and by webhooks."""

    def __init__(self, client: httpx2.AsyncClient, created: Record) -> None:
        self.id: str = created["partner"]["id"]
        key = HmacAuth(created["api_key_id"], created["hmac_secret"], self.id)
        super().__init__(client, key)
        self._webhook_secret: str = created["webhook_secret"]

    async def top_up(
        self, amount: str, customer: Customer, reference: str, **fields: Any
    ) -> httpx2.Response:
        body = {"subscriber_id": customer.id, "partner_reference": reference, "amount": amount}
        return await self.post("wallet/fund-from-partner", **body, **fields)

    async def send_webhook(
        self, amount: str, customer: Customer, reference: str
    ) -> httpx2.Response:
        """Send a top-up by webhook, signed over the exact bytes of the body."""
        body = {"reference": reference, "phone_number": customer.phone, "amount": amount}
        raw = json.dumps(body).encode()
        signature = signing.webhook_signature(self._webhook_secret.encode(), raw)
        return await self.client.post(
            f"/api/v1/webhooks/partners/{self.id}",
            content=raw,
            headers={"X-Webhook-Signature": signature},
        )


def new_request_id() -> str:
    return secrets.token_hex(8)
