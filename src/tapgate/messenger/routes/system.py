"""The messenger's health check endpoints."""

import contextlib
from typing import Annotated, ClassVar

import msgspec

from tapgate import VERSION
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.messenger.routes.access import PUBLIC
from tapgate.messenger.web import RequestContext
from tapgate.runtime.store.migration_plan import get_newest_number
from tapgate_client.errors import ApiError
from tapgate_client.schemas.health import Live, Readiness, VersionRecord

endpoints = Endpoints(
    "System",
    access=PUBLIC,
    unlimited=True,
    any_query="Monitoring tools and caches add parameters.",
)


class Health(msgspec.Struct, frozen=True, kw_only=True):
    EXAMPLE: ClassVar = {
        "status": "ok",
        "service": "tapgate-messenger",
        "version": VERSION,
        "activeConversations": 3,
    }

    status: Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["ok", "error"]})]
    service: str = "tapgate-messenger"
    version: str = VERSION
    activeConversations: int  # noqa: N815 - the name in the API


@endpoints.get("/live")
async def get_liveness(request: RequestContext) -> Live:
    """Return whether the process responds."""
    return Live()


@endpoints.get("/version")
async def get_version(request: RequestContext) -> VersionRecord:
    """Return the release that the messenger runs."""
    return VersionRecord(
        service="tapgate-messenger", version=VERSION, newest_migration=get_newest_number()
    )


@endpoints.get("/ready", other_statuses=(503,))
async def get_readiness(request: RequestContext) -> Reply[Readiness]:
    """Return whether the node can process requests, for load balancers.

    Returns 503 with the reasons while the node shuts down, while the database is unreachable or
    read-only, and while the node's disk is full or its clock is wrong.
    """
    readiness = await request.services.health.get_readiness()
    return Reply(readiness, status=200 if readiness.ready else 503)


@endpoints.get("/health", other_statuses=(503,))
async def get_health(request: RequestContext) -> Reply[Health]:
    """Return the health of the messenger and the number of active conversations.

    While the database is unavailable or read-only, or the node's disk is full or its clock is
    wrong, returns 503 with status `error`. The number is 0 if the database is unavailable.
    """
    services = request.services
    status = await services.health.get_status()
    active = 0
    if status.server is not None:
        with contextlib.suppress(ApiError):
            active = await services.active_conversations.get()
    return Reply(
        Health(status="ok" if status.is_healthy else "error", activeConversations=active),
        status=200 if status.is_healthy else 503,
    )
