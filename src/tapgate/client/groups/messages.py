"""Delivery status reports for messages, sent by the messenger."""

from collections.abc import Sequence

from tapgate.client.operation import M, Operation, OperationGroup, build_operation, operation
from tapgate.client.records.messages import ReportStatusesResponse, StatusReport


class Messages(OperationGroup[M]):
    @operation
    def report_statuses(self, data: Sequence[StatusReport]) -> Operation[ReportStatusesResponse]:
        """Report delivery statuses. Safe to retry: a status only moves forward."""
        return build_operation(
            "sets", "POST", "/api/v1/messages/statuses", ReportStatusesResponse, body={"data": data}
        )
