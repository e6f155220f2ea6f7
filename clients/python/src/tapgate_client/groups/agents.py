"""Operations on agents: registration, float, cash-in, cash-out and commission."""

from tapgate_client.declaration import M, OperationGroup, acts, lists, moves, reads, sets
from tapgate_client.encoding import Money
from tapgate_client.schemas.agents import (
    AgentBalance,
    AgentRecord,
    AgentRegistered,
    AgentResponse,
    CashReceipt,
    FloatTransferReceipt,
    FundingReceipt,
    PayoutReceipt,
)
from tapgate_client.schemas.common import SuccessResponse
from tapgate_client.schemas.messages import MessageRecord
from tapgate_client.schemas.money_views import BalanceTotals, NetworkLiquidity
from tapgate_client.schemas.pagination import Page


class Agents(OperationGroup[M]):
    @acts("POST /api/v1/agents")
    def register(
        self,
        *,
        agent_type: str,
        name: str,
        phone_number: str,
        pin: str,
        parent_agent_id: str | None = None,
        business_name: str | None = None,
        email: str | None = None,
        address: str | None = None,
        commission_tier: int | None = None,
    ) -> AgentRegistered: ...

    @reads("GET /api/v1/agents/totals")
    def get_totals(
        self,
        *,
        phone_number: str | None = None,
        address: str | None = None,
        status: str | None = None,
        agent_type: str | None = None,
        parent_agent_id: str | None = None,
        search: str | None = None,
        low_float: bool | None = None,
    ) -> BalanceTotals:
        """Return the number and total float of the agents in a list. Admins only."""

    @reads("GET /api/v1/agents/liquidity")
    def get_liquidity(
        self, *, parent_agent_id: str | None = None, limit: int | None = None
    ) -> NetworkLiquidity:
        """Return the float of active agents, those who run out first at the beginning."""

    @lists("GET /api/v1/agents")
    def list(
        self,
        *,
        phone_number: str | None = None,
        address: str | None = None,
        status: str | None = None,
        agent_type: str | None = None,
        parent_agent_id: str | None = None,
        search: str | None = None,
        low_float: bool | None = None,
        order: str | None = None,
        limit: int | None = None,
    ) -> Page[AgentRecord]:
        """List agents, newest first. `address` is a part of the address. `limit` is the page size.

        `order` is `newest` or `name`. `search` finds words in the name, business name and phone
        number.
        """

    @reads("GET /api/v1/agents/{id}")
    def get(self, id: str) -> AgentRecord: ...

    @lists("GET /api/v1/agents/{id}/messages")
    def list_messages(self, id: str, *, limit: int | None = None) -> Page[MessageRecord]:
        """List one-time codes sent to the agent's phone and their delivery status, newest first."""

    @reads("GET /api/v1/agents/{id}/balance")
    def get_balance(self, id: str) -> AgentBalance: ...

    @sets("PUT /api/v1/agents/{id}")
    def update(
        self,
        id: str,
        *,
        name: str | None = None,
        business_name: str | None = None,
        phone_number: str | None = None,
        email: str | None = None,
        address: str | None = None,
        commission_tier: int | None = None,
    ) -> AgentRecord:
        """Update the given fields of an agent."""

    @acts("POST /api/v1/agents/{id}/suspend")
    def suspend(self, id: str, *, reason: str) -> AgentResponse: ...

    @acts("POST /api/v1/agents/{id}/activate")
    def activate(self, id: str, *, reason: str | None = None) -> AgentResponse: ...

    @acts("POST /api/v1/agents/{id}/terminate")
    def terminate(self, id: str, *, reason: str) -> AgentResponse:
        """Terminate an agent permanently."""

    @acts("POST /api/v1/agents/{id}/change-pin")
    def change_pin(self, id: str, *, old_pin: str, new_pin: str) -> SuccessResponse: ...

    @acts("POST /api/v1/agents/{id}/reset-pin")
    def request_pin_reset(self, id: str) -> SuccessResponse:
        """Send a one-time code for a PIN reset to the agent's phone."""

    @acts("POST /api/v1/agents/{id}/reset-pin/confirm")
    def reset_pin(self, id: str, *, otp: str, new_pin: str) -> SuccessResponse: ...

    @moves("POST /api/v1/agents/{id}/fund")
    def fund(
        self,
        id: str,
        *,
        amount: Money,
        description: str | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> FundingReceipt:
        """Credit an agent's float for cash that the agent deposited."""

    @moves("POST /api/v1/agents/cashin")
    def cash_in(
        self,
        *,
        agent_id: str,
        amount: Money,
        agent_pin: str,
        subscriber_id: str | None = None,
        card_serial: str | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> CashReceipt:
        """Cash in: the agent takes cash and the subscriber's wallet is credited.

        Identify the subscriber by `subscriber_id` or `card_serial`.
        """

    @moves("POST /api/v1/agents/cashout")
    def cash_out(
        self,
        *,
        agent_id: str,
        amount: Money,
        agent_pin: str,
        pin: str,
        subscriber_id: str | None = None,
        card_serial: str | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> CashReceipt:
        """Cash out: the agent hands out cash and the subscriber's wallet is debited.

        Identify the subscriber by `subscriber_id` or `card_serial`.
        """

    @moves("POST /api/v1/agents/transfer")
    def transfer(
        self,
        *,
        from_agent_id: str,
        to_agent_id: str,
        amount: Money,
        pin: str,
        description: str | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> FloatTransferReceipt:
        """Transfer float from an agent to one of its sub-agents."""

    @moves("POST /api/v1/agents/{id}/payout-commission")
    def pay_out_commission(
        self, id: str, *, currency: str | None = None, request_id: str | None = None
    ) -> PayoutReceipt:
        """Pay out all earned commission to the agent's float."""
