"""Agents: who turns cash into money and back."""

from tapgate.client.operation import Group, Listing, M, Operation, act, move, operation, read
from tapgate.client.pages import listed, listing
from tapgate.client.records.agents import (
    Agent,
    AgentBalance,
    AgentMoved,
    AgentRegistered,
    CashInReceipt,
    CashOutReceipt,
    FloatTransferReceipt,
    FundingReceipt,
    PayoutReceipt,
)
from tapgate.client.records.base import Confirmation
from tapgate.client.values import Money, given, money

_ALL = "/api/v1/agents"
_ONE = f"{_ALL}/{{id}}"


class Agents(Group[M]):
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
    ) -> Operation[AgentRegistered]:
        body = given(
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
        return act(_ALL, AgentRegistered, body)

    @listing
    def list(
        self,
        *,
        status: str | None = None,
        agent_type: str | None = None,
        parent_agent_id: str | None = None,
        search: str | None = None,
        limit: int | None = None,
    ) -> Listing[Agent]:
        query = given(
            status=status,
            agent_type=agent_type,
            parent_agent_id=parent_agent_id,
            search=search,
            limit=limit,
        )
        return listed(_ALL, Agent, query)

    @operation
    def get(self, id: str) -> Operation[Agent]:
        return read(_ONE, Agent, id=id)

    @operation
    def get_balance(self, id: str) -> Operation[AgentBalance]:
        return read(f"{_ONE}/balance", AgentBalance, id=id)

    @operation
    def suspend(self, id: str, *, reason: str) -> Operation[AgentMoved]:
        return act(f"{_ONE}/suspend", AgentMoved, given(reason=reason), id=id)

    @operation
    def activate(self, id: str, *, reason: str | None = None) -> Operation[AgentMoved]:
        return act(f"{_ONE}/activate", AgentMoved, given(reason=reason), id=id)

    @operation
    def terminate(self, id: str, *, reason: str) -> Operation[AgentMoved]:
        """For good."""
        return act(f"{_ONE}/terminate", AgentMoved, given(reason=reason), id=id)

    @operation
    def change_pin(self, id: str, *, old_pin: str, new_pin: str) -> Operation[Confirmation]:
        body = given(old_pin=old_pin, new_pin=new_pin)
        return act(f"{_ONE}/change-pin", Confirmation, body, id=id)

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
        """Float for cash that the agent paid in."""
        body = given(amount=money(amount), description=description, currency=currency)
        return move(f"{_ONE}/fund", FundingReceipt, request_id, body, id=id)

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
        """The agent takes cash: `subscriber_id` or `card_serial` gets money."""
        body = given(
            agent_id=agent_id,
            amount=money(amount),
            agent_pin=agent_pin,
            subscriber_id=subscriber_id,
            card_serial=card_serial,
            currency=currency,
        )
        return move(f"{_ALL}/cashin", CashInReceipt, request_id, body)

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
        """The agent hands out cash: `subscriber_id` or `card_serial` pays."""
        body = given(
            agent_id=agent_id,
            amount=money(amount),
            agent_pin=agent_pin,
            pin=pin,
            subscriber_id=subscriber_id,
            card_serial=card_serial,
            currency=currency,
        )
        return move(f"{_ALL}/cashout", CashOutReceipt, request_id, body)

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
        """Float from an agent to one of its sub-agents."""
        body = given(
            from_agent_id=from_agent_id,
            to_agent_id=to_agent_id,
            amount=money(amount),
            pin=pin,
            description=description,
            currency=currency,
        )
        return move(f"{_ALL}/transfer", FloatTransferReceipt, request_id, body)

    @operation
    def pay_out_commission(
        self, id: str, *, currency: str | None = None, request_id: str | None = None
    ) -> Operation[PayoutReceipt]:
        """All that was earned, into the float."""
        body = given(currency=currency)
        return move(f"{_ONE}/payout-commission", PayoutReceipt, request_id, body, id=id)
