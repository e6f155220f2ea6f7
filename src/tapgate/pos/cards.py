"""Verification and lookup of cards by terminals and apps before a payment."""

from typing import NamedTuple

import asyncpg

from tapgate import money
from tapgate.api.request_context import RequestContext
from tapgate.cards import queries as cards
from tapgate.cards.model import Card
from tapgate.errors import ApiError, Code
from tapgate.ledger.pins import check_pin
from tapgate.names import mask_name
from tapgate.schemas.cards import CardStatus
from tapgate.schemas.pos import LookupCardResponse, VerifyCardResponse
from tapgate.store.database import Database


class Wallet(NamedTuple):
    """Wallet that a card spends from."""

    public_name: str
    status: str
    available: int


async def verify_with_pin(request: RequestContext, serial: str, pin: str) -> VerifyCardResponse:
    """Verify a card and its PIN.

    The PIN is checked under the account lock that payments also take. The failure count is
    committed before an error is raised. An unlinked card has no PIN, so none is checked.
    """
    _touch_terminal(request)
    services = request.services
    verdict = None
    async with services.transaction() as tx:
        card = await cards.lock(tx, serial)
        wallet = await _get_wallet(tx, card)
        if card.pin_holder_id is not None:
            verdict = await check_pin(
                tx,
                card.pin_holder_id,
                pin,
                services.pin_verifier.matches,
                services.clock(),
                services.new_id,
            )
    if verdict is not None and verdict.code is not None:
        raise ApiError(verdict.code, details=verdict.details)
    return _build_verify_response(request, card, wallet, with_balance=True)


async def verify_without_pin(request: RequestContext, serial: str) -> VerifyCardResponse:
    card = await cards.get(request.services.database, serial)
    wallet = await _get_wallet(request.services.database, card)
    return _build_verify_response(request, card, wallet, with_balance=False)


async def look_up(request: RequestContext, identifier: str) -> LookupCardResponse:
    _touch_terminal(request)
    card = await cards.find(request.services.database, identifier)
    if card is None:
        raise ApiError(Code.CARD_NOT_FOUND)
    return LookupCardResponse(
        card_serial=card.serial,
        card_type=card.type,
        status=card.status_at(request.services.clock()),
        holder_name=_get_display_name(card, await _get_wallet(request.services.database, card)),
    )


def _touch_terminal(request: RequestContext) -> None:
    if request.principal.terminal_id is not None:
        request.services.authenticator.terminals.touch(request.principal.terminal_id)


async def _get_wallet(reader: Database | asyncpg.Connection, card: Card) -> Wallet | None:
    row = await reader.fetchrow(
        "SELECT public_name, status, balance - held FROM accounts WHERE id = $1", card.account_id
    )
    return None if row is None else Wallet(*row)


def _build_verify_response(
    request: RequestContext, card: Card, wallet: Wallet | None, *, with_balance: bool
) -> VerifyCardResponse:
    response = VerifyCardResponse(
        message="Card is not active",
        is_active=False,
        holder_name=_get_display_name(card, wallet),
    )
    is_card_active = card.status_at(request.services.clock()) == CardStatus.ACTIVE
    if wallet is not None and wallet.status == "active" and is_card_active:
        response.message, response.is_active = "Card is active", True
        if with_balance:
            response.balance = money.format_money(
                wallet.available, request.services.settings.currency
            )
    return response


def _get_display_name(card: Card, wallet: Wallet | None) -> str | None:
    """Return the holder's name as disclosed to merchants, or None for an unlinked card."""
    if card.child_name is not None:
        return mask_name(card.child_name)
    return None if wallet is None else wallet.public_name
