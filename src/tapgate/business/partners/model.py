"""Partner records, their public representation, and status transitions."""

from datetime import datetime
from typing import Final

import msgspec

from tapgate.auth.hmac_keys import SigningKey
from tapgate.core.records import build_record
from tapgate.http.api.transitions import Transition
from tapgate_client import ids, money
from tapgate_client.errors import Code
from tapgate_client.schemas.partners import PartnerKeyRecord, PartnerRecord, PartnerStatus


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


def to_key_record(key: SigningKey) -> PartnerKeyRecord:
    return build_record(PartnerKeyRecord, key, api_key_id=ids.encode(ids.KEY, key.id))


SUSPEND: Final[Transition[PartnerStatus]] = Transition(
    "suspended", {PartnerStatus.ACTIVE: PartnerStatus.SUSPENDED}, Code.ALREADY_SUSPENDED
)
ACTIVATE: Final[Transition[PartnerStatus]] = Transition(
    "activated", {PartnerStatus.SUSPENDED: PartnerStatus.ACTIVE}, Code.NOT_SUSPENDED
)
