"""Words that the tests of the audit log share."""

from collections.abc import Awaitable, Callable

from tapgate.edge.origin import Origin

Write = Callable[..., Awaitable[None]]

ORIGIN = Origin(
    actor={"type": "admin", "id": "adm_0000000000001", "name": "Aminata", "role": "system_admin"},
    actor_id="adm_0000000000001",
    ip="192.0.2.7",
    request_id="req-1",
)
