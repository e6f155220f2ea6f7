"""Verification and lookup of cards by terminals and apps before a payment."""

from datetime import datetime
from typing import NamedTuple

from tapgate import money
from tapgate.cards import queries as cards
from tapgate.cards.model import Card
from tapgate.errors import ApiError, Code
from tapgate.ledger.chart import AccountStatus
from tapgate.ledger.pin_failures import check_pin
from tapgate.names import mask_name
from tapgate.pins.verifier import PinVerifier
from tapgate.schemas.cards import CardStatus
from tapgate.schemas.pos import LookupCardResponse, VerifyCardResponse
from tapgate.store.database import Database, RaiseAfterCommit
from tapgate.store.transaction import Transaction


class _CardWallet(NamedTuple):
    """Wallet that a card spends from."""

    public_name: str
    status: str
    available: int


async def verify_with_pin(
    tx: Transaction, serial: str, pin: str, *, currency: str, pin_verifier: PinVerifier
) -> VerifyCardResponse:
    """Verify a card and its PIN.

    The PIN is checked under the account lock that payments also take. The failure count is
    committed before an error is raised. An unlinked card has no PIN, so none is checked.
    """
    card = await cards.lock(tx, serial)
    wallet = await _get_wallet(tx, card)
    if card.pin_holder_id is not None:
        error = (await check_pin(tx, card.pin_holder_id, pin, pin_verifier.matches)).error
        if error is not None:
            raise RaiseAfterCommit(error)
    response = _build_verify_response(card, wallet, tx.now())
    if wallet is not None and response.is_active:
        response.balance = money.format_money(wallet.available, currency)
    return response


async def verify_without_pin(
    database: Database, serial: str, *, now: datetime
) -> VerifyCardResponse:
    card = await cards.get(database, serial)
    return _build_verify_response(card, await _get_wallet(database, card), now)


async def look_up(database: Database, identifier: str, *, now: datetime) -> LookupCardResponse:
    card = await cards.find(database, identifier)
    if card is None:
        raise ApiError(Code.CARD_NOT_FOUND)
    return LookupCardResponse(
        card_serial=card.serial,
        card_type=card.type,
        status=card.status_at(now),
        holder_name=_get_display_name(card, await _get_wallet(database, card)),
    )


async def _get_wallet(reader: Database | Transaction, card: Card) -> _CardWallet | None:
    row = await reader.fetchrow(
        "SELECT public_name, status, balance - held FROM accounts WHERE id = $1", card.account_id
    )
    return None if row is None else _CardWallet(*row)


def _build_verify_response(
    card: Card, wallet: _CardWallet | None, now: datetime
) -> VerifyCardResponse:
    is_active = (
        wallet is not None
        and wallet.status == AccountStatus.ACTIVE
        and card.status_at(now) == CardStatus.ACTIVE
    )
    return VerifyCardResponse(
        message="Card is active" if is_active else "Card is not active",
        is_active=is_active,
        holder_name=_get_display_name(card, wallet),
    )


def _get_display_name(card: Card, wallet: _CardWallet | None) -> str | None:
    """Return the holder's name as disclosed to merchants, or None for an unlinked card."""
    if card.child_name is not None:
        return mask_name(card.child_name)
    return None if wallet is None else wallet.public_name
