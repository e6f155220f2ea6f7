"""Cash-out requests: an agent asks in the chat, and the customer confirms with the PIN."""

from enum import StrEnum
from typing import Annotated

import msgspec

from tapgate_client.schemas.agents import CashIn
from tapgate_client.schemas.common import Redacted
from tapgate_client.schemas.fields import Pin
from tapgate_client.schemas.transactions import MoneyRequest
from tapgate_client.schemas.values import CurrencyCode, Example, Id, Money, Name, Time


class CashOutRequestStatus(StrEnum):
    OPEN = "open"
    CONFIRMED = "confirmed"
    DECLINED = "declined"
    EXPIRED = "expired"


class NewCashOutRequest(CashIn, kw_only=True):
    """An agent's request for a cash-out, with the agent's PIN."""


class CashOutConfirmation(MoneyRequest, kw_only=True):
    """The customer's confirmation. `pin` is the subscriber's PIN, or a child card's own PIN."""

    pin: Pin


class CashOutRequestRecord(Redacted, msgspec.Struct, frozen=True, kw_only=True):
    """Cash-out that waits for the customer until `expires_at`. Names are masked."""

    id: Annotated[Id, Example("cor_0800000000000")]
    agent_id: Id
    agent_name: Name
    subscriber_id: Id
    subscriber_name: Name
    card_serial: Annotated[str, Example("TAP-000001")] | None
    amount: Money
    currency: CurrencyCode
    status: CashOutRequestStatus
    transaction_id: Id | None
    expires_at: Time
    created_at: Time


class OpenCashOutRequests(msgspec.Struct, frozen=True, kw_only=True):
    """Cash-out requests that wait for the customer: at most one."""

    data: list[CashOutRequestRecord]
