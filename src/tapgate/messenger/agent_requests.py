"""Requests about agents and their float."""

from datetime import datetime
from typing import Final

import msgspec

from tapgate.core.public_names import clean_business_name, get_public_agent_name
from tapgate.messenger.gateway_requests import AgentNotFoundError, GatewayRequest
from tapgate.messenger.model import Agent
from tapgate_client import AsyncTapgateClient
from tapgate_client.schemas.agents import AgentRecord, AgentStatus
from tapgate_client.schemas.float_requests import FloatProvider, FloatRequestStatus
from tapgate_client.schemas.transactions import TransactionStatus, TransactionType

#: A list in the chat has few items.
_MAX_FLOAT_REQUESTS: Final = 5


class FindAgent(GatewayRequest, frozen=True, kw_only=True):
    """Find the agent with a phone number."""

    phone: str

    async def perform(self, gateway: AsyncTapgateClient) -> Agent | None:
        found = await find_agent(gateway, self.phone)
        return None if found is None else to_agent(found)


class GetAgentDay(GatewayRequest, frozen=True, kw_only=True):
    """Get an agent's balances, and the completed cash-ins and cash-outs since the day began."""

    phone: str
    day: str

    async def perform(self, gateway: AsyncTapgateClient) -> "AgentDay":
        found = await find_agent(gateway, self.phone)
        if found is None:
            raise AgentNotFoundError
        cash_ins, cash_outs = [
            await gateway.transactions.get_totals(
                user_id=found.id, type=kind, from_=self.day, status=TransactionStatus.COMPLETED
            )
            for kind in (TransactionType.AGENT_CASHIN, TransactionType.AGENT_CASHOUT)
        ]
        return AgentDay(
            float_balance=found.float_balance,
            commission_balance=found.commission_balance,
            currency=found.currency,
            cash_ins=cash_ins.count,
            cash_in_amount=cash_ins.amount,
            cash_outs=cash_outs.count,
            cash_out_amount=cash_outs.amount,
        )


class AgentDay(msgspec.Struct, frozen=True, kw_only=True):
    float_balance: str
    commission_balance: str
    currency: str
    cash_ins: int
    cash_in_amount: str
    cash_outs: int
    cash_out_amount: str

    @staticmethod
    def build_request(phone: str, now: datetime) -> GetAgentDay:
        return GetAgentDay(phone=phone, day=now.date().isoformat())


class FloatRequestSummary(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    agent_name: str
    amount: str
    currency: str
    is_own: bool


class FindFloatRequests(GatewayRequest, frozen=True, kw_only=True):
    """Find the open float requests of an agent, and those that its sub-agents wait for."""

    agent_id: str

    async def perform(self, gateway: AsyncTapgateClient) -> list[FloatRequestSummary]:
        own = gateway.float_requests.list(
            agent_id=self.agent_id, status=FloatRequestStatus.OPEN, limit=_MAX_FLOAT_REQUESTS
        )
        asked = gateway.float_requests.list(
            parent_agent_id=self.agent_id,
            waits_for=FloatProvider.SUPER_AGENT,
            limit=_MAX_FLOAT_REQUESTS,
        )
        records = [*(await asked.get_page()).data, *(await own.get_page()).data]
        return [
            FloatRequestSummary(
                id=item.id,
                agent_name=item.agent_name,
                amount=item.amount,
                currency=item.currency,
                is_own=item.agent_id == self.agent_id,
            )
            for item in records
        ]


async def find_agent(gateway: AsyncTapgateClient, phone: str) -> AgentRecord | None:
    page = await gateway.agents.list(phone_number=phone, limit=1).get_page()
    return page.data[0] if page.data else None


def to_agent(record: AgentRecord) -> Agent:
    name = clean_business_name(record.business_name or record.name)
    return Agent(id=record.id, name=name, status=record.status)


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
                name=get_public_agent_name(agent.name, agent.business_name),
                address=agent.address or "",
            )
            for agent in (await listed.get_page()).data
        ]
