"""A small gateway for testing the edge: a few endpoints, and callers with fixed credentials."""

import asyncio
import io
import json
import logging
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn, Self, cast

import httpx2
import msgspec
import pytest
import structlog

from drivers.in_process import AppTransport
from tapgate.auth.actors import Actor
from tapgate.auth.principals import Principal
from tapgate.business.staff.request_logs.recorder import RequestLog
from tapgate.core import settings
from tapgate.core.id_generator import IdGenerator
from tapgate.core.pagination import paginate
from tapgate.http.api.access import Access
from tapgate.http.api.app import App, Site
from tapgate.http.api.book_peers import BookPeers
from tapgate.http.api.latency_samples import LatencySamples
from tapgate.http.api.request_context import RequestContext
from tapgate.http.api.services import RejectedRequest, Services
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.http.metrics import EventCounters
from tapgate.http.rate_limits.throttle import Throttle
from tapgate.runtime import logs
from tapgate.runtime.health import HealthMonitor
from tapgate.runtime.node_files import get_shared_folder
from tapgate.runtime.nodes import NodeRegistry
from tapgate.runtime.store.server_status import ServerStatus
from tapgate_client.clock import system_clock
from tapgate_client.errors import ApiError, Code, unavailable
from tapgate_client.schemas.fields import (
    Amount,
    Email,
    FreeText,
    ListLength,
    Metadata,
    Phone,
    Pin,
    Text,
)
from tapgate_client.schemas.health import Replication, ReplicationMode
from tapgate_client.schemas.nodes import NodeRole
from tapgate_client.schemas.pagination import Page, PageQuery


class LogCapture:
    """This process's log lines, in their output format."""

    def __init__(self) -> None:
        self.stream = io.BytesIO()

    @property
    def text(self) -> str:
        return self.stream.getvalue().decode()

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture
def log_capture() -> Iterator[LogCapture]:
    saved = logging.root.handlers[:], logging.root.level, structlog.get_config()
    capture = LogCapture()
    logs.configure(capture.stream)
    # A logger first used here must not stay bound to this stream.
    structlog.configure(**structlog.get_config() | {"cache_logger_on_first_use": False})
    yield capture
    logs.stream = None
    logging.root.handlers[:], logging.root.level = saved[0], saved[1]
    structlog.configure(**saved[2])


READER = Principal(
    kind="api_key", id="key_reader", name="reader", scopes=frozenset({"things:read"})
)
WRITER = Principal(
    kind="api_key",
    id="key_writer",
    name="writer",
    scopes=frozenset({"things:read", "things:write"}),
)
ADMIN = Principal(kind="admin", id="adm_ada", name="Ada", role="system_admin")
SUPPORT = Principal(kind="admin", id="adm_sam", name="Sam", role="support_user")
TERMINAL = Principal(kind="processor", id="key_terminal", name="Till 1")
PARTNER = Principal(kind="partner", id="key_partner", name="Bank")
MESSENGER = Principal(kind="service", id="messenger", name="messenger")


class FakeAuthenticator:
    """Authenticates by the ID in the headers, without verifying a signature or token."""

    bearers: Mapping[bytes, Principal] = {
        f"Bearer {principal.id}".encode(): principal
        for principal in (READER, WRITER, ADMIN, SUPPORT)
    }
    signers: Mapping[bytes, Principal] = {
        principal.id.encode(): principal for principal in (TERMINAL, PARTNER)
    }

    async def authenticate(
        self,
        method: str,
        path: str,
        query: bytes,
        headers: Mapping[bytes, bytes],
        body: bytes,
        cost: object = None,
    ) -> Principal | None:
        if b"x-api-key-id" in headers:
            return self._require_known(self.signers.get(headers[b"x-api-key-id"]))
        if b"x-service-name" in headers:
            return MESSENGER
        if b"authorization" not in headers:
            return None
        if headers[b"authorization"] == b"Bearer suspended":
            raise ApiError(Code.PROCESSOR_SUSPENDED)
        return self._require_known(self.bearers.get(headers[b"authorization"]))

    def authorize_api_key(self, principal: Principal, address: str) -> None:
        """Accept every address for every key."""

    @property
    def signatures(self) -> Self:
        return self

    @staticmethod
    def has_body_signature(headers: Mapping[bytes, bytes]) -> bool:
        return b"x-api-key-id" in headers

    async def require_known_key(self, headers: Mapping[bytes, bytes], _charge: object) -> Principal:
        return self._require_known(self.signers.get(headers[b"x-api-key-id"]))

    def _require_known(self, principal: Principal | None) -> Principal:
        if principal is None:
            raise ApiError(Code.UNAUTHORIZED, "Unknown or inactive key")
        return principal


