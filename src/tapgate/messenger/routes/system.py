"""Health check endpoint of the messenger."""

from typing import Annotated, ClassVar

import msgspec

from tapgate import VERSION
from tapgate.errors import ApiError
from tapgate.http.endpoint import Endpoints, Reply
from tapgate.messenger import conversation_store
from tapgate.messenger.routes.access import PUBLIC
from tapgate.messenger.web import RequestContext

endpoints = Endpoints("System")


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


@endpoints.get("/health", access=PUBLIC, other_statuses=(503,))
async def get_health(request: RequestContext) -> Reply[Health]:
    """Return the health of the messenger and the number of active conversations.

    While the database is unavailable, returns 503 with status `error` and 0 active conversations.
    """
    services = request.services
    try:
        active = await conversation_store.count_active(services.database, services.clock())
    except ApiError:
        return Reply(Health(status="error", activeConversations=0), status=503)
    return Reply(Health(status="ok", activeConversations=active))
