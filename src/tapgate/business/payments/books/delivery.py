"""Requests to another book about a transfer, and what their outcomes mean.

Money goes back to the sender only after a final refusal: the other book has stored it, or it can
never credit the transfer. Every other error leaves open whether an earlier request was credited,
for example by a node with another release, or before the key was revoked. Such a transfer is
repeated, or canceled: the other book then refuses it permanently, or says that it was credited.

A response that is not about the transfer says nothing either. Who sends it may be another server,
or a book of another release.
"""

import re
from enum import Enum
from typing import Any, Final, NamedTuple

from tapgate.core.public_names import clean_person_name
from tapgate.http.api.book_peers import BookPeers
from tapgate.ledger import chart
from tapgate_client import ids, money
from tapgate_client.errors import Code
from tapgate_client.exceptions import ApiError as PeerError
from tapgate_client.exceptions import TapgateError, UnexpectedResponseError
from tapgate_client.names import is_person_name
from tapgate_client.schemas.books import BookTransferProblem, BookTransferReceipt

#: Name of a sender whose name the other book may not see, or would not accept.
UNKNOWN_SENDER: Final = "Customer"
#: A request with one of these statuses may have been declined, and was not credited now. Others,
#: such as 429 and 503, say that the other book is busy or not available.
_REFUSAL_STATUSES: Final = frozenset(range(400, 429)) - {408, 425}
#: A subscriber ID is never reused, so one that does not exist can never get the money later. A
#: canceled transfer is stored as declined.
_FINAL_CODES: Final = frozenset({Code.SUBSCRIBER_NOT_FOUND.value, Code.TRANSFER_CANCELLED.value})

_CODE_PATTERN: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_RECEIPT_STATUSES: Final = frozenset({chart.COMPLETED, chart.UNDER_REVIEW})


class ErrorKind(Enum):
    """What an error says about a transfer."""

    FINAL = "it will never be credited"
    REFUSED = "it is refused now; repeating it may help, and staff may have to decide"
    UNAVAILABLE = "the other book was not reached, or was busy"


class Transfer(NamedTuple):
    """What the other book needs to know about a transfer."""

    id: int
    book: str
    recipient_id: str
    sender_name: str
    amount: int
    currency: str
    memo: str | None

    @property
    def request_id(self) -> str:
        return ids.encode(ids.TRANSACTION, self.id)


def classify(error: TapgateError) -> ErrorKind:
    # For an operation that moves money, it is the cause of an unknown outcome.
    unexpected = error.__cause__ or error
    if isinstance(unexpected, UnexpectedResponseError):
        # A proxy reports its own problems with 5xx.
        return ErrorKind.REFUSED if unexpected.status < 500 else ErrorKind.UNAVAILABLE
    if not isinstance(error, PeerError):
        return ErrorKind.UNAVAILABLE
    if error.replayed or error.code in _FINAL_CODES:
        return ErrorKind.FINAL
    return ErrorKind.REFUSED if error.status in _REFUSAL_STATUSES else ErrorKind.UNAVAILABLE


def get_code(error: TapgateError) -> str:
    """Return the other book's error code, or a code for an error without a valid one."""
    if isinstance(error, PeerError) and _CODE_PATTERN.fullmatch(error.code):
        return str(error.code)
    is_unexpected = isinstance(error, PeerError) or classify(error) is ErrorKind.REFUSED
    problem = BookTransferProblem
    return problem.UNEXPECTED_RESPONSE if is_unexpected else problem.NO_RESPONSE


async def send(peers: BookPeers, transfer: Transfer) -> BookTransferReceipt:
    """Send a transfer. An error that may be a decline is followed by another attempt at once.

    A decline is final if it is replayed: the other book has stored it, so no delayed request can
    still succeed.
    """
    try:
        return await _send_once(peers, transfer)
    except PeerError as error:
        if classify(error) is not ErrorKind.REFUSED:
            raise
        return await _send_once(peers, transfer)


async def cancel(peers: BookPeers, transfer: Transfer) -> BookTransferReceipt:
    """Cancel a transfer. If it was credited or is under review, return the receipt."""
    receipt = await peers.get_client(transfer.book).books.cancel_transfer(
        recipient_id=transfer.recipient_id,
        amount=money.format_decimal(transfer.amount, transfer.currency),
        currency=transfer.currency,
        request_id=transfer.request_id,
    )
    return _require_matching(receipt, transfer)


async def _send_once(peers: BookPeers, transfer: Transfer) -> BookTransferReceipt:
    receipt = await peers.get_client(transfer.book).books.receive_transfer(
        recipient_id=transfer.recipient_id,
        sender_name=_get_valid_name(transfer.sender_name),
        amount=money.format_decimal(transfer.amount, transfer.currency),
        currency=transfer.currency,
        memo=transfer.memo,
        request_id=transfer.request_id,
    )
    return _require_matching(receipt, transfer)


def _require_matching(receipt: BookTransferReceipt, transfer: Transfer) -> BookTransferReceipt:
    """Return a receipt if it says that the transfer was credited, or is under review."""
    if (
        receipt.status in _RECEIPT_STATUSES
        and receipt.amount == money.format_money(transfer.amount, transfer.currency)
        and ids.decode(ids.TRANSACTION, receipt.transaction_id) is not None
    ):
        return receipt
    raise UnexpectedResponseError(transfer.request_id, 200)


def build_transfer(book: str, recipient_id: str, row: Any) -> Transfer:
    return Transfer(
        id=row["id"],
        book=book,
        recipient_id=recipient_id,
        sender_name=row["sender_name"],
        amount=row["amount"],
        currency=row["currency"],
        memo=row["memo"],
    )


def _get_valid_name(stored: str) -> str:
    """Return a sender's name that the other book accepts, whenever the name was stored."""
    name = clean_person_name(stored)
    return name if is_person_name(name) else UNKNOWN_SENDER
