"""Stored transactions, and the records that clients receive."""

from collections.abc import Callable, Collection, Mapping, Set
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from tapgate.core.public_names import (
    clean_business_name,
    clean_merchant_name,
    clean_person_name,
    hide_links,
)
from tapgate.ledger import chart
from tapgate.ledger.commands import decode_result
from tapgate_client import clock, ids, money
from tapgate_client.schemas.transactions import (
    Channel,
    Direction,
    FeePayer,
    PartyRecord,
    PartyType,
    TransactionRecord,
    TransactionStatus,
    TransactionType,
)


class UserKind(NamedTuple):
    """Kind of user: its name in records, its ID prefix and its account kinds.

    The first account kind is the one that the user's balance refers to.
    """

    type: PartyType
    prefix: str
    accounts: tuple[str, ...]


_USER_KINDS: Final = (
    UserKind(PartyType.SUBSCRIBER, ids.SUBSCRIBER, (chart.WALLET,)),
    UserKind(PartyType.AGENT, ids.AGENT, (chart.FLOAT, chart.COMMISSION)),
    UserKind(PartyType.PROCESSOR, ids.PROCESSOR, (chart.SETTLEMENT,)),
    UserKind(PartyType.PARTNER, ids.PARTNER, (chart.CLEARING,)),
)
_KIND_BY_ACCOUNT: Final = {account: kind for kind in _USER_KINDS for account in kind.accounts}
_KIND_BY_PREFIX: Final = {kind.prefix: kind for kind in _USER_KINDS}


class User(NamedTuple):
    """Account holder, decoded from a public ID."""

    kind: UserKind
    id: int


def parse_user_id(public_id: str) -> User | None:
    """Return the user for a public ID, or None if the ID is malformed. The user may not exist."""
    kind = _KIND_BY_PREFIX.get(ids.get_prefix(public_id))
    number = None if kind is None else ids.decode(kind.prefix, public_id)
    return None if kind is None or number is None else User(kind, number)


@lru_cache(maxsize=1024)  # a list has many transactions by few holders
def get_holder(account_kind: str, owner_id: int | None) -> tuple[PartyType, str | None]:
    """Return an account holder's type and public ID; the platform has no ID."""
    kind = _KIND_BY_ACCOUNT.get(account_kind)
    if kind is None or owner_id is None:
        return PartyType.PLATFORM, None
    return kind.type, ids.encode(kind.prefix, owner_id)


#: Payment statuses without an approval code.
_UNPAID_STATUSES: Final = (TransactionStatus.FAILED, TransactionStatus.UNDER_REVIEW)


class TransactionSide(NamedTuple):
    """One of a transaction's two accounts, with its balance after the transaction."""

    account_id: int
    kind: str
    owner_id: int | None
    holder_name: str
    public_name: str
    card_serial: str | None
    balance: int | None


class Transaction(msgspec.Struct, frozen=True):
    """A stored transaction, with amounts in minor units."""

    id: int
    type: TransactionType
    status: TransactionStatus
    channel: Channel
    amount: int
    fee_amount: int
    fee_payer: FeePayer | None
    fee_refunded: int
    given_back: int  # by refunds of a card payment, or by reversals of any other type
    currency: str
    card_serial: str | None
    original_id: int | None
    request_id: str | None
    failure_code: str | None
    created_at: datetime
    completed_at: datetime | None
    encoded_result: bytes | None
    context: Mapping[str, Any]
    payer: TransactionSide | None  # None: declined because the card was not linked
    payee: TransactionSide | None

    @property
    def account_ids(self) -> list[int]:
        """Return the payer's and the payee's account IDs. A card that is not linked has none."""
        return [side.account_id for side in (self.payer, self.payee) if side is not None]

    @property
    def approval_code(self) -> str | None:
        """Return the approval code for a successful payment to a merchant, or None."""
        if self.type not in chart.PAYMENT_TYPES or self.status in _UNPAID_STATUSES:
            return None
        return calculate_approval_code(self.id)

    @property
    def processor_id(self) -> int | None:
        """Return the processor's ID if it is the payee or the payer, or None."""
        for side in (self.payee, self.payer):
            if side is not None and side.kind == chart.SETTLEMENT:
                return side.owner_id
        return None

    @property
    def failure_details(self) -> dict[str, Any] | None:
        """Return the decline details, with amounts as decimal strings, or None."""
        if self.status != TransactionStatus.FAILED or self.encoded_result is None:
            return None
        details = decode_result(self.encoded_result).details or {}
        return {name: self._format_detail(value) for name, value in details.items()}

    def _format_detail(self, value: Any) -> Any:
        if not isinstance(value, float):
            return value
        return money.format_decimal(
            round(value * 10 ** money.get_decimals(self.currency)), self.currency
        )


def mask_record(record: TransactionRecord) -> TransactionRecord:
    """Return the record without a restricted subscriber's personal data."""

    def mask_party(party: PartyRecord | None) -> PartyRecord | None:
        return None if party is None else PartyRecord(type=party.type, id=party.id)

    return msgspec.structs.replace(
        record,
        from_=mask_party(record.from_),
        to=mask_party(record.to),
        book=None,
        card_serial=None,
        failure_details=msgspec.UNSET,
        reference=None,
        memo=None,
        metadata=None,
        masked=True,
    )


def to_record(
    transaction: Transaction,
    *,
    full: bool = False,
    own_accounts: Collection[int] = (),
    hidden: Set[int] = frozenset(),
) -> TransactionRecord:
    """Return the record for clients.

    `full` adds full names and decline details, for admins. `own_accounts` are the accounts of the
    user whose transactions are listed; they determine `direction` and `balance_after`. A
    transaction with a `hidden` account, whose holder is hidden from the caller, is masked.
    """
    record = _build_record(transaction, full=full, own_accounts=own_accounts)
    return record if hidden.isdisjoint(transaction.account_ids) else mask_record(record)