@dataclass
class FakeLedger:
    """Reports the state of a database server that the edge never uses."""

    is_healthy: bool = True
    server_status = ServerStatus(
        is_read_only=False,
        clock_offset=0.0,
        replication=Replication(mode=ReplicationMode.NONE, standbys=0),
    )
    probes: int = 0

    async def get_server_status(self) -> ServerStatus:
        self.probes += 1
        if not self.is_healthy:
            raise unavailable("The database is unavailable.")
        return self.server_status


class Part(msgspec.Struct):
    label: Text
    weight: int = 1


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


class Thing(msgspec.Struct):
    name: Text
    pin: Pin
    amount: Amount
    colour: Colour = Colour.RED
    phone_number: Phone | None = None
    email: Email | None = None
    note: FreeText | None = None
    tags: Annotated[list[Text], ListLength(0, 3)] = []
    parts: list[Part] = []
    metadata: Metadata | None = None
    count: int | None = None


class ThingResponse(msgspec.Struct):
    name: str
    amount: str
    colour: str
    phone_number: str | None
    by: str


class ThingQuery(PageQuery):
    colour: Colour | None = None
    from_: Text | None = msgspec.field(default=None, name="from")


class PinChange(msgspec.Struct):
    old_pin: Pin
    new_pin: Pin


class OptionalReason(msgspec.Struct):
    reason: FreeText | None = None


things = Endpoints("Things")
READ_ACCESS = Access(scope="things:read", roles="ACSF", service=True)
WRITE_ACCESS = Access(scope="things:write", roles="A")


@things.post("/api/v1/things", access=WRITE_ACCESS, status=201, errors=(Code.DUPLICATE_REQUEST,))
async def create_thing(request: RequestContext, body: Thing) -> ThingResponse:
    """Create a thing."""
    return ThingResponse(
        body.name, body.amount, body.colour, body.phone_number, request.principal.id
    )


@things.get("/api/v1/things", access=READ_ACCESS)
async def list_things(request: RequestContext, query: ThingQuery) -> Page[int]:
    """List the things."""
    rows = [number for number in range(250, 0, -1) if number < query.before_id]
    return paginate(rows[: query.limit + 1], query, int, key=int)


@things.get("/api/v1/things/{name}", access=READ_ACCESS)
async def get_thing(request: RequestContext, name: str) -> dict[str, str]:
    """Get a thing."""
    return {"name": name}


@things.delete("/api/v1/things/{name}", access=WRITE_ACCESS)
async def delete_thing(request: RequestContext, name: str) -> None:
    """Delete a thing."""


@things.post("/api/v1/things/{name}/parts/{part}/use", access=WRITE_ACCESS)
async def use_part(
    request: RequestContext, name: str, part: str, body: OptionalReason
) -> dict[str, str | None]:
    """Use a part of a thing."""
    return {"name": name, "part": part, "reason": body.reason}


@things.post("/api/v1/things/change-pin", access=WRITE_ACCESS, invalid_is_400=True)
async def change_pin(request: RequestContext, body: PinChange) -> dict[str, bool]:
    """Change the PIN."""
    return {"success": True}


@things.post("/api/v1/pos/pay", access=Access(hmac="pos"))
@things.post("/pay", access=Access(hmac="pos"), operation_id="pay_alias")
async def pay(request: RequestContext, body: OptionalReason) -> Reply[dict[str, str]]:
    """Pay."""
    return Reply(b'{"status":"completed"}', headers={"Idempotent-Replayed": "true"})


@things.post("/api/v1/fund", access=Access(scope="things:write", hmac="partner"))
async def fund(request: RequestContext) -> dict[str, str]:
    """Fund."""
    return {"by": request.principal.id}


@things.post("/api/v1/upload", access=WRITE_ACCESS, body_limit=64)
async def upload(request: RequestContext, body: bytes) -> dict[str, int]:
    """Accept any bytes."""
    return {"size": len(body)}


@things.post("/api/v1/fails", access=WRITE_ACCESS)
async def raise_unexpected_error(request: RequestContext, body: Thing) -> None:
    """Raise an unexpected error."""
    raise RuntimeError(f"cannot handle {body.pin}")


@things.post("/api/v1/refuses", access=WRITE_ACCESS)
async def raise_api_error(request: RequestContext) -> None:
    """Raise an API error."""
    raise ApiError(Code.FORBIDDEN, details={"required": ["another agent"]})


