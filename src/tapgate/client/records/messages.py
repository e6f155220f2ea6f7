"""Records about messages to people."""

from tapgate.client.records.base import Record


class StatusReport(Record, frozen=True, kw_only=True):
    """`status` is `sent`, `delivered`, `read` or `failed`, the last with the provider's error."""

    message_id: str
    status: str
    error_code: str | None = None


class ReportStatusesResponse(Record, frozen=True, kw_only=True):
    updated: int
