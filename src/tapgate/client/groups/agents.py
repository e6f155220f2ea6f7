"""Operations on agents: registration, float, cash-in, cash-out and commission."""

from tapgate.client.encoding import Money, encode_amount, omit_none
from tapgate.client.operation import (
    ListOperation,
    M,
    Operation,
    OperationGroup,
    build_get,
    build_idempotent_post,
    build_post,
    operation,
)
from tapgate.client.pagination import build_list, list_operation
from tapgate.client.records.agents import (
    Agent,
    AgentBalance,
    AgentResponse,
    CashInReceipt,
    CashOutReceipt,
    FloatTransferReceipt,
    FundingReceipt,
    PayoutReceipt,
    RegisterAgentResponse,
)
from tapgate.client.records.base import Confirmation

_COLLECTION_PATH = "/api/v1/agents"
_RESOURCE_PATH = f"{_COLLECTION_PATH}/{{id}}"


class Agents(OperationGroup[M]):
    @operation
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
    ) -> Operation[RegisterAgentResponse]:
        body = omit_none(
            agent_type=agent_type,
            name=name,
            phone_number=phone_number,
            pin=pin,
            parent_agent_id=parent_agent_id,
            business_name=business_name,
            email=email,
            address=address,
            commission_tier=commission_tier,
        )
        return build_post(_COLLECTION_PATH, RegisterAgentResponse, body)

    @list_operation
    def list(
        self,
        *,
        status: str | None = None,
        agent_type: str | None = None,
        parent_agent_id: str | None = None,
        search: str | None = None,
        limit: int | None = None,
    ) -> ListOperation[Agent]:
        query = omit_none(
            status=status,
            agent_type=agent_type,
            parent_agent_id=parent_agent_id,
            search=search,
            limit=limit,
        )
        return build_list(_COLLECTION_PATH, Agent, query)

    @operation
    def get(self, id: str) -> Operation[Agent]:
        return build_get(_RESOURCE_PATH, Agent, id=id)

    @operation
    def get_balance(self, id: str) -> Operation[AgentBalance]:
        return build_get(f"{_RESOURCE_PATH}/balance", AgentBalance, id=id)

    @operation
    def suspend(self, id: str, *, reason: str) -> Operation[AgentResponse]:
        return build_post(
            f"{_RESOURCE_PATH}/suspend", AgentResponse, omit_none(reason=reason), id=id
        )

    @operation
    def activate(self, id: str, *, reason: str | None = None) -> Operation[AgentResponse]:
        return build_post(
            f"{_RESOURCE_PATH}/activate", AgentResponse, omit_none(reason=reason), id=id
        )

    @operation
    def terminate(self, id: str, *, reason: str) -> Operation[AgentResponse]:
        """Terminate an agent permanently."""
        return build_post(
            f"{_RESOURCE_PATH}/terminate", AgentResponse, omit_none(reason=reason), id=id
        )

    @operation
    def change_pin(self, id: str, *, old_pin: str, new_pin: str) -> Operation[Confirmation]:
        body = omit_none(old_pin=old_pin, new_pin=new_pin)
        return build_post(f"{_RESOURCE_PATH}/change-pin", Confirmation, body, id=id)

    @operation
    def fund(
        self,
        id: str,
        *,
        amount: Money,
        description: str | None = None,
        currency: str | None = None,
        request_id: str | None = None,
    ) -> Operation[FundingReceipt]:
        """Credit an agent's float for cash that the agent deposited."""
        body = omit_none(amount=encode_amount(amount), description=description, currency=currency)
        return build_idempotent_post(
            f"{_RESOURCE_PATH}/fund", FundingReceipt, request_id, body, id=id
        )

    @operation
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
    ) -> Operation[CashInReceipt]:
        """Cash in: the agent takes cash and the subscriber's wallet is credited.

        Identify the subscriber by `subscriber_id` or `card_serial`.
        """
        body = omit_none(
            agent_id=agent_id,
            amount=encode_amount(amount),
            agent_pin=agent_pin,
            subscriber_id=subscriber_id,
            card_serial=card_serial,
            currency=currency,
        )
        return build_idempotent_post(f"{_COLLECTION_PATH}/cashin", CashInReceipt, request_id, body)

    @operation
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
    ) -> Operation[CashOutReceipt]:
        """Cash out: the agent hands out cash and the subscriber's wallet is debited.

        Identify the subscriber by `subscriber_id` or `card_serial`.
        """
        body = omit_none(
            agent_id=agent_id,
            amount=encode_amount(amount),
            agent_pin=agent_pin,
            pin=pin,
            subscriber_id=subscriber_id,
            card_serial=card_serial,
            currency=currency,
        )
        return build_idempotent_post(
            f"{_COLLECTION_PATH}/cashout", CashOutReceipt, request_id, body
        )

    @operation
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
    ) -> Operation[FloatTransferReceipt]:
        """Transfer float from an agent to one of its sub-agents."""
        body = omit_none(
            from_agent_id=from_agent_id,
            to_agent_id=to_agent_id,
            amount=encode_amount(amount),
            pin=pin,
            description=description,
            currency=currency,
        )
        return build_idempotent_post(
            f"{_COLLECTION_PATH}/transfer", FloatTransferReceipt, request_id, body
        )

    @operation
    def pay_out_commission(
        self, id: str, *, currency: str | None = None, request_id: str | None = None
    ) -> Operation[PayoutReceipt]:
        """Pay out all earned commission to the agent's float."""
        body = omit_none(currency=currency)
        return build_idempotent_post(
            f"{_RESOURCE_PATH}/payout-commission", PayoutReceipt, request_id, body, id=id
        )
