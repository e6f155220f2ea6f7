"""Trial balances of several books, added up, and the reconciliation of their clearing accounts.

Each book reports its balances by account kind, from one snapshot. The books are read one after the
other, so a transfer that is delivered in between appears as a difference; the next report has none.

Amounts in different currencies are never added, although books that exchange transfers have the
same one. A book whose figures cannot be read is missing from the report, as one that does not
respond.
"""

import asyncio
import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, cast

from tapgate.business.finance.general_ledger import queries
from tapgate.business.payments.books import number_conflicts
from tapgate.http.api.book_peers import BookPeers
from tapgate.runtime.store.database import Database
from tapgate_client import money
from tapgate_client.clock import format_rfc3339
from tapgate_client.exceptions import TapgateError
from tapgate_client.schemas.books import (
    BookAccountBalance,
    BookAccountTotal,
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

_MAX_RESPONSE_SECONDS: Final = 15.0
_SUM_PATTERN: Final = re.compile(r"(-?[0-9]{1,24})(?:\.([0-9]+))?")


class _Figures(NamedTuple):
    """A book's position in minor units."""

    currency: str
    owed: int
    in_transit: int
    balances: Mapping[str, int]


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
        accounts=[
            BookAccountBalance(
                kind=AccountKind(kind), balance=money.format_decimal(total.balance, currency)
            )
            for kind, total in sorted(totals.items())
        ],
    )


async def build_report(
    database: Database, peers: BookPeers, *, currency: str, now: datetime
) -> BookReport:
    """Add up the books. A book that does not respond is listed without figures."""
    own = {
        code: _read(await load_position(database, peers, code, currency=currency, now=now))
        for code in peers.codes
    }
    found = await asyncio.gather(*(_ask(peers, code) for code in peers.codes))
    others = dict(zip(peers.codes, found, strict=True))
    missing = [code for code, figures in others.items() if figures is None]
    reached = [*itertools.islice(own.values(), 1), *filter(None, found)]
    return BookReport(
        as_of=format_rfc3339(now),
        currency=currency,
        books=[_build_row(code, own[code], others[code]) for code in peers.codes],
        accounts=_add_up(reached),
        number_conflicts=await number_conflicts.list_first(database, peers),
        missing_books=missing,
        is_complete=not missing,
    )


async def _ask(peers: BookPeers, code: str) -> _Figures | None:
    try:
        async with asyncio.timeout(_MAX_RESPONSE_SECONDS):
            return _read(await peers.get_client(code).books.get_position())
    except (TapgateError, TimeoutError, ValueError, KeyError):
        return None


def _read(position: BookPosition) -> _Figures:
    """Return a position's figures; raise ValueError or KeyError if they are invalid."""
    currency = position.currency
    return _Figures(
        currency,
        _parse(position.owed, currency),
        _parse(position.in_transit, currency),
        {row.kind: _parse(row.balance, currency) for row in position.accounts},
    )


def _build_row(code: str, own: _Figures, other: _Figures | None) -> BookReportRow:
    owed = money.format_decimal(own.owed, own.currency)
    if other is None:
        return BookReportRow(
            book=code, owed=owed, owed_by_book=None, in_transit=None, difference=None
        )
    owed_by_book = money.format_decimal(other.owed, other.currency)
    if other.currency != own.currency:
        return BookReportRow(
            book=code, owed=owed, owed_by_book=owed_by_book, in_transit=None, difference=None
        )
    in_transit = own.in_transit + other.in_transit
    difference = own.owed + other.owed - in_transit
    return BookReportRow(
        book=code,
        owed=owed,
        owed_by_book=owed_by_book,
        in_transit=money.format_decimal(in_transit, own.currency),
        difference=money.format_decimal(difference, own.currency),
    )


def _add_up(books: Sequence[_Figures]) -> list[BookAccountTotal]:
    sums = Counter[tuple[str, str]]()
    for figures in books:
        for kind, balance in figures.balances.items():
            sums[figures.currency, kind] += balance
    return [
        BookAccountTotal(
            # A book of a newer release may have more kinds.
            kind=cast(AccountKind, kind),
            currency=currency,
            balance=money.format_decimal(balance, currency),
        )
        for (currency, kind), balance in sorted(sums.items())
    ]


def _parse(amount: str, currency: str) -> int:
    """Return a sum in minor units: signed, and larger than an amount that a request may have."""
    match, decimals = _SUM_PATTERN.fullmatch(amount), money.get_decimals(currency)
    if match is None or len(match[2] or "") > decimals:
        raise ValueError("not a sum in this currency")
    return int(match[1] + (match[2] or "").ljust(decimals, "0"))
