"""The messenger's forms, outbox, HTTP application and deliveries."""

import contextlib
import functools
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncpg
import httpx2
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from builders.auth import FakeClock
from drivers.in_process import AppTransport
from drivers.messenger import FlowClient
from harness import ServiceAuth
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import load_settings
from tapgate.core.vault import Vault
from tapgate.http.metrics import EventCounters
from tapgate.http.rate_limits.throttle import Throttle
from tapgate.messenger.app import App
from tapgate.messenger.channel.graph import GraphClient
from tapgate.messenger.channel.sms import SmsClient
from tapgate.messenger.conversation_store import cache_active_count
from tapgate.messenger.flows import data_endpoint, forms
from tapgate.messenger.flows.cipher import FlowKey
from tapgate.messenger.flows.forms import Form
from tapgate.messenger.gateway_requests import GatewayRequest
from tapgate.messenger.model import (
    FormSubmitted,
    GatewayUnreachable,
    Intent,
    Language,
    OutgoingMessage,
    PinRequest,
    RequestOutcome,
    RequestSucceeded,
    TextReply,
)
from tapgate.messenger.outbox.outbox_messages import OutboxMessage, enqueue, list_recent
from tapgate.messenger.outbox.sender import Sender
from tapgate.messenger.outbox.sms_sender import SmsSender
from tapgate.messenger.services import Services
from tapgate.runtime.health import HealthMonitor
from tapgate.runtime.nodes import NodeRegistry
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.server_status import get_server_status
from tapgate_client import signing
from tapgate_client.clock import system_clock
from tapgate_client.schemas.nodes import NodeRole
from tapgate_sandbox.fake_provider.provider import Provider, UserMessage

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ADDRESS = "+23276000001"
CORRECT_PIN, WRONG_PIN, NEW_PIN = "4821", "9035", "6174"

#: Generated with OpenSSL and bare primitives, independently of the code under test.
_TEST_VECTOR_FILE = Path(__file__).parents[1] / "messenger" / "flows" / "vector.json"
TEST_VECTOR: dict[str, Any] = json.loads(_TEST_VECTOR_FILE.read_bytes())
PRIVATE_PEM: str = TEST_VECTOR["private_key"]


#: Loaded once, because validating the key is slow.
FLOW_KEY = FlowKey(PRIVATE_PEM)
PUBLIC_PEM = (
    load_pem_private_key(PRIVATE_PEM.encode(), password=None, unsafe_skip_rsa_key_validation=True)
    .public_key()
    .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    .decode()
)


@dataclass
class SubmissionResult:
    finished: bool
    text: str = ""


