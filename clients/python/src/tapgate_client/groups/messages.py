"""Reports of the messenger: delivery statuses of messages, and turns of the chat."""

from collections.abc import Sequence

from tapgate_client.declaration import M, OperationGroup, reads, sets
from tapgate_client.schemas.chat import ChatTurn, ReportChatTurnsResponse
from tapgate_client.schemas.messages import ReportStatusesResponse, StatusReport
from tapgate_client.schemas.provider_warnings import (
    ProviderReport,
    ProviderReportsResponse,
    ProviderWarnings,
)


class Messages(OperationGroup[M]):
    @sets("POST /api/v1/messages/statuses")
    def report_statuses(self, data: Sequence[StatusReport]) -> ReportStatusesResponse:
        """Report delivery statuses. Safe to retry: a status only moves forward."""

    @sets("POST /api/v1/messages/provider-warnings")
    def report_provider_warnings(self, data: Sequence[ProviderReport]) -> ProviderReportsResponse:
        """Report the provider's warnings. Safe to retry: only the newest report counts."""

    @reads("GET /api/v1/messages/provider-warnings")
    def list_provider_warnings(self) -> ProviderWarnings:
        """List the messaging provider's unresolved warnings, newest first."""

    @sets("POST /api/v1/chat/turns")
    def report_chat_turns(self, data: Sequence[ChatTurn]) -> ReportChatTurnsResponse:
        """Report turns of the chat. Safe to retry: a turn is stored once."""
