"""Who did something and from where."""

import msgspec

from tapgate.credentials.principals import Principal


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """As the audit log keeps it."""

    actor: dict[str, str]
    actor_id: str
    ip: str | None = None
    request_id: str | None = None


#: What the platform does by itself, in the background.
SYSTEM_ORIGIN = Origin(actor={"type": "system", "id": "system"}, actor_id="system")


def build_actor(principal: Principal) -> dict[str, str]:
    actor = {"type": str(principal.kind), "id": principal.id}
    if principal.name:
        actor["name"] = principal.name
    if principal.role is not None:
        actor["role"] = principal.role
    return actor
