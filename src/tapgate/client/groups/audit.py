"""Operations on the audit log."""

from tapgate.client.encoding import DateTimeLike, encode_optional_datetime, omit_none
from tapgate.client.operation import (
    ListOperation,
    M,
    Operation,
    OperationGroup,
    build_get,
    operation,
)
from tapgate.client.pagination import build_list, list_operation
from tapgate.client.records.audit import AuditEntry, AuditVerification


class AuditLog(OperationGroup[M]):
    @list_operation
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
    ) -> ListOperation[AuditEntry]:
        query = omit_none(
            actor_id=actor_id,
            event=event,
            resource_type=resource_type,
            resource_id=resource_id,
            result=result,
            from_=encode_optional_datetime(from_),
            to=encode_optional_datetime(to),
            limit=limit,
        )
        return build_list("/api/v1/audit/logs", AuditEntry, query)

    @operation
    def verify(self, *, full: bool | None = None) -> Operation[AuditVerification]:
        """Verify the hash chain of the most recent entries, or of all entries with `full`."""
        return build_get("/api/v1/audit/verify", AuditVerification, query=omit_none(full=full))
