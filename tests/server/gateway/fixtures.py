"""Callers and objects for access and ownership tests."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import msgspec

from builders.float_requests import create_float_request
from builders.participants import create_agent, create_sub_agent, get_partner_auth
from builders.participants import create_partner as new_partner
from databases import ScratchDatabases, build_database_url
from drivers.in_process import AppTransport
from harness import PIN, Harness, HmacAuth
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import load_settings
from tapgate.events.audit.rejections import RejectionLog
from tapgate.http.api.access import ROLES_BY_LETTER, Access
from tapgate.http.endpoint import Endpoint
from tapgate.ledger.pins.pin_storage import set_pin
from tapgate.ledger.rules.loaded_rules import insert_defaults
from tapgate.server.gateway import create_app, open_gateway_services
from tapgate_client import ids
from tapgate_client.schemas.admin import Scope

NO_RATE_LIMITS = {"TAPGATE_RATE_LIMIT": "1000000", "TAPGATE_RATE_BURST": "1000000"}

ALL_SCOPES = "key with all scopes"
ALL_SCOPES_BUT = f"{ALL_SCOPES} but "


class Caller(NamedTuple):
    """A valid credential and its properties."""

    name: str
    auth: Any
    kind: str  # api_key, admin, service, pos, partner
    scopes: frozenset[str] = frozenset()
    role: str = ""

    def is_allowed(self, access: Access) -> bool:
        match self.kind:
            case "api_key":
                return access.scope in self.scopes
            case "admin":
                return self.role in access.roles
            case "service":
                return access.service
        return access.hmac == self.kind

    def get_expected_error(self, access: Access) -> tuple[int, str]:
        """Return the expected status and error code according to the specification.

        The wrong kind of credential, or a missing permission, is 403. A route that accepts only
        client signatures returns 401 for a request without one.
        """
        only_signed = access.hmac and not (access.scope or access.roles or access.service)
        if only_signed and self.kind not in ("pos", "partner"):
            return 401, "UNAUTHORIZED"
        return 403, "FORBIDDEN"

    def get_expected_requirements(self, access: Access) -> list[str]:
        """Return the expected `required` list.

        It names the requirement for the caller's own kind if the route accepts that kind, otherwise
        all accepted credentials.
        """
        roles = sorted(ROLES_BY_LETTER[letter] for letter in access.roles)
        if self.kind == "api_key" and access.scope:
            return [access.scope]
        if self.kind == "admin" and roles:
            return roles
        scope = [access.scope] if access.scope else []
        signature = [f"{access.hmac}_signature"] if access.hmac else []
        service = ["service_signature"] if access.service else []
        owner = ["owner"] if access.owners else []
        return scope + signature + roles + service + owner


class AccessFixtures:
    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.client = harness.client
        self.callers: list[Caller] = []
        self.processor = self.terminal = self.partner = HmacAuth("", "")

    async def create_callers(self) -> None:
        harness = self.harness
        self.processor, self.partner = (
            await harness.create_processor(),
            await harness.create_partner(),
        )
        self.terminal = await create_terminal_key(harness, self.processor)
        keys = {f"key {scope}": {scope} for scope in Scope}
        keys |= {f"{ALL_SCOPES_BUT}{scope}": {*Scope} - {scope} for scope in Scope}
        keys[ALL_SCOPES] = {*Scope}
        self.callers = [
            *[
                Caller(
                    name,
                    await harness.create_api_key(*sorted(scopes)),
                    "api_key",
                    frozenset(scopes),
                )
                for name, scopes in keys.items()
            ],
            *[
                Caller(name, await harness.create_admin(r), "admin", role=r)
                for r, name in ROLES_BY_LETTER.items()
            ],
            *[
                Caller(f"service {name}", harness.get_service_auth(name), "service")
                for name in harness.services.settings.service_secrets
            ],
            Caller("processor", self.processor, "pos"),
            Caller("terminal", self.terminal, "pos"),
            Caller("partner", self.partner, "partner"),
        ]

    def list_callers(self, access: Access) -> list[Caller]:
        """Return the callers that may differ at an endpoint with this access.

        Of the API keys, these are the keys with all scopes, with only the required scope and with
        all scopes but the required one.
        """
        keys = {ALL_SCOPES, f"key {access.scope}", f"{ALL_SCOPES_BUT}{access.scope}"}
        return [
            caller for caller in self.callers if caller.kind != "api_key" or caller.name in keys
        ]

    async def count_denials(self) -> int:
        """Return the number of denials in the audit log.

        Also resets the callers' budgets, so that each of the next denials gets its own entry.
        """
        database = self.harness.database
        await database.execute("DELETE FROM audit_budgets")
        rejection_log = self.harness.services.rejection_log
        assert isinstance(rejection_log, RejectionLog)
        rejection_log.exhausted_budgets.clear()
        count: int = await database.fetchval(
            "SELECT count(*) FROM audit_entries WHERE event = 'access.denied'"
        )
        return count

    async def snapshot_tables(self, *excluded: str) -> Mapping[str, Any]:
        """Return the rows of all tables but `excluded`, the audit log, signals and migrations."""
        database = self.harness.database
        tables = await database.fetch(
            """SELECT relname FROM pg_class
               WHERE relnamespace = 'public'::regnamespace
                 AND relkind IN ('r', 'p') AND NOT relispartition AND relname NOT IN
                   ('schema_migrations', 'audit_entries', 'audit_budgets', 'audit_seal', 'signals')
               ORDER BY relname"""
        )
        return {
            name: await database.fetch(f"SELECT * FROM {name} ORDER BY {name}::text")
            for (name,) in tables
            if name not in excluded
        }


async def create_terminal_key(harness: Harness, processor: HmacAuth) -> HmacAuth:
    """Create a terminal for the processor and return its key."""
    services, terminal_id = harness.services, harness.services.new_id()
    async with services.transaction() as tx:
        owner = await tx.fetchval(
            "SELECT processor_id FROM hmac_keys WHERE id = $1", ids.decode(ids.KEY, processor.id)
        )
        await tx.execute(
            """INSERT INTO terminals (id, processor_id, name, status, created_at)
               VALUES ($1, $2, 'Till', 'active', now())""",
            terminal_id,
            owner,
        )
        keys = services.authenticator.hmac_keys
        key = await keys.create(tx, processor_id=owner, terminal_id=terminal_id)
    return HmacAuth(ids.encode(ids.KEY, key.id), key.secret)


@contextlib.asynccontextmanager
async def run_access_fixtures(
    folder: Path, postgres: str, copies: ScratchDatabases
) -> AsyncIterator[AccessFixtures]:
    name = await copies.acquire()
    url = build_database_url(name, postgres)
    settings = load_settings(
        {"TAPGATE_DATA_DIR": str(folder), "TAPGATE_DATABASE_URL": url, **NO_RATE_LIMITS}
    )
    try:
        async with open_gateway_services(settings, url) as services:
            async with services.transaction() as tx:
                await insert_defaults(tx, settings.currency, IdGenerator(1023))
            transport = AppTransport(create_app(services))
            async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
                access_fixtures = AccessFixtures(Harness(services, client))
                await access_fixtures.create_callers()
                yield access_fixtures
    finally:
        await copies.release(name)


def build_missing_path(endpoint: Endpoint) -> str:
    """Return a path to the endpoint that refers to an object that does not exist."""
    return "/".join("1" if part.startswith("{") else part for part in endpoint.path.split("/"))


def get_status_and_code(response: httpx2.Response) -> tuple[int, str | None]:
    if response.status_code < 400 or not response.content:
        return response.status_code, None
    return response.status_code, msgspec.json.decode(response.content).get("code")


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
    """A subscriber with two cards, one blocked, a transaction, a recall and a KYC document.

    `child_card` has the same PIN as the subscriber. The subscriber received the recalled transfer
    and sent `transfer_id`.
    """

    def __init__(self, record: dict[str, Any], pin: str) -> None:
        self.record = record
        self.id: str = record["id"]
        self.account_id: str = record["account_id"]
        self.phone: str = record["phone_number"]
        self.pin = pin
        self.card = self.blocked_card = self.child_card = ""
        self.transaction_id = self.transfer_id = self.document_id = ""
        self.support_request = self.dispute = ""
        self.recall = self.cash_out_request = ""
        self.payment_request_id = new_request_id()


class OwnershipFixtures:
    """Two owners of every kind, so that one can request the other's objects."""

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
        self.float_request = ""  # of the second sub-agent
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
        self.float_request = (await create_float_request(harness, self.sub_agents[1]))["id"]
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
        return get_partner_auth(self.partner_record)

    async def _create_transfers(self, subscriber: SubscriberFixture) -> None:
        """Send the subscriber a transfer, recall it, and let the subscriber send a transfer."""
        other = await self.harness.create_subscriber(balance="10")
        received = await self._transfer(other["id"], PIN, subscriber.phone)
        subscriber.transfer_id = await self._transfer(
            subscriber.id, subscriber.pin, other["phone_number"]
        )
        recalled = await self.client.post(
            f"{V1}/transactions/{received}/recall",
            json={"pin": PIN, "request_id": new_request_id()},
            auth=self.harness.get_service_auth(),
        )
        assert recalled.status_code == 201, recalled.text
        subscriber.recall = recalled.json()["id"]

    async def _transfer(self, sender_id: str, pin: str, recipient_phone: str) -> str:
        transfer = {
            "sender_id": sender_id,
            "recipient_phone_number": recipient_phone,
            "amount": "5",
            "pin": pin,
        }
        sent = await self.client.post(
            f"{V1}/wallet/transfer-p2p", json=transfer, auth=self.harness.get_service_auth()
        )
        assert sent.status_code == 200, sent.text
        transaction_id: str = sent.json()["transaction_id"]
        return transaction_id

    async def create_subscriber(
        self, *, restricted: bool = False, pin: str = PIN
    ) -> SubscriberFixture:
        harness = self.harness
        subscriber = SubscriberFixture(
            await harness.create_subscriber(balance="1000", pin=pin), pin
        )
        subscriber.card = await harness.create_card(subscriber.id)
        subscriber.blocked_card = await harness.create_card(subscriber.id)
        card_id = harness.services.new_id()
        subscriber.child_card = await harness.create_card(
            subscriber.id, id=card_id, type="CHILD", holder_name="Sia", pin_holder_id=card_id
        )
        async with harness.services.transaction() as tx:
            await set_pin(tx, card_id, harness.services.pin_verifier.hash(pin))
        paid = await self.client.post(
            f"{V1}/pos/payment",
            json={
                "request_id": subscriber.payment_request_id,
                "card_serial": subscriber.card,
                "amount": "10",
            },
            auth=self.processor,
        )
        subscriber.transaction_id = paid.json()["transaction_id"]
        message = {"phone_number": subscriber.phone, "text": "Hello"}
        asked = await self.client.post(
            f"{V1}/support/requests", json=message, auth=harness.get_service_auth()
        )
        subscriber.support_request = asked.json()["id"]
        disputed = await self.client.post(
            f"{V1}/disputes",
            json={
                "transaction_id": subscriber.transaction_id,
                "reason": "other",
                "request_id": new_request_id(),
            },
            auth=harness.get_service_auth(),
        )
        subscriber.dispute = disputed.json()["id"]
        await self._create_transfers(subscriber)
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
