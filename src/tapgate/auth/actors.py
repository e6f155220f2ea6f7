"""Actors: who performs operations, as recorded in the audit log."""

from typing import Self

import msgspec

from tapgate.auth.principals import Principal
from tapgate.ledger.commands import AuditFacts


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Who performs an operation, with the request's client address and ID."""

    #: As stored in audit entries: `type`, `id` and, if known, `name`, `role` and `owner_id`.
    record: dict[str, str]
    #: Authenticated caller; None for the system and for anonymous requests.
    principal: Principal | None = None
    ip: str | None = None
    request_id: str | None = None

    @classmethod
    def from_principal(cls, principal: Principal | None, *, ip: str, request_id: str) -> Self:
        record = ANONYMOUS if principal is None else _build_record(principal)
        return cls(record=record, principal=principal, ip=ip, request_id=request_id)

    @classmethod
    def from_audit_facts(cls, facts: AuditFacts) -> Self:
        return cls(record=facts.actor, ip=facts.ip, request_id=facts.request_id)

    def build_audit_facts(self, reason: str | None = None) -> AuditFacts:
        return AuditFacts(actor=self.record, ip=self.ip, request_id=self.request_id, reason=reason)

    @property
    def id(self) -> str:
        return self.record["id"]

    @property
    def admin_id(self) -> int | None:
        """The admin's ID; None for other actors."""
        return None if self.principal is None else self.principal.admin_id


ANONYMOUS = {"type": "anonymous", "id": "anonymous"}
#: Actor for operations that no request causes, such as background work and demo setup.
SYSTEM_ACTOR = Actor(record={"type": "system", "id": "system"})


def _build_record(principal: Principal) -> dict[str, str]:
    record = {"type": str(principal.kind), "id": principal.id}
    if principal.name:
        record["name"] = principal.name
    if principal.role is not None:
        record["role"] = principal.role
    if principal.owner is not None:
        record["owner_id"] = principal.owner.public_id
    return record
