"""Trial balances of several books, added up, and the reconciliation of their clearing accounts.

Each book reports its balances by account kind, from one snapshot. The books are read one after the
other, so a transfer that is delivered in between appears as a difference; the next report has none.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from tapgate.business.finance.general_ledger import queries
from tapgate.business.payments.books import number_conflicts
from tapgate.http.api.book_peers import BookPeers
from tapgate.runtime.store.database import Database
from tapgate_client import money
from tapgate_client.clock import format_rfc3339
from tapgate_client.exceptions import TapgateError
from tapgate_client.schemas.books import (
    BookAccountBalance,
    BookPosition,
    BookReport,
    BookReportRow,
)
from tapgate_client.schemas.general_ledger import AccountKind

#: What was debited here and is not final yet: the other book may have credited it already.
_IN_TRANSIT: Final = """
    SELECT count(*), coalesce(sum(CASE e.credit_account WHEN t.to_account THEN e.amount
                                                        ELSE -e.amount END), 0)::bigint
    FROM book_transfers b JOIN transactions t ON t.id = b.id
    JOIN entries e
      ON e.transaction_id = b.id AND t.to_account IN (e.credit_account, e.debit_account)
    WHERE b.status IN ('pending', 'stopped') AND b.book = $1 AND t.status = 'completed'"""


async def load_position(
    database: Database, peers: BookPeers, other: str, *, currency: str, now: datetime
) -> BookPosition:
    """Return this book's position, with what it owes another book."""
    _, totals = await queries.load_totals(database, None)
    owed = await database.fetchval(
        "SELECT balance FROM accounts WHERE owner_id = $1 AND kind = 'clearing'",
        peers.get_partner_id(other),
    )
    row = await database.fetchrow(_IN_TRANSIT, other)
    assert row is not None
    return BookPosition(
        book=peers.own_code or "",
        as_of=format_rfc3339(now),
        currency=currency,
        owed=money.format_decimal(owed or 0, currency),
        in_transit=money.format_decimal(row[1], currency),
        accounts=_format_sums({kind: total.balance for kind, total in totals.items()}, currency),
    )


async def build_report(
    database: Database, peers: BookPeers, *, currency: str, now: datetime
) -> BookReport:
    """Add up the books. A book that does not respond is listed without figures."""
    own = {
        code: await load_position(database, peers, code, currency=currency, now=now)
        for code in peers.codes
    }
    found = await asyncio.gather(*(_ask(peers, code) for code in peers.codes))
    positions = dict(zip(peers.codes, found, strict=True))
    rows = [_build_row(code, own[code], positions[code], currency) for code in peers.codes]
    first = next(iter(own.values()), None)
    reached = [position for position in positions.values() if position is not None]
    return BookReport(
        as_of=format_rfc3339(now),
        currency=currency,
        books=rows,
        accounts=_add_up([*([] if first is None else [first]), *reached], currency),
        number_conflicts=await number_conflicts.list_first(database, peers),
        is_complete=len(reached) == len(positions),
    )


async def _ask(peers: BookPeers, code: str) -> BookPosition | None:
    try:
        return await peers.get_client(code).books.get_position()
    except TapgateError:
        return None


def _build_row(
    code: str, own: BookPosition, other: BookPosition | None, currency: str
) -> BookReportRow:
    if other is None:
        return BookReportRow(
            book=code, owed=own.owed, owed_by_book=None, in_transit=None, difference=None
        )
    owed, owed_back = _parse(own.owed, currency), _parse(other.owed, currency)
    in_transit = _parse(own.in_transit, currency) + _parse(other.in_transit, currency)
    return BookReportRow(
        book=code,
        owed=own.owed,
        owed_by_book=other.owed,
        in_transit=money.format_decimal(in_transit, currency),
        difference=money.format_decimal(owed + owed_back - in_transit, currency),
    )


def _add_up(positions: Sequence[BookPosition], currency: str) -> list[BookAccountBalance]:
    sums = Counter[str]()
    for position in positions:
        for account in position.accounts:
            sums[account.kind] += _parse(account.balance, currency)
    return _format_sums(sums, currency)


def _format_sums(sums: Mapping[str, int], currency: str) -> list[BookAccountBalance]:
    return [
        BookAccountBalance(kind=AccountKind(kind), balance=money.format_decimal(balance, currency))
        for kind, balance in sorted(sums.items())
    ]


def _parse(amount: str, currency: str) -> int:
    """Return a signed decimal amount in minor units."""
    minor = money.parse(amount.removeprefix("-"), currency, allow_zero=True)
    return -minor if amount.startswith("-") else minor
