"""API callers: customers, merchants, agents, partners, apps and admins.

`get`, `post` and `put` send one HTTP request and return the response. `require_success` returns
the body of a response that must succeed, and `require_error` the status and code of an error.
"""

import asyncio
import copy
import itertools
import json
import secrets
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2

from harness import PIN, BearerAuth, HmacAuth
from tapgate.http.api.access import ROLES_BY_LETTER
from tapgate_client import signing

Record = dict[str, Any]

#: Makes names and numbers unique across journeys.
sequence = itertools.count(1)


def new_phone_number() -> str:
    return f"+232{77_000_000 + next(sequence)}"


def require_success(response: httpx2.Response) -> Record:
    assert response.is_success, (response.status_code, response.text)
    body: Record = response.json()
    return body


def require_error(response: httpx2.Response) -> tuple[int, str]:
    assert not response.is_success, response.text
    return response.status_code, response.json()["code"]


def require_error_details(response: httpx2.Response) -> Record:
    assert not response.is_success, response.text
    found: Record = response.json()["details"]
    return found


class ApiCaller:
    """A caller with a credential. Body fields that are None are omitted."""

    def __init__(self, client: httpx2.AsyncClient, auth: httpx2.Auth) -> None:
        self.client = client
        self.auth = auth

    def with_client(self, client: httpx2.AsyncClient) -> Self:
        """Return the same caller with another client."""
        other = copy.copy(self)
        other.client = client
        return other

    async def get(self, path: str, **query: Any) -> httpx2.Response:
        return await self.client.get(f"/api/v1/{path}", params=query, auth=self.auth)

    async def post(self, path: str, **body: Any) -> httpx2.Response:
        return await self.client.post(f"/api/v1/{path}", json=_drop_none(body), auth=self.auth)

    async def put(self, path: str, **body: Any) -> httpx2.Response:
        return await self.client.put(f"/api/v1/{path}", json=_drop_none(body), auth=self.auth)

    async def delete(self, path: str) -> httpx2.Response:
        return await self.client.delete(f"/api/v1/{path}", auth=self.auth)

    async def list_all(self, path: str, **query: Any) -> list[Record]:
        """Return all pages of a list, newest first."""
        found: list[Record] = []
        while True:
            page = require_success(await self.get(path, **query))
            found += page["data"]
            if not page["has_more"]:
                return found
            query["cursor"] = page["next_cursor"]

    async def list_transactions(self, user_id: str, **filters: Any) -> list[Record]:
        return await self.list_all("transactions", user_id=user_id, limit=100, **filters)

    async def get_balance(self, user_id: str) -> str:
        return str(require_success(await self.get(f"balance/{user_id}"))["balance"])


def _drop_none(body: Record) -> Record:
    return {name: value for name, value in body.items() if value is not None}


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
        self.phone: str = record["phone_number"]
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
        """Pay through `/payment`, the in-app payment endpoint's unversioned path."""
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
        """Send a top-up by webhook, signed over the exact body bytes."""
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


PASSWORD = "a long enough password"
_SCOPES = (
    "payments:read",
    "payments:write",
    "balance:read",
    "subscribers:read",
    "subscribers:write",
    "cards:read",
    "cards:write",
)


class Admin(ApiCaller):
    """An admin whose permissions depend on the role."""

    def __init__(self, client: httpx2.AsyncClient, token: str, me: Record) -> None:
        super().__init__(client, BearerAuth(token, me["id"]))
        self.token = token
        self.id: str = me["id"]
        self.email: str | None = me.get("email")

    @classmethod
    async def log_in(cls, client: httpx2.AsyncClient, email: str, password: str) -> Self:
        credentials = {"email": email, "password": password}
        token = require_success(await client.post("/api/v1/admin/login", json=credentials))["token"]
        me = await client.get("/api/v1/admin/me", headers={"Authorization": f"Bearer {token}"})
        return cls(client, token, require_success(me))

    async def create_admin(self, name: str, role: str) -> "Admin":
        """Create an admin and log in as this admin; `role` is a letter of `ROLES_BY_LETTER`."""
        email = f"{name.lower()}{next(sequence)}@example.com"
        created = await self.post(
            "admin/users", email=email, password=PASSWORD, name=name, role=ROLES_BY_LETTER[role]
        )
        assert created.status_code == 201, created.text
        return await Admin.log_in(self.client, email, PASSWORD)

    async def create_app(self, *scopes: str) -> App:
        created = require_success(
            await self.post("admin/api-keys", name="App", scopes=scopes or _SCOPES)
        )
        return App(self.client, BearerAuth(created["key"], created["id"]), created["id"])

    async def upload_cards(self, *serials: str) -> None:
        """Upload new cards from a valid CSV file."""
        rows = [f"{serial},{_new_uid()}" for serial in serials]
        uploaded = await self.upload_csv("\n".join(["Serial No.,MAC Address", *rows]))
        assert require_success(uploaded)["created"] == len(serials), uploaded.text

    async def upload_csv(self, csv: str) -> httpx2.Response:
        return await self.client.post(
            "/api/v1/cards/upload-csv", files={"file": ("cards.csv", csv)}, auth=self.auth
        )

    async def import_statement(self, csv: str) -> Record:
        """Import a bank statement for the platform's only bank account."""
        uploaded = await self.client.post(
            "/api/v1/bank-statements", files={"file": ("statement.csv", csv)}, auth=self.auth
        )
        return require_success(uploaded)

    async def create_agent(self, counter: App, name: str, parent: Agent | None = None) -> Agent:
        response = await self.post(
            "agents",
            agent_type="super_agent" if parent is None else "sub_agent",
            parent_agent_id=None if parent is None else parent.id,
            name=name,
            phone_number=new_phone_number(),
            pin=AGENT_PIN,
        )
        return Agent(counter, require_success(response)["agent"])

    async def fund_agent(self, agent: Agent, amount: str) -> Record:
        return require_success(await self.post(f"agents/{agent.id}/fund", amount=amount))

    async def create_merchant(self, name: str = "Kamara Stores") -> Merchant:
        response = await self.post(
            "processors", name=name, phone_number=new_phone_number(), email="shop@example.com"
        )
        return Merchant(self.client, require_success(response))

    async def create_terminal(self, merchant: Merchant, name: str) -> tuple[Terminal, Record]:
        """Create a terminal with its own key; return the terminal and its record."""
        response = require_success(
            await self.post(f"processors/{merchant.id}/terminals", name=name)
        )
        return Terminal(self.client, response), response["terminal"]

    async def create_partner(self, name: str = "Sierra Bank", **fields: Any) -> Partner:
        return Partner(
            self.client, require_success(await self.post("admin/partners", name=name, **fields))
        )

    async def fund_partner(self, partner: Partner, amount: str) -> Record:
        return require_success(await self.post(f"admin/partners/{partner.id}/fund", amount=amount))

    async def create_funded_customer(
        self, balance: str, app: App, name: str = "Aminata Kamara", **fields: Any
    ) -> Customer:
        """Create a customer with a card and a balance, funded by a partner."""
        customer, bank = await app.register_customer(name, **fields), await self.create_partner()
        serial = f"TAP-{next(sequence):06d}"
        await self.upload_cards(serial)
        await app.link_card(serial, customer)
        await self.fund_partner(bank, balance)
        require_success(await bank.top_up(balance, customer, "first"))
        return customer


def _new_uid() -> str:
    return (0x04 << 48 | next(sequence)).to_bytes(7).hex(":").upper()
