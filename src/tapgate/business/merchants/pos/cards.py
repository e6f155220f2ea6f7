"""Card verification and lookup by terminals and apps before a payment."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NamedTuple

from tapgate.auth.disclosure import Reader
from tapgate.business.customers.cards import queries as cards
from tapgate.business.customers.cards import tap_history
from tapgate.business.customers.cards.model import Card
from tapgate.core.public_names import clean_person_name, mask_person_name
from tapgate.ledger.card_proofs.proof_verifier import (
    OTHER_CARD_MESSAGE,
    ProofResult,
    find_proof_error,
)
from tapgate.ledger.chart import AccountStatus
from tapgate.ledger.pins.pin_failures import check_pin
from tapgate.ledger.pins.pin_verifier import PinVerifier
from tapgate.runtime.store.database import Database, RaiseAfterCommit
from tapgate.runtime.store.transaction import OpenTransaction, Transaction
from tapgate_client import ids, money
from tapgate_client.errors import ApiError, Code, invalid_field, require_found
from tapgate_client.schemas.cards import CardStatus
from tapgate_client.schemas.pos import LookupCardResponse, VerifyCardResponse


class _CardWallet(NamedTuple):
    """Wallet that a card spends from."""

    public_name: str
    status: str
    available: int


class PresentedCard(NamedTuple):
    """Card as a terminal or an app presents it: by serial or UID, by a tap's proof, or both."""

    identifier: str | None
    proof: ProofResult | None
    processor_id: int | None
    terminal_id: int | None  # of the terminal that signed the request
    credential: str  # of the caller


async def verify_with_pin(
    tx: Transaction,
    presented: PresentedCard,
    pin: str,
    *,
    currency: str,
    pin_verifier: PinVerifier,
) -> VerifyCardResponse:
    """Verify a card, its proof and its PIN.

    The PIN is checked under the account lock that payments also take. The failure count is
    committed before an error is raised. An unlinked card has no PIN, so none is checked.
    """
    found = await _find_card(tx, presented, cards.find_by_serial)
    card = None if found is None else await cards.lock(tx, found.serial)
    error_code = _find_error(presented, card)
    if card is None or error_code is not None:
        raise RaiseAfterCommit(await _reject_proof(tx, presented, card, error_code))
    wallet = await _get_wallet(tx, card)
    if card.pin_holder_id is not None:
        error = await check_pin(tx, presented.credential, card.pin_holder_id, pin, pin_verifier)
        if error is not None:
            raise RaiseAfterCommit(error)
    response = _build_verify_response(card, wallet, tx.now())
    if wallet is not None and response.is_active:
        response.balance = money.format_money(wallet.available, currency)
    return response


async def verify_without_pin(
    database: Database, presented: PresentedCard, *, now: datetime, open_tx: OpenTransaction
) -> VerifyCardResponse:
    found = await _find_card(database, presented, cards.find_by_serial)
    card = await _require_valid_proof(presented, found, open_tx)
    return _build_verify_response(card, await _get_wallet(database, card), now)


async def look_up(
    database: Database, presented: PresentedCard, *, now: datetime, open_tx: OpenTransaction
) -> LookupCardResponse:
    """Return a card by its serial, its UID or a proof. A proof is checked, but not required."""
    card = await _find_card(database, presented, cards.find)
    if card is None or presented.proof is not None:
        card = await _require_valid_proof(presented, card, open_tx)
    return LookupCardResponse(
        card_serial=card.serial,
        card_type=card.type,
        status=card.status_at(now),
        holder_name=_get_display_name(card, await _get_wallet(database, card)),
    )


async def _find_card(
    reader: Database | Transaction,
    presented: PresentedCard,
    find: Callable[[Reader, str], Awaitable[Card | None]],
) -> Card | None:
    """Return the card that the request or its proof names.

    With a proof, the error for an unknown card is the proof error, so that it does not reveal
    whether a card has this serial.
    """
    identifier, proof = presented.identifier, presented.proof
    if identifier is None:
        serial = None if proof is None else proof.card_serial
        return None if serial is None else await cards.get(reader, serial)
    card = await find(reader, identifier)
    if proof is None:
        return require_found(card, Code.CARD_NOT_FOUND)
    if proof.is_signed and (card is None or card.serial != proof.card_serial):
        raise invalid_field("card_proof", OTHER_CARD_MESSAGE)
    return card


def _find_error(presented: PresentedCard, card: Card | None) -> Code | None:
    return Code.CARD_NOT_GENUINE if card is None else find_proof_error(presented.proof, card)


async def _require_valid_proof(
    presented: PresentedCard, card: Card | None, open_tx: OpenTransaction
) -> Card:
    error_code = _find_error(presented, card)
    if card is not None and error_code is None:
        return card
    async with open_tx() as tx:
        raise RaiseAfterCommit(await _reject_proof(tx, presented, card, error_code))


async def _reject_proof(
    tx: Transaction, presented: PresentedCard, card: Card | None, code: Code | None
) -> ApiError:
    assert code is not None
    terminal_id = presented.terminal_id
    return await tap_history.reject(
        tx,
        card,
        presented.proof,
        code,
        processor_id=presented.processor_id,
        terminal_id=None if terminal_id is None else ids.encode(ids.TERMINAL, terminal_id),
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
        return mask_person_name(card.child_name)
    return None if wallet is None else clean_person_name(wallet.public_name)
