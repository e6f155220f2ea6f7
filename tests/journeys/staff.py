"""The people who run the platform: admins of every role."""

from typing import Any, Self

import httpx2

from journeys.caller import Caller, Record, done, new_phone, numbers
from journeys.people import AGENT_PIN, Agent, App, Customer, Merchant, Partner, Till
from tapgate.edge.endpoint import ROLES_BY_LETTER
from world import Bearer

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


class Admin(Caller):
    """Somebody who works for the platform; what one may do is decided by the role."""

    def __init__(self, client: httpx2.AsyncClient, token: str, me: Record) -> None:
        super().__init__(client, Bearer(token, me["id"]))
        self.id: str = me["id"]
        self.email: str | None = me.get("email")

    @classmethod
    async def logged_in(cls, client: httpx2.AsyncClient, email: str, password: str) -> Self:
        credentials = {"email": email, "password": password}
        token = done(await client.post("/api/v1/admin/login", json=credentials))["token"]
        me = await client.get("/api/v1/admin/me", headers={"Authorization": f"Bearer {token}"})
        return cls(client, token, done(me))

    async def hire(self, name: str, role: str) -> "Admin":
        """Somebody new, who logs in. The role is its letter in the interface."""
        email = f"{name.lower()}{next(numbers)}@example.com"
        created = await self.post(
            "admin/users", email=email, password=PASSWORD, name=name, role=ROLES_BY_LETTER[role]
        )
        assert created.status_code == 201, created.text
        return await Admin.logged_in(self.client, email, PASSWORD)

    async def app(self, *scopes: str) -> App:
        made = done(await self.post("admin/api-keys", name="App", scopes=scopes or _SCOPES))
        return App(self.client, Bearer(made["key"], made["id"]), made["id"])

    async def upload_cards(self, *serials: str) -> None:
        """New cards, from a file without mistakes."""
        rows = [f"{serial},{_new_uid()}" for serial in serials]
        uploaded = await self.upload("\n".join(["Serial No.,MAC Address", *rows]))
        assert done(uploaded)["created"] == len(serials), uploaded.text

    async def upload(self, csv: str) -> httpx2.Response:
        return await self.client.post(
            "/api/v1/cards/upload-csv", files={"file": ("cards.csv", csv)}, auth=self.auth
        )

    async def agent(self, counter: App, name: str, parent: Agent | None = None) -> Agent:
        answer = await self.post(
            "agents",
            agent_type="super_agent" if parent is None else "sub_agent",
            parent_agent_id=None if parent is None else parent.id,
            name=name,
            phone_number=new_phone(),
            pin=AGENT_PIN,
        )
        return Agent(counter, done(answer)["agent"])

    async def fund_agent(self, agent: Agent, amount: str) -> Record:
        return done(await self.post(f"agents/{agent.id}/fund", amount=amount))

    async def merchant(self, name: str = "Kamara Stores") -> Merchant:
        answer = await self.post(
            "processors", name=name, phone_number=new_phone(), email="shop@example.com"
        )
        return Merchant(self.client, done(answer))

    async def till(self, merchant: Merchant, name: str) -> tuple[Till, Record]:
        """A terminal with a key of its own, and its record."""
        answer = done(await self.post(f"processors/{merchant.id}/terminals", name=name))
        return Till(self.client, answer), answer["terminal"]

    async def partner(self, name: str = "Sierra Bank", **fields: Any) -> Partner:
        return Partner(self.client, done(await self.post("admin/partners", name=name, **fields)))

    async def fund_partner(self, partner: Partner, amount: str) -> Record:
        return done(await self.post(f"admin/partners/{partner.id}/fund", amount=amount))

    async def customer_with(
        self, balance: str, app: App, name: str = "Aminata Kamara", **fields: Any
    ) -> Customer:
        """For journeys of something else: registered, with a card, and with money from a bank."""
        customer, bank = await app.register(name, **fields), await self.partner()
        serial = f"TAP-{next(numbers):06d}"
        await self.upload_cards(serial)
        await app.link(serial, customer)
        await self.fund_partner(bank, balance)
        done(await bank.top_up(balance, customer, "first"))
        return customer


def _new_uid() -> str:
    return (0x04 << 48 | next(numbers)).to_bytes(7).hex(":").upper()
