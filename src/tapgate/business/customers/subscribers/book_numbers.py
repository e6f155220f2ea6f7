"""Phone numbers in several books: a number belongs to the customers of one book.

Before a number is stored, the other books are asked. A book that does not respond does not prevent
a registration: a number check is stored with the subscriber, and a worker repeats it
(`payments.books.number_checks`). Two books may also register a number at the same time, so every
number is checked once more afterwards.
"""

import asyncio
from datetime import timedelta
from typing import Final

from tapgate.http.api.book_peers import BookPeers
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code

_MAX_LOOKUP_SECONDS: Final = 2.0
#: A registration that has begun in another book has ended by then.
_CHECK_AFTER: Final = timedelta(seconds=30)


async def require_free_elsewhere(peers: BookPeers, phone_number: str) -> None:
    """Reject a number that a customer of another book has, if the other books respond in time."""
    try:
        async with asyncio.timeout(_MAX_LOOKUP_SECONDS):
            customer = await peers.find_customer(("phone_number", phone_number))
    except (ApiError, TimeoutError):
        return
    if customer is not None:
        raise ApiError(
            Code.DUPLICATE_PHONE,
            "The phone number is registered in another book.",
            details={"book": customer.book},
        )


async def add_check(tx: Transaction, subscriber_id: int) -> None:
    """Let the worker compare the subscriber's number with the other books, if there are any."""
    await tx.execute(
        """INSERT INTO number_checks (id, status, next_attempt_at, created_at)
           VALUES ($1, 'pending', $2, $3)
           ON CONFLICT (id) DO UPDATE SET status = 'pending', book = NULL, attempts = 0,
               next_attempt_at = excluded.next_attempt_at, created_at = excluded.created_at""",
        subscriber_id,
        tx.now() + _CHECK_AFTER,
        tx.now(),
    )
