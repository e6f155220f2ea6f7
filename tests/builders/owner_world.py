"""World of owners with canaries in its texts, for tests that need one and a foreign one.

Each world has a merchant, a partner and an agent with customers, payments, payouts, bank accounts,
disputes, keys, terminals, users, webhook endpoints with deliveries, logged requests and statements.
"""

from datetime import timedelta
from typing import Any, NamedTuple

from builders.disputes import DisputeDriver
from builders.participants import (
    FUND_URL,
    cash_in,
    create_agent,
    create_partner,
    get_partner_auth,
)
from builders.payouts import create_bank_account, request_payout
from harness import PIN, BearerAuth, Harness, HmacAuth, insert_row
from tapgate.auth.owners import OWNER_PREFIXES
from tapgate_client import ids
from tapgate_client.schemas.admin import Scope

V1 = "/api/v1"
OWNER_ROLES = {"M": ids.PROCESSOR, "K": ids.PROCESSOR, "P": ids.PARTNER, "G": ids.AGENT}


class OwnerCaller(NamedTuple):
    name: str
    auth: BearerAuth
    role: str  # letter; the role of a key is the one whose operations it may call
    is_key: bool
    owner_id: str


class OwnerWorld:
    """One side. `ids` are its public IDs by prefix, and `serials` its cards."""

    def __init__(self, harness: Harness, mark: str) -> None:
        self.harness = harness
        self.mark = mark
        self.ids: dict[str, list[str]] = {}
        self.serials: list[str] = []
        self.phones: list[str] = []  # of customers
        self.agent_phones: list[str] = []
        self.callers: list[OwnerCaller] = []

    @property
    def canaries(self) -> list[str]:
        """Texts that no caller of the other world may receive."""
        return [
            self.mark,
            *self.phones,
            *self.agent_phones,
            *self.serials,
            *self.list_ids(),
        ]

    @property
    def personal_canaries(self) -> list[str]:
        """Customer data that no owner may receive."""
        return [f"{self.mark}family", *self.phones]

    def list_ids(self) -> list[str]:
        return [item for items in self.ids.values() for item in items]

    def get_owner(self, prefix: str) -> str:
        return self.ids[prefix][0]

    def add(self, public_id: str) -> str:
        prefix = public_id[: public_id.index("_") + 1]
        self.ids.setdefault(prefix, []).append(public_id)
        return public_id

    async def create(self) -> None:
        shop = await self._create_shop()
        partner = await self._create_partner()
        agent = await self._create_agent()
        for owner_id in (shop, partner, agent):
            await self._create_records(owner_id)
        await self._create_callers()
        await self._load_generated()

    async def _create_customer(self) -> dict[str, Any]:
        customer = await self.harness.create_subscriber(
            balance="500", first_name="Aminata", last_name=f"{self.mark}family"
        )
        self.add(customer["id"])
        self.add(customer["account_id"])
        self.phones.append(customer["phone_number"])
        return customer

    async def _create_shop(self) -> str:
        harness = self.harness
        driver = await DisputeDriver.create(harness)
        driver.customer = await self._create_customer()
        driver.card = await harness.create_card(driver.customer["id"])
        self.serials.append(driver.card)
        driver.merchant_auth = await harness.create_processor(f"{self.mark}shop", self.mark)
        self.signing_key: HmacAuth = driver.merchant_auth
        shop = self.add(await harness.get_processor_id(driver.merchant_auth))
        self.add(await harness.get_account_id(driver.merchant_auth))
        self.add(driver.merchant_auth.id)
        dispute = await driver.create_dispute("40.00", description=f"{self.mark}dispute")
        self.add(dispute["id"])
        self.add(dispute["transaction_id"])
        for amount in ("25.00", "35.00"):
            metadata = {"note": f"{self.mark}metadata"}
            paid = await driver.pay(amount, pin=PIN, metadata=metadata)
            assert paid.status_code == 200, paid.text
            self.add(paid.json()["transaction_id"])
        terminal = await harness.post(
            f"{V1}/processors/{shop}/terminals",
            json={"name": f"{self.mark}till"},
            auth=await harness.create_admin(),
        )
        self.add(terminal.json()["terminal"]["id"])
        self.add(terminal.json()["api_key_id"])
        return shop

    async def _create_partner(self) -> str:
        harness, customer = self.harness, await self._create_customer()
        created = await create_partner(harness, balance="800", name=f"{self.mark}bank")
        partner = self.add(created["partner"]["id"])
        self.add(created["partner"]["account_id"])
        self.add(created["api_key_id"])
        body = {
            "partner_id": partner,
            "subscriber_id": customer["id"],
            "partner_reference": f"{self.mark}reference",
            "amount": "30",
        }
        funded = await harness.post(FUND_URL, json=body, auth=get_partner_auth(created))
        assert funded.status_code == 200, funded.text
        self.add(funded.json()["transaction_id"])
        return partner

    async def _create_agent(self) -> str:
        customer = await self._create_customer()
        record = await create_agent(self.harness, balance="900", name=f"{self.mark}agent")
        self.agent_phones.append(record["phone_number"])
        agent = self.add(record["id"])
        self.add(record["account_id"])
        credited = await cash_in(self.harness, record, customer, "20")
        assert credited.status_code == 200, credited.text
        self.add(credited.json()["transaction_id"])
        return agent

    async def _create_records(self, owner_id: str) -> None:
        harness, admin = self.harness, await self.harness.create_admin()
        account = await create_bank_account(harness, owner_id, holder_name=f"{self.mark}holder")
        self.add(account["id"])
        payout = await request_payout(harness, owner_id, amount="10")
        self.add(payout["id"])
        self.add(payout["transaction_id"])
        body = {"url": f"https://{self.mark}.example/", "events": ["*"], "owner_id": owner_id}
        created = await harness.post(f"{V1}/admin/webhook-endpoints", json=body, auth=admin)
        assert created.status_code == 201, created.text
        endpoint = self.add(created.json()["id"])
        tested = await harness.post(f"{V1}/admin/webhook-endpoints/{endpoint}/test", auth=admin)
        self.add(tested.json()["id"])
        period = {"from": "2026-01-01", "to": "2026-01-31"}
        statement = await harness.post(
            f"{V1}/statements", json={"owner_id": owner_id, **period}, auth=admin
        )
        assert statement.status_code == 200, statement.text
        self.add(statement.json()["statement_id"])

    async def _create_callers(self) -> None:
        harness = self.harness
        for role, prefix in OWNER_ROLES.items():
            user = await harness.create_owner_user(role, self.get_owner(prefix))
            self.add(user.id)
            owner_id = self.get_owner(prefix)
            self.callers.append(OwnerCaller(f"user {role}", user, role, False, owner_id))
            asked = await harness.post(
                f"{V1}/support/owner-requests", json={"text": f"{self.mark}question"}, auth=user
            )
            assert asked.status_code == 201, asked.text
            self.add(asked.json()["id"])
            if role != "G":
                await self._create_approval(user.id)
        for role, prefix in zip("MPG", OWNER_PREFIXES.values(), strict=True):
            owner_id = self.get_owner(prefix)
            key = await harness.create_api_key(*sorted(Scope), owner_id=owner_id)
            self.add(key.id)
            self.callers.append(OwnerCaller(f"key {role}", key, role, True, owner_id))
            used = await harness.get(f"{V1}/me/owner", auth=key)
            assert used.status_code == 200, used.text

    async def _create_approval(self, maker: str) -> None:
        """Store a request that waits for approval, as if a rule had held it."""
        services = self.harness.services
        approval_id, now = services.new_id(), services.clock()
        await insert_row(
            services.database,
            "approvals",
            id=approval_id,
            operation="refunds",
            operations=["refunds"],
            summary=f"Refund {self.mark}",
            changes={},
            sealed_request=b"",
            maker_id=ids.decode(ids.ADMIN, maker),
            maker_person=self.mark,
            roles=["system_admin"],
            required_approvers=1,
            created_at=now,
            expires_at=now + timedelta(hours=1),
            updated_at=now,
        )
        self.add(ids.encode(ids.APPROVAL, approval_id))

    async def _load_generated(self) -> None:
        """Add the IDs of logged requests and of deliveries."""
        harness, admin = self.harness, await self.harness.create_admin()
        await harness.services.request_log.flush()
        for key_id in list(self.ids[ids.KEY]):
            url = f"{V1}/admin/request-logs?api_key_id={key_id}"
            for item in (await harness.get(url, auth=admin)).json()["data"]:
                self.add(item["id"])
