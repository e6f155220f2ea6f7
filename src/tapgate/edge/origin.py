"""Origin of an action: the actor, the client address and the request ID."""

import msgspec

from tapgate.credentials.principals import Principal


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Actor, client address and request id of an action, as stored in the audit log."""

    actor: dict[str, str]
    actor_id: str
    ip: str | None = None
    request_id: str | None = None


#: Origin of actions that no request causes, such as background work and the setup of the demo.
SYSTEM_ORIGIN = Origin(actor={"type": "system", "id": "system"}, actor_id="system")


def build_actor(principal: Principal) -> dict[str, str]:
    actor = {"type": str(principal.kind), "id": principal.id}
    if principal.name:
        actor["name"] = principal.name
    if principal.role is not None:
        actor["role"] = principal.role
    return actor
