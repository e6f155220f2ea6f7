"""About the messenger itself: is it well, what can it do."""

from typing import Annotated, ClassVar

import msgspec

from tapgate import VERSION
from tapgate.errors import ApiError
from tapgate.messenger import conversation_store
from tapgate.messenger.routes.route import Request, render_json
from tapgate.service.http import Response


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
    activeConversations: int  # noqa: N815 - its name outside


async def get_health(request: Request) -> Response:
    """Tell whether the messenger works, and how many people are in a conversation.

    Answers 503 with the same body while the database cannot be reached.
    """
    services = request.services
    try:
        active = await conversation_store.count_active(services.database, services.clock())
    except ApiError:
        return _render_health(503, "error", 0)
    return _render_health(200, "ok", active)


def _render_health(status: int, word: str, active: int) -> Response:
    body = Health(
        status=word, service="tapgate-messenger", version=VERSION, activeConversations=active
    )
    return render_json(status, body)
