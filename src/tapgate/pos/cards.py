"""What a terminal or an app may learn about a card before it is charged."""

from datetime import datetime
from typing import Any

import asyncpg
import msgspec

from tapgate import money
from tapgate.cards.model import read_identifier
from tapgate.edge.call import Call
from tapgate.errors import ApiError, Code
from tapgate.ledger.accounts import lock_account
from tapgate.ledger.pins import check_pin
from tapgate.store.database import Database

_SELECT = """
    SELECT card.serial, card.type, card.status, card.expires_at, card.holder_name,
           card.account_id, card.pin_holder_id, account.public_name,
           account.status AS account_status, account.balance - account.held AS available
    FROM cards card LEFT JOIN accounts account ON account.id = card.account_id"""


class PosCard(msgspec.Struct, frozen=True, kw_only=True):
    serial: str
    type: str | None
    status: str
    expires_at: datetime | None
    holder_name: str | None
    account_id: int | None
    pin_holder_id: int | None
    public_name: str | None
    account_status: str | None
    available: int | None

    def status_at(self, now: datetime) -> str:
        if self.expires_at is not None and self.expires_at <= now:
            return "EXPIRED"
        return self.status

    def is_active_at(self, now: datetime) -> bool:
        return self.status_at(now) == "ACTIVE" and self.account_status == "active"

    @property
    def shown_name(self) -> str | None:
        """As much of the holder's name as a merchant may see."""
        if self.type == "CHILD" and self.holder_name is not None:
            return masked(self.holder_name)
        return self.public_name


def masked(name: str) -> str:
    """`Fatu Binta Kamara` -> `Fatu K.`"""
    first, *others = name.split()
    return f"{first} {others[-1][0]}." if others else first


class CardCheck(msgspec.Struct, kw_only=True):
    """What a terminal is told; a card that cannot pay has no balance to tell."""

    success: bool = True
    message: str
    is_active: bool
    holder_name: str | None
    balance: str | msgspec.UnsetType = msgspec.UNSET


class CardFound(msgspec.Struct, kw_only=True):
    success: bool = True
    message: str = "Card found"
    card_serial: str
    card_type: str | None
    status: str
    holder_name: str | None


async def verify_with_pin(call: Call, serial: str, pin: str) -> CardCheck:
    """The PIN is judged under the lock that every payment takes, and its count is kept whatever
    the verdict."""
    services = call.services
    async with services.database.transaction() as tx:
        card = await _by_serial(tx, serial)
        verdict = None
        if card.account_id is not None and card.pin_holder_id is not None:
            await lock_account(tx, card.account_id)
            card = await _by_serial(tx, serial)
            verdict = await check_pin(
                tx, card.pin_holder_id or 0, pin, services.pins.matches, services.clock()
            )
    if verdict is not None and verdict.code is not None:
        raise ApiError(verdict.code, details=verdict.details)
    return _checked(call, card, with_balance=True)


async def verify_without_pin(call: Call, serial: str) -> CardCheck:
    return _checked(call, await _by_serial(call.services.database, serial), with_balance=False)


async def look_up(call: Call, identifier: str) -> CardFound:
    serial, uid = read_identifier(identifier)
    # One card's serial may read like another's UID: the serial is what is printed on it.
    row = await call.services.database.fetchrow(
        f"""{_SELECT} WHERE card.serial = $1 OR card.uid = $2
            ORDER BY (card.serial = $1) DESC LIMIT 1""",
        serial,
        uid,
    )
    card = _found(row)
    return CardFound(
        card_serial=card.serial,
        card_type=card.type,
        status=card.status_at(call.services.clock()),
        holder_name=card.shown_name,
    )


async def _by_serial(reader: Database | asyncpg.Connection, serial: str) -> PosCard:
    return _found(await reader.fetchrow(f"{_SELECT} WHERE card.serial = $1", serial))


def _found(row: Any) -> PosCard:
    if row is None:
        raise ApiError(Code.CARD_NOT_FOUND)
    return PosCard(**row)


def _checked(call: Call, card: PosCard, *, with_balance: bool) -> CardCheck:
    is_active = card.is_active_at(call.services.clock())
    check = CardCheck(
        message="Card is active" if is_active else "Card is not active",
        is_active=is_active,
        holder_name=card.shown_name,
    )
    if is_active and with_balance and card.available is not None:
        check.balance = money.formatted(card.available, call.services.settings.currency)
    return check
