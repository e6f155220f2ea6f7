"""Stored cash-out requests and their public records."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from tapgate.core.public_names import get_public_agent_name, mask_person_name
from tapgate.core.records import build_record
from tapgate_client import ids, money
from tapgate_client.schemas.cash_out_requests import CashOutRequestRecord, CashOutRequestStatus

#: How long the customer can confirm.
LIFETIME: Final = timedelta(minutes=5)


class CashOutRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Cash-out request as stored, with money in minor units and both parties' names."""

    id: int
    agent_id: int
    subscriber_id: int
    card_serial: str | None
    amount: int
    currency: str
    status: CashOutRequestStatus
    transaction_id: int | None
    expires_at: datetime
    created_at: datetime
    fingerprint: bytes
    agent_person_name: str
    business_name: str | None
    agent_phone: str
    customer_name: str
    customer_phone: str
    customer_language: str

    @property
    def public_id(self) -> str:
        return ids.encode(ids.CASH_OUT_REQUEST, self.id)

    @property
    def agent_name(self) -> str:
        return get_public_agent_name(self.agent_person_name, self.business_name)

    @property
    def subscriber_name(self) -> str:
        return mask_person_name(self.customer_name)

    def is_open(self, now: datetime) -> bool:
        return self.status == CashOutRequestStatus.OPEN and now < self.expires_at


def to_record(item: CashOutRequest, now: datetime) -> CashOutRequestRecord:
    is_overdue = item.status == CashOutRequestStatus.OPEN and not item.is_open(now)
    return build_record(
        CashOutRequestRecord,
        item,
        id=item.public_id,
        agent_id=ids.encode(ids.AGENT, item.agent_id),
        agent_name=item.agent_name,
        subscriber_name=item.subscriber_name,
        amount=money.format_decimal(item.amount, item.currency),
        status=CashOutRequestStatus.EXPIRED if is_overdue else item.status,
    )
