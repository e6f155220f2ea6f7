"""The request context passed to handlers of the gateway."""

import msgspec

from tapgate.api.guards import ApprovedCall
from tapgate.api.services import Services
from tapgate.auth.actors import Actor
from tapgate.auth.principals import Principal
from tapgate.http.endpoint import BaseRequestContext


class RequestContext(BaseRequestContext, kw_only=True):
    services: Services
    caller: Principal | None = None
    #: Set while an approved request is executed.
    approval: ApprovedCall | None = None

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
    def actor(self) -> Actor:
        actor = Actor.from_principal(self.caller, ip=self.ip, request_id=self.request_id)
        if self.approval is None:
            return actor
        record = {**actor.record, "approval_id": self.approval.id}
        return msgspec.structs.replace(actor, record=record)
