"""Requests that find agents and support contacts, and contact support staff."""

import msgspec

from tapgate.messenger.gateway_requests.base import GatewayRequest
from tapgate.messenger.model import SecretStruct
from tapgate_client import AsyncTapgateClient, TapgateError
from tapgate_client.names import clean_business_name
from tapgate_client.schemas.agents import AgentStatus
from tapgate_client.schemas.provider_warnings import ProviderReport
from tapgate_client.schemas.support import MAX_CUSTOMER_TEXT_LENGTH


class AgentSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What the public may know about an agent."""

    name: str
    address: str


class FindAgents(GatewayRequest, frozen=True, kw_only=True):
    """Find active agents by a part of their address."""

    place: str
    limit: int

    async def perform(self, gateway: AsyncTapgateClient) -> list[AgentSummary]:
        listed = gateway.agents.list(
            address=self.place, status=AgentStatus.ACTIVE, limit=self.limit
        )
        return [
            AgentSummary(
                name=clean_business_name(agent.business_name or agent.name),
                address=agent.address or "",
            )
            for agent in (await listed.get_page()).data
        ]


class ReportProviderWarnings(GatewayRequest, frozen=True, kw_only=True):
    """Report what the provider says about templates, the account and the phone number."""

    reports: tuple[ProviderReport, ...]

    async def perform(self, gateway: AsyncTapgateClient) -> int:
        return (await gateway.messages.report_provider_warnings(list(self.reports))).updated


class GetSupportContact(GatewayRequest, frozen=True, kw_only=True):
    """Get the support contact of the branding; None if there is none or the request fails."""

    async def perform(self, gateway: AsyncTapgateClient) -> str | None:
        try:
            return (await gateway.admin.get_branding()).support_contact
        except TapgateError:
            return None


class ContactSupport(GatewayRequest, SecretStruct, frozen=True, kw_only=True):
    """Pass a text to support staff. The runner adds `transcript` and `message_id`.

    With `append_only`, no support request is opened: the gateway rejects the text with
    REQUEST_NOT_FOUND if the phone number has none.
    """

    phone: str
    text: str
    append_only: bool = False
    transcript: tuple[str, ...] = ()
    #: Identifies the customer's message, so that an interrupted turn passes it on once.
    message_id: str | None = None

    async def perform(self, gateway: AsyncTapgateClient) -> None:
        text = "\n".join((self.text, "", "Last messages in the chat:", *self.transcript))
        await gateway.support.send_message(
            phone_number=self.phone,
            text=(text if self.transcript else self.text)[:MAX_CUSTOMER_TEXT_LENGTH],
            append_only=self.append_only,
            message_id=self.message_id,
        )
