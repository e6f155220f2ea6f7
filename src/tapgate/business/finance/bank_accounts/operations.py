"""Operations on bank accounts."""

import msgspec

from tapgate.auth import owner_limits
from tapgate.auth.actors import Actor
from tapgate.auth.owners import Owner, require_exists
from tapgate.business.approval_rules.same_person import may_be_same_person
from tapgate.business.finance.bank_accounts import model, queries
from tapgate.business.finance.bank_accounts.model import BankAccount
from tapgate.events.audit.trail import AuditTrail
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.rows import insert_row, map_conflicts, update_row
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code, invalid_field
from tapgate_client.schemas.bank_accounts import (
    BankAccountOwner,
    BankAccountStatus,
    NewBankAccount,
)
from tapgate_client.schemas.owners import OwnerType

_trail = AuditTrail("bank_account")
_COLUMNS = tuple(name for name in BankAccount.__struct_fields__ if name != "owner_name")


async def create(
    tx: Transaction, actor: Actor, new: NewBankAccount, *, admin_id: int, currency: str
) -> BankAccount:
    owner_type, owner_id = await _find_owner(tx, new)
    if owner_id is not None:
        await owner_limits.require_room(tx, owner_limits.BANK_ACCOUNTS, owner_id)
    account = BankAccount(
        id=tx.new_id(),
        owner_type=owner_type,
        owner_id=owner_id,
        holder_name=new.holder_name,
        bank_code=new.bank_code,
        bank_name=new.bank_name,
        number=new.number,
        currency=currency,
        status=BankAccountStatus.UNVERIFIED,
        created_by=admin_id,
        created_at=tx.now(),
        updated_at=tx.now(),
    )
    with map_conflicts({"bank_accounts_active": Code.DUPLICATE_REFERENCE}):
        await insert_row(tx, "bank_accounts", account, _COLUMNS)
    account = await queries.get(tx, account.id)
    await _record(tx, actor, "created", None, account)
    return account


async def _find_owner(tx: Transaction, new: NewBankAccount) -> tuple[BankAccountOwner, int | None]:
    """Return the owner, or raise 422 or 404."""
    if new.owner_id is None:
        if new.owner_type != BankAccountOwner.PLATFORM:
            raise invalid_field("owner_id", "is required, unless owner_type is platform")
        return BankAccountOwner.PLATFORM, None
    owner = model.parse_owner_id(new.owner_id)
    if owner is None:
        raise invalid_field("owner_id", "must be the ID of a processor, partner or agent")
    owner_type, owner_id = owner
    if new.owner_type not in (None, owner_type):
        raise invalid_field("owner_type", f"must be {owner_type} for this owner_id")
    await require_exists(tx, Owner(OwnerType(owner_type), owner_id))
    return owner_type, owner_id


async def require_verifiable(
    reader: Database | Transaction, account: BankAccount, admin_id: int
) -> None:
    """Raise an error unless this admin is another person than the one who added the account."""
    if account.status == BankAccountStatus.BLOCKED:
        raise ApiError(Code.ALREADY_BLOCKED)
    creator, verifier = [ids.encode(ids.ADMIN, each) for each in (account.created_by, admin_id)]
    if await may_be_same_person(reader, [verifier], [creator]):
        raise ApiError(
            Code.FORBIDDEN,
            "Another admin must verify the bank account.",
            details={"required": ["another admin than the one who created it"]},
        )


async def verify(tx: Transaction, actor: Actor, account_id: int, *, admin_id: int) -> BankAccount:
    """Verify an account. An account that is verified stays as it is."""
    before = await queries.lock(tx, account_id)
    await require_verifiable(tx, before, admin_id)
    if before.status == BankAccountStatus.VERIFIED:
        return before
    after = msgspec.structs.replace(
        before,
        status=BankAccountStatus.VERIFIED,
        verified_by=admin_id,
        verified_at=tx.now(),
        updated_at=tx.now(),
    )
    await _store(tx, after)
    await _record(tx, actor, "verified", before, after)
    return after


async def block(tx: Transaction, actor: Actor, account_id: int, reason: str) -> BankAccount:
    """Block an account for good."""
    before = await queries.lock(tx, account_id)
    if before.status == BankAccountStatus.BLOCKED:
        raise ApiError(Code.ALREADY_BLOCKED)
    after = msgspec.structs.replace(
        before, status=BankAccountStatus.BLOCKED, block_reason=reason, updated_at=tx.now()
    )
    await _store(tx, after)
    await _record(tx, actor, "blocked", before, after, reason)
    return after


async def _store(tx: Transaction, account: BankAccount) -> None:
    columns = ("status", "verified_by", "verified_at", "block_reason", "updated_at")
    await update_row(tx, "bank_accounts", account, columns)


async def _record(
    tx: Transaction,
    actor: Actor,
    action: str,
    before: BankAccount | None,
    after: BankAccount,
    reason: str | None = None,
) -> None:
    new = model.to_record(after)
    old = None if before is None else model.to_record(before)
    names = ("owner_id", "holder_name", "bank_code", "number", "status")
    await _trail.record(
        tx,
        actor,
        new.id,
        action,
        reason=reason,
        changes={
            name: (getattr(old, name, None), getattr(new, name))
            for name in names
            if getattr(old, name, None) != getattr(new, name)
        },
    )
