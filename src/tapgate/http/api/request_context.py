"""The requests passed to gateway handlers."""

import msgspec

from tapgate.auth.actors import Actor
from tapgate.auth.owners import OwnerView, build_view
from tapgate.auth.principals import Principal
from tapgate.http.api.guards import ApprovedCall, Description
from tapgate.http.api.services import Services
from tapgate.http.endpoint import BaseContext, BaseRequestContext


class GuardedRequest(BaseContext):
    """Request as seen by handlers whose endpoint approval rules can guard.

    Its caller has just sent it (`RequestContext`), or it has waited for approval
    (`ApprovedRequest`): then there is no HTTP request.
    """

    __slots__ = ()

    services: Services
    caller: Principal | None
    #: Amount with which approval rules have been checked, in minor units.
    proposed_amount: int | None
    #: What the request would do, once guards have asked for it.
    description: Description | None

    @property
    def approval(self) -> ApprovedCall | None:
        """The approval with which the request is executed."""
        return None

    @property
    def idempotency_key(self) -> str | None:
        """The idempotency key that is not in the body."""
        raise NotImplementedError

    @property
    def principal(self) -> Principal:
        """The authenticated caller. Raises RuntimeError if there is none."""
        if self.caller is None:
            raise RuntimeError("a public endpoint has no principal")
        return self.caller

    @property
    def owner_view(self) -> OwnerView | None:
        """What the caller sees as a user or API key of an owner; None for all other callers."""
        caller, services = self.caller, self.services
        if caller is None or caller.owner is None:
            return None
        zone = services.settings.timezone
        return build_view(caller.owner, caller.role, services.clock(), zone, caller.admin_id)

    @property
    def admin_and_session_ids(self) -> tuple[int, int]:
        """The admin and session for an endpoint that only admins can access."""
        admin_id, session_id = self.principal.admin_id, self.principal.session_id
        if admin_id is None or session_id is None:
            raise RuntimeError("only admins can access this endpoint")
        return admin_id, session_id

    @property
    def actor(self) -> Actor:
        return Actor.from_principal(self.caller, ip=self.ip, request_id=self.request_id)


class RequestContext(BaseRequestContext, GuardedRequest, kw_only=True):
    services: Services
    caller: Principal | None = None
    proposed_amount: int | None = None
    description: Description | None = None
    #: Whether the console made the request for a page.
    is_console: bool = False
    #: Whether a form made the request, whose site asks for a missing reason.
    asks_for_reason: bool = False

    @property
    def idempotency_key(self) -> str | None:
        value = self.headers.get(b"idempotency-key")
        return None if value is None else value.decode("latin-1")

    @property
    def caller_id(self) -> str | None:
        return None if self.caller is None else self.caller.id


class ApprovedRequest(msgspec.Struct, GuardedRequest, kw_only=True):
    """Request that has waited for approval and is executed as its maker."""

    services: Services
    path: str
    ip: str
    request_id: str
    caller: Principal
    approval: ApprovedCall
    proposed_amount: int | None = None
    description: Description | None = None

    @property
    def idempotency_key(self) -> str:
        return self.approval.id

    @property
    def actor(self) -> Actor:
        actor = super().actor
        record = {**actor.record, "approval_id": self.approval.id}
        return msgspec.structs.replace(actor, record=record)
