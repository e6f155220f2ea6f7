"""Operations on approvals and approval rules."""

from collections.abc import Sequence

from tapgate_client.declaration import M, OperationGroup, acts, lists, reads, sets
from tapgate_client.schemas.approvals import ApprovalRecord, ApprovalRule, ApprovalRulesRecord
from tapgate_client.schemas.pagination import Page


class Approvals(OperationGroup[M]):
    @lists("GET /api/v1/approvals")
    def list(
        self,
        *,
        status: str | None = None,
        operation: str | None = None,
        maker: str | None = None,
        resource_id: str | None = None,
        limit: int | None = None,
    ) -> Page[ApprovalRecord]: ...

    @reads("GET /api/v1/approvals/{id}")
    def get(self, id: str) -> ApprovalRecord:
        """Get an approval. The maker receives the secrets in `result` once."""

    @acts("POST /api/v1/approvals/{id}/approve")
    def approve(self, id: str) -> ApprovalRecord:
        """Approve a request. The last approval that it needs executes it."""

    @acts("POST /api/v1/approvals/{id}/reject")
    def reject(self, id: str, *, reason: str) -> ApprovalRecord: ...

    @acts("POST /api/v1/approvals/{id}/cancel")
    def cancel(self, id: str) -> ApprovalRecord:
        """Cancel your own request."""


class ApprovalRulesGroup(OperationGroup[M]):
    @reads("GET /api/v1/admin/approval-rules")
    def get(self) -> ApprovalRulesRecord: ...

    @sets("PUT /api/v1/admin/approval-rules")
    def replace(self, data: Sequence[ApprovalRule]) -> ApprovalRulesRecord:
        """Replace all approval rules. Once rules exist, the change needs an approval."""
