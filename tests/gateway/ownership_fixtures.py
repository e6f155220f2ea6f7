"""Two owners of every kind of object, for requests for another owner's objects."""

from typing import Any, NamedTuple

from builders.agents import create_agent, create_sub_agent
from builders.partners import create_partner as new_partner
from builders.partners import get_auth
from gateway.access_fixtures import AccessFixtures, create_terminal_key
from harness import PIN, Harness, HmacAuth
from tapgate import ids

V1 = "/api/v1"
OTHER_PIN = "5182"
NEW_PIN = "6273"
IMAGE_DATA_URI = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptV"
    "AAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
PERIOD = {"from_date": "2026-01-01", "to_date": "2026-01-31"}

_sequence = iter(range(1, 10**6))


class OwnershipRequest(NamedTuple):
    method: str
    path: str
    body: Any = None


class SubscriberFixture:
    """A subscriber with two cards, one of them blocked, a transaction and a KYC document."""

    def __init__(self, record: dict[str, Any], pin: str) -> None:
        self.record = record
        self.id: str = record["id"]
        self.account_id: str = record["account_id"]
        self.phone: str = record["phone_number"]
        self.pin = pin
        self.card = self.blocked_card = self.transaction_id = self.document_id = ""


class OwnershipFixtures:
    """Two owners of every kind, so that one can request objects of the other."""

    def __init__(self, access_fixtures: AccessFixtures) -> None:
        self.access_fixtures = access_fixtures
        self.harness: Harness = access_fixtures.harness
        self.client = access_fixtures.client
        self.processor = self.other_processor = HmacAuth("", "")
        self.processor_id = self.other_processor_id = self.other_terminal = self.other_key = ""
        self.partner_record: dict[str, Any] = {}
        self.other_partner_record: dict[str, Any] = {}
        self.agents: list[dict[str, Any]] = []
        self.sub_agents: list[dict[str, Any]] = []
        self.webhook_endpoints: list[str] = []
        self.delivery = ""
        self.subscriber = self.other_subscriber = SubscriberFixture.__new__(SubscriberFixture)

    async def create_all(self) -> None:
        harness = self.harness
        await harness.disable_compliance_rules()
        self.processor, self.other_processor = (
            await harness.create_processor(),
            await harness.create_processor(),
        )
        self.processor_id = await harness.get_processor_id(self.processor)
        self.other_processor_id = await harness.get_processor_id(self.other_processor)
        self.other_key = (await create_terminal_key(harness, self.other_processor)).id
        admin = await harness.create_admin()
        url = f"{V1}/processors/{self.other_processor_id}/terminals"
        (terminal,) = (await self.client.get(url, auth=admin)).json()["data"]
        self.other_terminal = terminal["id"]
        self.partner_record = await new_partner(harness, balance="5000")
        self.other_partner_record = await new_partner(harness, balance="5000")
        self.agents = [await create_agent(harness, balance="1000") for _ in range(2)]
        self.sub_agents = [await create_sub_agent(harness, agent) for agent in self.agents]
        for _ in range(2):
            webhook_endpoint = {"url": "http://127.0.0.1:9/", "events": ["card.blocked"]}
            created = await self.client.post(
                f"{V1}/admin/webhook-endpoints", json=webhook_endpoint, auth=admin
            )
            self.webhook_endpoints.append(created.json()["id"])
        self.subscriber = await self.create_subscriber()
        self.other_subscriber = await self.create_subscriber(pin=OTHER_PIN)
        url = f"{V1}/admin/webhook-endpoints/{self.webhook_endpoints[1]}/deliveries"
        self.delivery = (await self.client.get(url, auth=admin)).json()["data"][0]["id"]

    @property
    def partner_auth(self) -> HmacAuth:
        return get_auth(self.partner_record)

    async def create_subscriber(
        self, *, restricted: bool = False, pin: str = PIN
    ) -> SubscriberFixture:
        harness = self.harness
        subscriber = SubscriberFixture(
            await harness.create_subscriber(balance="1000", pin=pin), pin
        )
        subscriber.card = await harness.create_card(subscriber.id)
        subscriber.blocked_card = await harness.create_card(subscriber.id)
        paid = await self.client.post(
            f"{V1}/pos/payment",
            json={"request_id": new_request_id(), "card_serial": subscriber.card, "amount": "10"},
            auth=self.processor,
        )
        subscriber.transaction_id = paid.json()["transaction_id"]
        body = {"document_type": "selfie", "image": IMAGE_DATA_URI}
        url = f"{V1}/subscribers/{subscriber.id}"
        uploaded = await self.client.post(
            f"{url}/kyc-documents", json=body, auth=harness.get_service_auth()
        )
        subscriber.document_id = uploaded.json()["document_id"]
        reason = {"reason": "customer_request"}
        blocked = await self.client.post(
            f"{V1}/cards/{subscriber.blocked_card}/block",
            json=reason,
            auth=harness.get_service_auth(),
        )
        assert blocked.status_code == 200, blocked.text
        if restricted:
            admin = await harness.create_admin("C")
            response = await self.client.put(url, json={"restricted": True}, auth=admin)
            assert response.status_code == 200, response.text
        return subscriber

    async def create_unassigned_card(self) -> str:
        """Create a card that has no subscriber."""
        services, serial = self.harness.services, f"FREE-{next(_sequence)}"
        await services.database.execute(
            """INSERT INTO cards (id, serial, status, created_at, updated_at)
               VALUES ($1, $2, 'UNASSIGNED', now(), now())""",
            services.new_id(),
            serial,
        )
        return serial


def new_request_id() -> str:
    return f"stranger-{next(_sequence)}"


def build_missing_id(prefix: str) -> str:
    """Return a well-formed identifier that no object has."""
    return ids.encode(prefix, 2**60)
