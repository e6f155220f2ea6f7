"""Delivery status records of messages sent to phones."""

from tapgate.client.records.base import Record


class StatusReport(Record, frozen=True, kw_only=True):
    """Delivery status of a message: `sent`, `delivered`, `read` or `failed`.

    `error_code` is the provider's error of a failed message.
    """

    message_id: str
    status: str
    error_code: str | None = None


class ReportStatusesResponse(Record, frozen=True, kw_only=True):
    updated: int
