"""Operations on support requests."""

from tapgate_client.declaration import M, OperationGroup, acts, lists, reads, sets
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.support import SupportRequestRecord, SupportSummary


class Support(OperationGroup[M]):
    @acts("POST /api/v1/support/requests")
    def send_message(
        self,
        *,
        phone_number: str,
        text: str,
        append_only: bool | None = None,
        message_id: str | None = None,
    ) -> SupportRequestRecord:
        """Pass a customer's message to support.

        Opens a request, or appends to the one that is not closed. With `append_only`, no request
        is opened. A repeated message with the same `message_id` is stored once.
        """

    @lists("GET /api/v1/support/requests")
    def list(
        self,
        *,
        status: str | None = None,
        assignee: str | None = None,
        subscriber_id: str | None = None,
        phone_number: str | None = None,
        order: str | None = None,
        limit: int | None = None,
    ) -> Page[SupportRequestRecord]:
        """List requests. `assignee` is an admin's ID or `none`, `order` is `newest` or `oldest`."""

    @reads("GET /api/v1/support/summary")
    def get_summary(self) -> SupportSummary:
        """Get the number of open requests, counted up to 100."""

    @reads("GET /api/v1/support/requests/{id}")
    def get(self, id: str) -> SupportRequestRecord: ...

    @acts("POST /api/v1/support/requests/{id}/reply")
    def reply(self, id: str, *, text: str) -> SupportRequestRecord:
        """Reply to a request. The reply is sent to the customer's phone."""

    @sets("POST /api/v1/support/requests/{id}/assign")
    def assign(self, id: str) -> SupportRequestRecord:
        """Assign a request to the calling admin."""

    @sets("POST /api/v1/support/requests/{id}/unassign")
    def unassign(self, id: str) -> SupportRequestRecord:
        """Remove the assignee of a request."""

    @acts("POST /api/v1/support/requests/{id}/close")
    def close(self, id: str) -> SupportRequestRecord: ...