def _build_record(
    transaction: Transaction, *, full: bool, own_accounts: Collection[int]
) -> TransactionRecord:
    currency, context = transaction.currency, transaction.context
    direction, own_side = _find_own_side(transaction, own_accounts)
    original, processor = transaction.original_id, transaction.processor_id
    created_at = clock.format_rfc3339(transaction.created_at)
    book_party = _show(context.get("book_party"), clean_merchant_name, full=full)
    refunded = transaction.given_back if transaction.type in chart.PAYMENT_TYPES else 0
    return TransactionRecord(
        id=ids.encode(ids.TRANSACTION, transaction.id),
        type=transaction.type,
        status=transaction.status,
        amount=money.format_decimal(transaction.amount, currency),
        fee_amount=money.format_decimal(transaction.fee_amount, currency),
        fee_payer=transaction.fee_payer,
        fee_refunded=money.format_decimal(transaction.fee_refunded, currency),
        currency=currency,
        from_=_build_party_record(transaction.payer, full=full, book_party=book_party),
        to=_build_party_record(transaction.payee, full=full, book_party=book_party),
        book=context.get("book"),
        direction=direction,
        balance_after=(
            None
            if own_side is None or own_side.balance is None
            else money.format_decimal(own_side.balance, currency)
        ),
        card_serial=transaction.card_serial,
        processor_id=None if processor is None else get_holder(chart.SETTLEMENT, processor)[1],
        terminal_id=context.get("terminal_id"),
        merchant_id=context.get("merchant_id"),
        merchant_name=_show(context.get("merchant_name"), clean_merchant_name, full=full),
        transaction_ref=context.get("transaction_ref"),
        reference=context.get("reference"),
        approval_code=transaction.approval_code,
        original_transaction_id=None if original is None else ids.encode(ids.TRANSACTION, original),
        refunded_amount=money.format_decimal(refunded, currency),
        reversed_amount=money.format_decimal(transaction.given_back - refunded, currency),
        request_id=transaction.request_id,
        approval_id=context.get("approval_id"),
        failure_code=transaction.failure_code,
        failure_details=(full and transaction.failure_details) or msgspec.UNSET,
        memo=_show(context.get("memo"), hide_links, full=full),
        metadata=context.get("metadata"),
        channel=transaction.channel,
        created_at=created_at,
        completed_at=_format_completion(transaction, created_at),
    )


def _format_completion(transaction: Transaction, created_at: str) -> str | None:
    """Return the completion time, which is the creation time unless there was a review."""
    completed_at = transaction.completed_at
    if completed_at == transaction.created_at:
        return created_at
    return None if completed_at is None else clock.format_rfc3339(completed_at)


def _show(text: str | None, clean: Callable[[str], str | None], *, full: bool) -> str | None:
    """Return a text that one party wrote: as it is for staff, cleaned for everyone else."""
    return text if text is None or full else clean(text)


def _find_own_side(
    transaction: Transaction, own_accounts: Collection[int]
) -> tuple[Direction | None, TransactionSide | None]:
    """Return the direction and the account from the user's point of view, or (None, None).

    A transfer between two of the user's accounts counts as a credit.
    """
    payer, payee = transaction.payer, transaction.payee
    if payee is not None and payee.account_id in own_accounts:
        return Direction.CREDIT, payee
    if payer is not None and payer.account_id in own_accounts:
        return Direction.DEBIT, payer
    return None, None


def _build_party_record(
    side: TransactionSide | None, *, full: bool, book_party: str | None
) -> PartyRecord | None:
    """Return a party. `book_party` names the customer of another book whom a partner represents."""
    if side is None:
        return None
    holder_type, public_id = get_holder(side.kind, side.owner_id)
    name = side.holder_name if full else _get_public_name(side)
    return PartyRecord(
        type=holder_type,
        id=public_id or ids.encode(ids.ACCOUNT, side.account_id),
        name=book_party if book_party is not None and side.kind == chart.CLEARING else name,
        card_serial=side.card_serial,
    )


def _get_public_name(side: TransactionSide) -> str:
    clean = clean_person_name if side.kind == chart.WALLET else clean_business_name
    return clean(side.public_name)


#: Without I, O, 0 and 1, which are easily misread on a paper receipt.
_APPROVAL_ALPHABET: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_APPROVAL_PAIRS: Final = [
    first + second for first in _APPROVAL_ALPHABET for second in _APPROVAL_ALPHABET
]
_APPROVAL_CHARACTER_BITS: Final = 5
_APPROVAL_BITS: Final = 6 * _APPROVAL_CHARACTER_BITS
_GOLDEN_RATIO: Final = 0x9E3779B97F4A7C15  # 2**64 / golden ratio: spreads consecutive IDs


def calculate_approval_code(transaction_id: int) -> str:
    """Return the approval code for a receipt. It is not unique.

    The SQL function `approval_number` computes the same number, for a search.
    """
    number = (transaction_id * _GOLDEN_RATIO % 2**64) >> (64 - _APPROVAL_BITS)
    pairs = _APPROVAL_PAIRS
    return f"{pairs[number >> 20]}{pairs[number >> 10 & 1023]}{pairs[number & 1023]}"


def parse_approval_code(text: str) -> int | None:
    """Return the number that an approval code spells, or None if the text is not one."""
    code = text.upper()
    if len(code) * _APPROVAL_CHARACTER_BITS != _APPROVAL_BITS:
        return None
    number = 0
    for character in code:
        value = _APPROVAL_ALPHABET.find(character)
        if value < 0:
            return None
        number = number << _APPROVAL_CHARACTER_BITS | value
    return number
