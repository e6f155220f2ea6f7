"""Operations on the audit log."""

from tapgate_client.declaration import M, OperationGroup, lists, reads
from tapgate_client.encoding import DateTimeLike
from tapgate_client.schemas.audit import AuditPage, Verification


class AuditLog(OperationGroup[M]):
    @lists("GET /api/v1/audit/logs")
    def list(
        self,
        *,
        actor_id: str | None = None,
        event: str | None = None,
        resource_type: str | None = None,
        resource_id: str | None = None,
        result: str | None = None,
        from_: DateTimeLike | None = None,
        to: DateTimeLike | None = None,
        limit: int | None = None,
    ) -> AuditPage: ...

    @reads("GET /api/v1/audit/verify")
    def verify(self, *, full: bool | None = None) -> Verification:
        """Verify the hash chain of the most recent entries, or of all entries with `full`."""
