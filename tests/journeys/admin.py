"""Admins of any role, who create the other actors."""

from typing import Any, Self

import httpx2

from harness import BearerAuth
from journeys.actors import AGENT_PIN, Agent, App, Customer, Merchant, Partner, Terminal
from journeys.api_caller import ApiCaller, Record, new_phone_number, require_success, sequence
from tapgate.api.endpoint import ROLES_BY_LETTER

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
