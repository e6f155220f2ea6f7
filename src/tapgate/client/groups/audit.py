"""The audit log."""

from tapgate.client.operation import Group, Listing, M, Operation, operation, read
from tapgate.client.pages import listed, listing
from tapgate.client.records.audit import AuditEntry, Verification
from tapgate.client.values import Moment, given, moment_or_none


class Audit(Group[M]):
    @listing
    def list(
        self,
        *,
        actor_id: str | None = None,
        event: str | None = None,
        resource_type: str | None = None,
        resource_id: str | None = None,
        result: str | None = None,
        from_: Moment | None = None,
        to: Moment | None = None,
        limit: int | None = None,
    ) -> Listing[AuditEntry]:
        query = given(
            actor_id=actor_id,
            event=event,
            resource_type=resource_type,
            resource_id=resource_id,
            result=result,
            from_=moment_or_none(from_),
            to=moment_or_none(to),
            limit=limit,
        )
        return listed("/api/v1/audit/logs", AuditEntry, query)

    @operation
    def verify(self, *, full: bool | None = None) -> Operation[Verification]:
        """Verify the log since the last verification, or with `full` from the start."""
        return read("/api/v1/audit/verify", Verification, query=given(full=full))
