"""Health check endpoint of the messenger."""

from typing import Annotated, ClassVar

import msgspec

from tapgate import VERSION
from tapgate.errors import ApiError
from tapgate.http.messages import Response
from tapgate.messenger import conversation_store
from tapgate.messenger.routes.route import Request, render_json


class Health(msgspec.Struct, frozen=True, kw_only=True):
    EXAMPLE: ClassVar = {
        "status": "ok",
        "service": "tapgate-messenger",
        "version": VERSION,
        "activeConversations": 3,
    }

    status: Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["ok", "error"]})]
    service: str
    version: str
    activeConversations: int  # noqa: N815 - the name in the API


async def get_health(request: Request) -> Response:
    """Return the health of the messenger and the number of active conversations.

    While the database is unavailable, returns 503 with status `error` and 0 active conversations.
    """
    services = request.services
    try:
        active = await conversation_store.count_active(services.database, services.clock())
    except ApiError:
        return _render_health(503, "error", 0)
    return _render_health(200, "ok", active)


def _render_health(http_status: int, status: str, active: int) -> Response:
    body = Health(
        status=status, service="tapgate-messenger", version=VERSION, activeConversations=active
    )
    return render_json(http_status, body)
