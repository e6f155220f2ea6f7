"""Stored float requests and their public records."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from tapgate.core.public_names import get_public_agent_name
from tapgate.core.records import build_record
from tapgate_client import ids, money
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.float_requests import (
    FloatProvider,
    FloatRequestRecord,
    FloatRequestStatus,
)

#: How long a sub-agent's request waits for its super-agent only.
SUPER_AGENT_PERIOD: Final = timedelta(minutes=30)


class FloatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Float request as stored, with money in minor units and the agent's names."""

    id: int
    agent_id: int
    parent_agent_id: int | None
    amount: int
    currency: str
    note: str | None
    status: FloatRequestStatus
    finance_at: datetime
    transaction_id: int | None
    reason: str | None
    created_at: datetime
    updated_at: datetime
    name: str
    business_name: str | None
    fingerprint: bytes | None
    float_balance: int | None = None

    @property
    def public_id(self) -> str:
        return ids.encode(ids.FLOAT_REQUEST, self.id)

    @property
    def agent_name(self) -> str:
        return get_public_agent_name(self.name, self.business_name)

    def get_provider(self, now: datetime) -> FloatProvider | None:
        """Return who is asked now, or None if the request has ended."""
        if self.status != FloatRequestStatus.OPEN:
            return None
        return FloatProvider.SUPER_AGENT if now < self.finance_at else FloatProvider.FINANCE


def to_record(item: FloatRequest, now: datetime, *, with_float: bool = False) -> FloatRequestRecord:
    balance = item.float_balance if with_float else None
    return build_record(
        FloatRequestRecord,
        item,
        id=item.public_id,
        agent_id=ids.encode(ids.AGENT, item.agent_id),
        agent_name=item.agent_name,
        amount=money.format_decimal(item.amount, item.currency),
        float_balance=(
            msgspec.UNSET if balance is None else money.format_decimal(balance, item.currency)
        ),
        waits_for=item.get_provider(now),
    )


def require_open(item: FloatRequest) -> None:
    if item.status != FloatRequestStatus.OPEN:
        raise ApiError(Code.FLOAT_REQUEST_NOT_OPEN, f"The float request is {item.status}.")
