"""Delivery status reports for messages, sent by the messenger."""

from collections.abc import Sequence

from tapgate.client.declaration import M, OperationGroup, sets
from tapgate.schemas.messages import ReportStatusesResponse, StatusReport


class Messages(OperationGroup[M]):
    @sets("POST /api/v1/messages/statuses")
    def report_statuses(self, data: Sequence[StatusReport]) -> ReportStatusesResponse:
        """Report delivery statuses. Safe to retry: a status only moves forward."""
