"""A small gateway to try the edge on: a few endpoints, and callers known by a word."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, cast

import httpx2
import msgspec

from tapgate import settings
from tapgate.clock import system_clock
from tapgate.credentials.principals import Principal
from tapgate.edge.app import App
from tapgate.edge.endpoint import Access, Endpoints, Reply
from tapgate.edge.fields import (
    Amount,
    Choice,
    Email,
    FreeText,
    ListLength,
    Metadata,
    Phone,
    Pin,
    Text,
)
from tapgate.edge.latency_samples import LatencySamples
from tapgate.edge.origin import Origin
from tapgate.edge.pagination import Page, PageQuery, paginate
from tapgate.edge.request_context import RequestContext
from tapgate.edge.services import Services
from tapgate.errors import ApiError, Code
from tapgate.ids import IdGenerator
from tapgate.service.node_files import get_shared_folder
from tapgate.service.throttle import Throttle

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


class Authenticator:
    """Believes what the headers say."""

    bearers: Mapping[bytes, Principal] = {
        f"Bearer {one.id}".encode(): one for one in (READER, WRITER, ADMIN, SUPPORT)
    }
    signers: Mapping[bytes, Principal] = {one.id.encode(): one for one in (TERMINAL, PARTNER)}

    async def authenticate(
        self,
        method: str,
        path: str,
        query: bytes,
        headers: Mapping[bytes, bytes],
        body: bytes,
        charge: object = None,
    ) -> Principal | None:
        if b"x-api-key-id" in headers:
            return self._known(self.signers.get(headers[b"x-api-key-id"]))
        if b"x-service-name" in headers:
            return MESSENGER
        if b"authorization" not in headers:
            return None
        if headers[b"authorization"] == b"Bearer suspended":
            raise ApiError(Code.PROCESSOR_SUSPENDED)
        return self._known(self.bearers.get(headers[b"authorization"]))

    def authorize_api_key(self, principal: Principal, address: str) -> None:
        """Every address may use every key."""

    @staticmethod
    def has_body_signature(headers: Mapping[bytes, bytes]) -> bool:
        return b"x-api-key-id" in headers

    async def require_known_key(self, headers: Mapping[bytes, bytes], _charge: object) -> Principal:
        return self._known(self.signers.get(headers[b"x-api-key-id"]))

    def _known(self, principal: Principal | None) -> Principal:
        if principal is None:
            raise ApiError(Code.UNAUTHORIZED, "Unknown or inactive key")
        return principal


@dataclass
class Ledger:
    well: bool = True

    async def check_health(self) -> bool:
        return self.well


class Part(msgspec.Struct):
    label: Text
    weight: int = 1


class Thing(msgspec.Struct):
    name: Text
    pin: Pin
    amount: Amount
    colour: Annotated[str, Choice("red", "green")] = "red"
    phone_number: Phone | None = None
    email: Email | None = None
    note: FreeText | None = None
    tags: Annotated[list[Text], ListLength(0, 3)] = []
    parts: list[Part] = []
    metadata: Metadata | None = None
    count: int | None = None


class ThingShown(msgspec.Struct):
    name: str
    amount: str
    colour: str
    phone_number: str | None
    by: str


class ThingQuery(PageQuery):
    colour: Annotated[str, Choice("red", "green")] | None = None
    from_: Text | None = msgspec.field(default=None, name="from")


class PinChange(msgspec.Struct):
    old_pin: Pin
    new_pin: Pin


class Optional(msgspec.Struct):
    reason: FreeText | None = None


things = Endpoints("Things")
READ = Access(scope="things:read", roles="ACSF", service=True)
WRITE = Access(scope="things:write", roles="A")


@things.post("/api/v1/things", access=WRITE, status=201, errors=(Code.DUPLICATE_REQUEST,))
async def create(call: RequestContext, body: Thing) -> ThingShown:
    """Create a thing."""
    return ThingShown(body.name, body.amount, body.colour, body.phone_number, call.principal.id)


@things.get("/api/v1/things", access=READ)
async def listed(call: RequestContext, query: ThingQuery) -> Page[int]:
    """List the things."""
    rows = [number for number in range(250, 0, -1) if number < query.before_id]
    return paginate(rows[: query.limit + 1], query.limit, int, int)


@things.get("/api/v1/things/{name}", access=READ)
async def one(call: RequestContext, name: str) -> dict[str, str]:
    """Get a thing."""
    return {"name": name}


@things.delete("/api/v1/things/{name}", access=WRITE)
async def remove(call: RequestContext, name: str) -> None:
    """Delete a thing."""


@things.post("/api/v1/things/{name}/parts/{part}/use", access=WRITE)
async def use(call: RequestContext, name: str, part: str, body: Optional) -> dict[str, str | None]:
    """Use a part of a thing."""
    return {"name": name, "part": part, "reason": body.reason}


@things.post("/api/v1/things/change-pin", access=WRITE, invalid_is_400=True)
async def change_pin(call: RequestContext, body: PinChange) -> dict[str, bool]:
    """Change the PIN."""
    return {"success": True}


@things.post("/api/v1/pos/pay", access=Access(hmac="pos"))
@things.post("/pay", access=Access(hmac="pos"), operation_id="pay_alias")
async def pay(call: RequestContext, body: Optional) -> Reply[dict[str, str]]:
    """Pay."""
    return Reply(b'{"status":"completed"}', headers={"Idempotent-Replayed": "true"})


@things.post("/api/v1/fund", access=Access(scope="things:write", hmac="partner"))
async def fund(call: RequestContext) -> dict[str, str]:
    """Fund."""
    return {"by": call.principal.id}


@things.post("/api/v1/upload", access=WRITE, body_limit=64)
async def upload(call: RequestContext, body: bytes) -> dict[str, int]:
    """Take any bytes."""
    return {"size": len(body)}


@things.post("/api/v1/fails", access=WRITE)
async def fails(call: RequestContext, body: Thing) -> None:
    """Fail in a way that nobody foresaw."""
    raise RuntimeError(f"cannot handle {body.pin}")


@things.post("/api/v1/refuses", access=WRITE)
async def refuses(call: RequestContext) -> None:
    """Refuse after all."""
    raise ApiError(Code.FORBIDDEN, details={"required": ["another agent"]})


@things.get("/api/v1/open", access=Access(public=True))
async def public(call: RequestContext) -> Origin:
    """Say who is calling."""
    return call.origin


#: Set when the requests that wait may go on.
go_on = threading.Event()


@things.post("/api/v1/waits", access=Access(public=True))
async def waits(call: RequestContext) -> dict[str, bool]:
    """Answer when told to."""
    while not go_on.is_set():
        await asyncio.sleep(0.01)
    return {"waited": True}


@things.get("/api/v1/injects", access=Access(public=True))
async def injects(call: RequestContext) -> Reply[dict[str, str]]:
    """Try to put a line of its own into the head of the answer."""
    return Reply({}, headers={"X-Name": "a\r\nSet-Cookie: b"})


@things.post("/api/v1/echoes", access=Access(public=True))
async def echoes(call: RequestContext, body: bytes) -> Reply[bytes]:
    """Answer what was sent."""
    return Reply(body)


@things.post("/api/v1/large-body", access=Access(public=True), body_limit=512 * 1024)
async def large_body(call: RequestContext, body: bytes) -> Reply[bytes]:
    """Answer what was sent, of a larger size than is usual."""
    return Reply(body)


@things.post("/api/v1/large-upload", access=WRITE, body_limit=512 * 1024)
async def large_upload(call: RequestContext, body: bytes) -> dict[str, int]:
    """Take a larger file than is usual."""
    return {"size": len(body)}


@things.get("/api/v1/large", access=Access(public=True))
async def large(call: RequestContext) -> Reply[bytes]:
    """Give more than fits into the buffers on the way."""
    return Reply(b"x" * 4 * 1024 * 1024, content_type="text/plain")


@dataclass
class Stage:
    """The application, what it told its hook, and a client of it."""

    app: App
    services: Services
    client: httpx2.AsyncClient
    ledger: Ledger
    denied: list[tuple[Origin, str, ApiError]] = field(default_factory=list)


def settings_for(folder: Path, **environ: str) -> settings.Settings:
    return settings.load_settings({"TAPGATE_DATA_DIR": str(folder), **environ})


def services_for(chosen: settings.Settings, ledger: Ledger | None = None) -> Services:
    """Only what the edge itself uses is there."""
    nothing: Any = None
    return Services(
        settings=chosen,
        database=nothing,
        signals=nothing,
        vault=nothing,
        pin_verifier=nothing,
        authenticator=cast(Any, Authenticator()),
        ledger=cast(Any, ledger or Ledger()),
        clock=system_clock,
        new_id=IdGenerator(1),
        throttle=Throttle(chosen),
        latency_samples=LatencySamples(get_shared_folder(chosen.data_dir)),
    )


@asynccontextmanager
async def stage(folder: Path, **environ: str) -> AsyncIterator[Stage]:
    ledger = Ledger()
    services = services_for(settings_for(folder, **environ), ledger)
    app = App(services, things)
    transport = httpx2.ASGITransport(app=cast(Any, app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
        made = Stage(app, services, client, ledger)

        async def remember(origin: Origin, endpoint: str, error: ApiError) -> None:
            made.denied.append((origin, endpoint, error))

        services.on_denied = remember
        yield made
    app.metrics.close()
    services.latency_samples.close()
    await services.throttle.close()


#: Ids that are made are hexadecimal by chance: one in some thousands has the digits of a PIN.
TRACED = {"X-Request-ID": "traced"}


def bearer(principal: Principal) -> dict[str, str]:
    return {"Authorization": f"Bearer {principal.id}"}


GOOD_THING = {"name": "Lamp", "pin": "4071", "amount": "5"}
