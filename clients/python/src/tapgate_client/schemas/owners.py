"""Owners: the processor, partner or agent that a user, API key or webhook endpoint belongs to."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar

import msgspec

from tapgate_client import ids
from tapgate_client.schemas.agents import AgentStatus
from tapgate_client.schemas.fields import Choice, InvalidValueError, LogForm, Rule
from tapgate_client.schemas.values import (
    AccountBalance,
    BalanceAmount,
    CurrencyCode,
    Id,
    Name,
    Time,
)


class OwnerType(StrEnum):
    PROCESSOR = "processor"
    PARTNER = "partner"
    AGENT = "agent"


class OwnerIdRule(Rule):
    log_form = LogForm.WORD
    example = ids.encode(ids.PROCESSOR, 1 << 58)
    _prefixes = (ids.PROCESSOR, ids.PARTNER, ids.AGENT)

    def check(self, value: str) -> str:
        if all(ids.decode(prefix, value) is None for prefix in self._prefixes):
            raise InvalidValueError("must be the ID of a processor, partner or agent")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"pattern": "^(agt|prc|ptn)_[0-9a-z]{13}$"}


OwnerIdField = Annotated[str, OwnerIdRule()]
OptionalOwnerId = Id | None


class OwnerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The caller's processor, partner or agent.

    A cashier gets no balances. An agent's `balance` is the float, and only an agent has a
    `commission_balance`.
    """

    OMITTED_IN_EXAMPLES: ClassVar = ("commission_balance",)

    id: Id
    type: OwnerType
    name: Name
    #: Only an agent can be terminated.
    status: Annotated[str, Choice(*AgentStatus, name="OwnerStatus")]
    account_id: Id
    balance: AccountBalance | msgspec.UnsetType = msgspec.UNSET
    #: Balance that is not held.
    available: BalanceAmount | msgspec.UnsetType = msgspec.UNSET
    commission_balance: BalanceAmount | msgspec.UnsetType = msgspec.UNSET
    currency: CurrencyCode
    created_at: Time