@dataclass
class FlowDriver:
    """Test driver that also serves as the data endpoint's services object."""

    database: Database
    flow_key: FlowKey | None = FLOW_KEY
    now: datetime = NOW
    entries: list[FormSubmitted] = field(default_factory=list)
    failure: Exception | None = None
    wrong_pin_text: str = "Wrong PIN, 2 tries left."
    used_count: int = 0

    def clock(self) -> datetime:
        return self.now

    def advance_clock(self, **duration: float) -> None:
        self.now += timedelta(**duration)

    async def issue_form(
        self, form: str = "pin", language: str = "en", operation: str = "op"
    ) -> str:
        pin_request = PinRequest(
            text="10.00 SLE to Aminata K.", button="PIN", form=form, operation=operation
        )
        async with self.database.transaction() as tx:
            return await forms.issue(
                tx, address=ADDRESS, pin_request=pin_request, language=language, now=self.clock()
            )

    async def handle_entry(
        self, _: "FlowDriver", form: Form, submission: FormSubmitted
    ) -> SubmissionResult | None:
        """Record the submission, and mark the form as used unless the PIN is wrong."""
        self.entries.append(submission)
        if self.failure is not None:
            raise self.failure
        if submission.pin not in (None, CORRECT_PIN):
            return SubmissionResult(False, self.wrong_pin_text)
        async with self.database.transaction() as tx:
            if not await forms.mark_used(tx, form.token_hash, self.clock()):
                return None
            self.used_count += 1
        return SubmissionResult(True)

    async def send_request(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        client = FlowClient(PUBLIC_PEM)
        status, text = await data_endpoint.handle(self, client.encrypt(request), self.handle_entry)
        return status, client.decrypt(text)

    async def submit_form(self, token: str, **data: object) -> tuple[int, dict[str, Any]]:
        return await self.send_request(
            {"action": "data_exchange", "flow_token": token, "data": data}
        )


def build_success(token: str) -> tuple[int, dict[str, Any]]:
    params = {"flow_token": token}
    return 200, {"screen": "SUCCESS", "data": {"extension_message_response": {"params": params}}}


async def dump_tables(database: Database) -> list[str]:
    tables = await database.fetch(
        "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables"
        " WHERE schemaname IN ('public', 'messenger') AND tablename <> 'schema_migrations'"
    )
    return [
        row["row"]
        for table in tables
        for row in await database.fetch(f"SELECT t::text AS row FROM {table['name']} t")
    ]


PHONE = "+23276123456"
OTHER_PHONE = "+23276000001"


class OutboxDriver:
    """Test driver that also serves as the outbox's services object."""

    def __init__(self, database: Database, clock: FakeClock) -> None:
        self.database = database
        self.clock = clock
        self.vault = Vault("a secret key for the tests of the outbox")
        self.new_id = IdGenerator(1)
        self.sms: SmsClient | None = None

    async def enqueue(
        self, message: OutgoingMessage | str, address: str = PHONE, key: str | None = None
    ) -> tuple[int, bool]:
        async with self.database.transaction() as tx:
            return await self.enqueue_in(tx, message, address, key)

    async def enqueue_in(
        self,
        tx: asyncpg.Connection,
        message: OutgoingMessage | str,
        address: str = PHONE,
        key: str | None = None,
    ) -> tuple[int, bool]:
        content = TextReply(text=message) if isinstance(message, str) else message
        return await enqueue(tx, self, address, content, key=key)

    async def list_rows(self) -> list[asyncpg.Record]:
        return await self.database.fetch("SELECT * FROM messenger.outbox ORDER BY id")

    async def list_statuses(self) -> list[tuple[Any, ...]]:
        return [(row["status"], row["problem"]) for row in await self.list_rows()]


class SenderDriver(OutboxDriver):
    def __init__(
        self, database: Database, clock: FakeClock, provider: Provider, graph: GraphClient
    ) -> None:
        super().__init__(database, clock)
        self.provider = provider
        self.graph = graph

    def create_sender(
        self, *, keep_content: bool = True, database: Database | None = None
    ) -> Sender:
        return Sender(
            database or self.database, self.vault, self.graph, self.clock, keep_content=keep_content
        )

    async def open_service_window(self, *phones: str) -> None:
        """Open the 24-hour service window by sending a message from each phone."""
        for phone in phones:
            await self.provider.send_user_message(phone[1:], UserMessage(text="hi"))

    def list_delivered_texts(self, phone: str = PHONE) -> list[str]:
        """Return the texts delivered to a phone."""
        return [message.message["text"]["body"] for message in self.provider.list_sent_to(phone)]


class SmsDriver(SenderDriver):
    """Outbox with an SMS provider besides the chat's."""

    def __init__(self, chat: SenderDriver, sms: SmsClient) -> None:
        super().__init__(chat.database, chat.clock, chat.provider, chat.graph)
        self.sms = sms
        self.settings = SimpleNamespace(sms_after=60)
        self.counters = EventCounters()

    def create_sms_sender(
        self, *, keep_content: bool = True, database: Database | None = None
    ) -> SmsSender:
        return SmsSender(
            database or self.database,
            self.vault,
            self.sms,
            self.clock,
            self.counters,
            keep_content=keep_content,
        )

    async def use_chat(self, phone: str = PHONE) -> None:
        """Make the person one who has used the chat."""
        await self.database.execute(
            "INSERT INTO messenger.people (address, language, updated_at) VALUES ($1, 'en', $2)",
            phone,
            self.clock(),
        )
        await self.open_service_window(phone)

    async def get_message(self, phone: str = PHONE) -> OutboxMessage:
        (message,) = await list_recent(self.database, self.vault, phone)
        return message


BRIDGE_PATH = "/api/v1/external/messaging"
WEBHOOK_PATH = "/api/v1/webhooks/messaging"
FLOWS_PATH = f"{WEBHOOK_PATH}/flows"
TEMPLATE_PATH = "/api/v1/messages/template"
OUTBOX_PATH = "/api/v1/messages/outbox"
HEALTH_PATH = "/health"

PHONE = "+23276123456"
MESSAGE_BODY = {"event": "message", "from": "23276123456", "phoneE164": PHONE, "message": "menu"}
CODE_BODY = {"to": PHONE, "template": "one_time_code", "parameters": ["918273"]}

#: Limits per address that are reached only by tests that override them.
NO_RATE_LIMITS = {"TAPGATE_RATE_LIMIT": "100000", "TAPGATE_RATE_BURST": "100000"}


class FakeGateway:
    """Gateway that returns None for every request, or is unreachable."""

    def __init__(self) -> None:
        self.is_unreachable = False

    async def perform(self, request: GatewayRequest) -> RequestOutcome:
        return (
            GatewayUnreachable(uncertain=False)
            if self.is_unreachable
            else RequestSucceeded(result=None)
        )


async def resolve_nothing(text: str, language: Language | None) -> Intent:
    return Intent()


class MessengerApp:
    def __init__(self, services: Services, gateway: FakeGateway, app: App) -> None:
        self.services = services
        self.gateway = gateway
        transport = AppTransport(app)
        self.client = httpx2.AsyncClient(transport=transport, base_url="http://messenger")

    def get_service_auth(self, name: str = "gateway") -> ServiceAuth:
        return ServiceAuth(name, self.services.settings.service_secrets[name])

    async def post_message(self, **fields: Any) -> httpx2.Response:
        return await self.client.post(BRIDGE_PATH, json=MESSAGE_BODY | fields)

    async def deliver(self, body: bytes, secret: str | None = None) -> httpx2.Response:
        headers = {}
        if secret is not None:
            signature = signing.webhook_signature(secret.encode(), body)
            headers["X-Hub-Signature-256"] = f"sha256={signature}"
        return await self.client.post(WEBHOOK_PATH, content=body, headers=headers)


@contextlib.asynccontextmanager
async def run_messenger_app(
    folder: Path, database_url: str, **variables: str
) -> AsyncIterator[MessengerApp]:
    settings = load_settings({"TAPGATE_DATA_DIR": str(folder), **NO_RATE_LIMITS, **variables})
    database, gateway = await Database.connect(database_url), FakeGateway()
    throttle = Throttle(settings)
    health = HealthMonitor(settings, functools.partial(get_server_status, database))
    services = Services(
        settings=settings,
        database=database,
        vault=Vault(settings.secret_key),
        clock=system_clock,
        new_id=IdGenerator(7),
        process_id=7,
        perform_request=gateway.perform,
        resolve_intent=resolve_nothing,
        throttle=throttle,
        health=health,
        nodes=NodeRegistry(settings, NodeRole.MESSENGER, database, health),
        active_conversations=cache_active_count(database, system_clock),
        wake_sender=lambda: None,
    )
    app = MessengerApp(services, gateway, App(services))
    try:
        async with app.client:
            yield app
    finally:
        await throttle.close()
        await database.close()


def build_delivery(message_id: str, text: str = "menu", phone: str = PHONE) -> dict[str, Any]:
    """Build the provider's delivery of one text message."""
    message = {
        "from": phone.removeprefix("+"),
        "id": message_id,
        "timestamp": "1767225600",
        "type": "text",
        "text": {"body": text},
    }
    value = {"messaging_product": "whatsapp", "messages": [message]}
    return {"object": "account", "entry": [{"id": "1", "changes": [{"value": value}]}]}


def build_error(message: str) -> dict[str, str]:
    return {"error": message, "status": "error"}


#: The provider's documented text message example, with all optional parts.
DOCUMENTED_DELIVERY: dict[str, Any] = {
    "object": "whatsapp_business_account",
    "entry": [
        {
            "id": "102290129340398",
            "changes": [
                {
                    "value": {
                        "messaging_product": "whatsapp",
                        "metadata": {
                            "display_phone_number": "15550783881",
                            "phone_number_id": "106540352242922",
                        },
                        "contacts": [{"profile": {"name": "Aminata"}, "wa_id": "23276123456"}],
                        "messages": [
                            {
                                "from": "23276123456",
                                "id": "wamid.HBgLMTY1MDM4Nzk0MzkVAgASGBQzQTRBNjU5OUFFRTA=",
                                "timestamp": "1749416383",
                                "type": "text",
                                "text": {"body": "balance"},
                            }
                        ],
                    },
                    "field": "messages",
                }
            ],
        }
    ],
}


def build_message(kind: str, part: object, **others: object) -> dict[str, Any]:
    common = {"from": "23276123456", "id": "wamid.1", "timestamp": "1749416383", "type": kind}
    return common | {kind: part} | others


def encode_delivery(*messages: object, **value: object) -> bytes:
    return json.dumps(
        {"entry": [{"changes": [{"value": {"messages": list(messages)} | value}]}]}
    ).encode()
