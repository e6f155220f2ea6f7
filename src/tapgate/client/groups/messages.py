"""What became of messages, reported by the messenger."""

from collections.abc import Sequence

from tapgate.client.operation import Group, M, Operation, described, operation
from tapgate.client.records.messages import ReportsTaken, StatusReport


class Messages(Group[M]):
    @operation
    def report_statuses(self, data: Sequence[StatusReport]) -> Operation[ReportsTaken]:
        """Safe to repeat: a status only moves forward."""
        return described(
            "sets", "POST", "/api/v1/messages/statuses", ReportsTaken, body={"data": data}
        )
