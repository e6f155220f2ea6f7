"""Agent and float records."""

from tapgate.client.records.base import Confirmation, Receipt, Record


class Agent(Record, frozen=True, kw_only=True):
    id: str
    agent_type: str
    parent_agent_id: str | None
    name: str
    business_name: str | None
    phone_number: str
    email: str | None
    address: str | None
    commission_tier: int
    status: str
    account_id: str
    float_balance: str
    commission_balance: str
    currency: str
    created_at: str
    updated_at: str


class RegisterAgentResponse(Confirmation, frozen=True, kw_only=True):
    agent_id: str
    agent: Agent


class AgentResponse(Confirmation, frozen=True, kw_only=True):
    """Response to suspending, activating or terminating an agent."""

    agent: Agent


class AgentBalance(Record, frozen=True, kw_only=True):
    agent_id: str
    float_balance: str
    commission_balance: str
    currency: str


class FundingReceipt(Receipt, frozen=True, kw_only=True):
    amount: str
    new_balance: str


class CashInReceipt(Receipt, frozen=True, kw_only=True):
    amount: str
    agent_balance: str
    subscriber_balance: str | None
    commission_earned: str


class CashOutReceipt(Receipt, frozen=True, kw_only=True):
    amount: str
    agent_balance: str
    subscriber_balance: str | None
    commission_earned: str


class FloatTransferReceipt(Receipt, frozen=True, kw_only=True):
    amount: str
    from_balance: str
    to_balance: str


class PayoutReceipt(Receipt, frozen=True, kw_only=True):
    amount: str
    float_balance: str
