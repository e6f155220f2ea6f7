"""The request context passed to handlers of the gateway."""

import msgspec

from tapgate.auth.actors import Actor
from tapgate.auth.principals import Principal
from tapgate.http.api.guards import ApprovedCall
from tapgate.http.api.services import Services
from tapgate.http.endpoint import BaseRequestContext


class RequestContext(BaseRequestContext, kw_only=True):
    services: Services
    caller: Principal | None = None
    #: Set while an approved request is executed.
    approval: ApprovedCall | None = None
    #: Whether the console made the request for a page.
    is_console: bool = False

    @property
    def caller_id(self) -> str | None:
        return None if self.caller is None else self.caller.id

    @property
    def principal(self) -> Principal:
        """The authenticated caller. Raises RuntimeError if there is none."""
        if self.caller is None:
            raise RuntimeError("a public endpoint has no principal")
        return self.caller

    @property
    def admin_and_session_ids(self) -> tuple[int, int]:
        """The admin and session of a request to an endpoint that only admins can access."""
        admin_id, session_id = self.principal.admin_id, self.principal.session_id
        if admin_id is None or session_id is None:
            raise RuntimeError("only admins can access this endpoint")
        return admin_id, session_id

    @property
    def actor(self) -> Actor:
        actor = Actor.from_principal(self.caller, ip=self.ip, request_id=self.request_id)
        if self.approval is None:
            return actor
        record = {**actor.record, "approval_id": self.approval.id}
        return msgspec.structs.replace(actor, record=record)