@things.get("/api/v1/open", access=Access(public=True))
async def get_actor(request: RequestContext) -> dict[str, str]:
    """Return the request's actor and address, as stored in audit entries."""
    return request.actor.record | {"ip": str(request.actor.ip)}


#: Set to release the waiting requests.
release_waits = threading.Event()


@things.post("/api/v1/waits", access=Access(public=True))
async def wait_for_release(request: RequestContext) -> dict[str, bool]:
    """Respond once `release_waits` is set."""
    while not release_waits.is_set():
        await asyncio.sleep(0.01)
    return {"waited": True}


@things.get("/api/v1/injects", access=Access(public=True))
async def inject_header(request: RequestContext) -> Reply[dict[str, str]]:
    """Try to inject a header line into the response."""
    return Reply({}, headers={"X-Name": "a\r\nSet-Cookie: b"})


@things.post("/api/v1/echoes", access=Access(public=True))
async def echo(request: RequestContext, body: bytes) -> Reply[bytes]:
    """Return the request body."""
    return Reply(body)


@things.post("/api/v1/large-body", access=Access(public=True), body_limit=512 * 1024)
async def echo_large(request: RequestContext, body: bytes) -> Reply[bytes]:
    """Return the request body; the body limit is above the default."""
    return Reply(body)


@things.post("/api/v1/large-upload", access=WRITE_ACCESS, body_limit=512 * 1024)
async def large_upload(request: RequestContext, body: bytes) -> dict[str, int]:
    """Accept a larger body than the default."""
    return {"size": len(body)}


@things.get("/api/v1/large", access=Access(public=True))
async def get_large(request: RequestContext) -> Reply[bytes]:
    """Return more than the socket buffers hold."""
    return Reply(b"x" * 4 * 1024 * 1024, content_type="text/plain")


class FakeRejectionLog:
    def __init__(self) -> None:
        self.entries: list[tuple[Actor, RejectedRequest]] = []

    async def record(self, actor: Actor, rejection: RejectedRequest) -> None:
        self.entries.append((actor, rejection))

    async def run(self) -> NoReturn:
        raise NotImplementedError


@dataclass
class EdgeApp:
    """The application, the denials it reported, and a client."""

    app: App
    services: Services
    client: httpx2.AsyncClient
    ledger: FakeLedger
    denials: list[tuple[Actor, RejectedRequest]]


def load_settings(folder: Path, **environ: str) -> settings.Settings:
    return settings.load_settings({"TAPGATE_DATA_DIR": str(folder), **environ})


def build_services(
    gateway_settings: settings.Settings,
    ledger: FakeLedger | None = None,
    rejection_log: FakeRejectionLog | None = None,
) -> Services:
    """Build services with only the parts that the edge uses."""
    unused: Any = None
    ledger = ledger or FakeLedger()
    health = HealthMonitor(gateway_settings, ledger.get_server_status)
    counters = EventCounters()
    return Services(
        settings=gateway_settings,
        database=unused,
        queue_database=unused,
        signals=unused,
        vault=unused,
        pin_verifier=unused,
        proof_verifier=unused,
        book_peers=BookPeers(gateway_settings),
        authenticator=cast(Any, FakeAuthenticator()),
        ledger=cast(Any, ledger),
        health=health,
        nodes=NodeRegistry(gateway_settings, NodeRole.GATEWAY, unused, health),
        clock=system_clock,
        new_id=IdGenerator(1),
        throttle=Throttle(gateway_settings),
        run_guarded=unused,
        latency_samples=LatencySamples(get_shared_folder(gateway_settings.data_dir)),
        rejection_log=rejection_log or FakeRejectionLog(),
        request_log=RequestLog(
            gateway_settings, unused, IdGenerator(2), counters.count_dropped_logs
        ),
        event_counters=counters,
    )


@asynccontextmanager
async def run_edge_app(
    folder: Path, sites: Iterable[Site] = (), **environ: str
) -> AsyncIterator[EdgeApp]:
    ledger, rejection_log = FakeLedger(), FakeRejectionLog()
    services = build_services(load_settings(folder, **environ), ledger, rejection_log)
    app = App(services, things, sites)
    transport = AppTransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
        yield EdgeApp(app, services, client, ledger, rejection_log.entries)
    app.metrics.close()
    services.latency_samples.close()
    await services.throttle.close()


#: Fixed request ID, because a random hexadecimal ID may contain the PIN's digits.
TRACE_HEADERS = {"X-Request-ID": "traced"}


def build_bearer_headers(principal: Principal) -> dict[str, str]:
    return {"Authorization": f"Bearer {principal.id}"}


VALID_THING = {"name": "Lamp", "pin": "4071", "amount": "5"}
