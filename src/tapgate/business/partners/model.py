"""Partner records, their public representation, and status transitions."""

from datetime import datetime

import msgspec

from tapgate.business.owners.status_transitions import build_suspension
from tapgate.core.records import build_record
from tapgate_client import ids, money
from tapgate_client.schemas.partners import PartnerRecord, PartnerStatus


class Partner(msgspec.Struct, frozen=True, kw_only=True):
    """Partner as stored, with money in minor units."""

    id: int
    account_id: int
    name: str
    currency: str
    created_at: datetime
    status: PartnerStatus = PartnerStatus.ACTIVE
    balance: int = 0
    overdraft: int = 0


def to_record(partner: Partner) -> PartnerRecord:
    return build_record(
        PartnerRecord,
        partner,
        id=ids.encode(ids.PARTNER, partner.id),
        balance=money.format_decimal(partner.balance, partner.currency),
        overdraft_limit=money.format_decimal(partner.overdraft, partner.currency),
    )


SUSPEND, ACTIVATE = build_suspension(PartnerStatus.ACTIVE, PartnerStatus.SUSPENDED)
