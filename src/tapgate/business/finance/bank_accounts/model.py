"""Bank accounts and their owners. No I/O."""

from datetime import datetime
from typing import Final

import msgspec

from tapgate.auth.owners import Owner, parse_owner
from tapgate.core.records import build_record
from tapgate_client import ids
from tapgate_client.schemas.bank_accounts import (
    BankAccountOwner,
    BankAccountRecord,
    BankAccountStatus,
)
from tapgate_client.schemas.owners import OwnerType

_VISIBLE_CHARACTERS: Final = 4


class BankAccount(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    owner_type: BankAccountOwner
    owner_id: int | None
    holder_name: str
    bank_code: str
    bank_name: str | None
    number: str
    currency: str
    status: BankAccountStatus
    created_by: int
    created_at: datetime
    updated_at: datetime
    block_reason: str | None = None
    verified_by: int | None = None
    verified_at: datetime | None = None
    owner_name: str | None = None

    @property
    def public_id(self) -> str:
        return ids.encode(ids.BANK_ACCOUNT, self.id)


def parse_owner_id(owner_id: str) -> tuple[BankAccountOwner, int] | None:
    """Return an owner's type and internal ID, or None if the ID is not valid."""
    owner = parse_owner(owner_id)
    return None if owner is None else (BankAccountOwner(owner.type), owner.id)


def encode_owner_id(owner_type: str, owner_id: int) -> str:
    return Owner(OwnerType(owner_type), owner_id).public_id


def to_record(account: BankAccount, *, full: bool = False) -> BankAccountRecord:
    """Return the API record. The number is complete only with `full`."""
    number = account.number if full else account.number[-_VISIBLE_CHARACTERS:]
    owner_id = account.owner_id
    return build_record(
        BankAccountRecord,
        account,
        id=account.public_id,
        owner_id=None if owner_id is None else encode_owner_id(account.owner_type, owner_id),
        number=number,
        created_by=ids.encode(ids.ADMIN, account.created_by),
        verified_by=account.verified_by and ids.encode(ids.ADMIN, account.verified_by),
    )
