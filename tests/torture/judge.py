"""Compares what the clients know with what is there: in the tables, row by row, and over the
interface. Whatever one of them has and the other has not is a finding."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import asyncpg
import msgspec

from tapgate import ids
from tapgate.audit import chain
from tapgate.ledger.verify import verify
from tapgate.store.database import Database
from torture import settling
from torture.accounts import (
    Moved,
    judge_balances,
    judge_steps,
    moved_since,
    names_of_accounts,
)
from torture.book import Book, Standing, minor
from torture.events import judge_events
from torture.expectation import Expected, differences, expected_record, expected_sides
from torture.findings import Findings
from torture.interface import Interface
from torture.town import Town


class Mark(msgspec.Struct, frozen=True):
    """Up to where everything has been judged, and what everybody had then."""

    transaction: int
    audit: int
    event: int
    balances: dict[str, int]


async def mark(database: Database, book: Book) -> Mark:
    transaction = await database.fetchval("SELECT coalesce(max(id), 0) FROM transactions")
    audit = await database.fetchval("SELECT coalesce(max(sequence), 0) FROM audit_entries")
    event = await database.fetchval("SELECT coalesce(max(id), 0) FROM events")
    return Mark(transaction, audit, event, dict(book.balances))


class Judge:
    def __init__(
        self, database: Database, interface: Interface, town: Town, book: Book, findings: Findings
    ) -> None:
        self._database = database
        self._interface = interface
        self._town = town
        self._book = book
        self._findings = findings

    async def judge(self, standings: Sequence[Standing], since: Mark) -> None:
        """Everything that was asked for since then."""
        database, book, findings = self._database, self._book, self._findings
        names = await names_of_accounts(database, self._town, findings)
        moved = await moved_since(database, since.transaction, names)
        rows = await self._rows(standings, since)
        new = [row for row in rows if row["id"] > since.transaction]
        self._judge_operations(standings, rows, moved, names, since)
        judge_steps(new, moved, names, since.balances, book.balances, findings)
        await judge_balances(database, book, names, findings)
        await self._judge_number()
        await self._judge_trail(standings, since)
        await judge_events(database, standings, since.event, findings)
        await self._interface.judge(standings, since.transaction, book, findings)

    async def prove(self) -> None:
        """What `tapgate verify` proves, over everything."""
        async with self._database.connection() as connection:
            proof = await verify(connection)
        for finding in proof.findings:
            if finding.broken:
                examples = "; ".join(finding.examples)
                self._findings.add("books", finding.claim, f"{finding.broken} broken: {examples}")
        audit = await chain.verify(self._database)
        if not audit.valid:
            self._findings.add("audit", "the chain", f"broken at {audit.first_broken}")

    async def _rows(self, standings: Sequence[Standing], since: Mark) -> list[asyncpg.Record]:
        """The transactions since then, and those before that were refunded since."""
        refunded = {ids.decode(ids.TRANSACTION, one.original) for one in standings if one.original}
        rows: list[asyncpg.Record] = await self._database.fetch(
            """SELECT id, type, status, amount, fee_amount, refunded_amount, from_account,
                      to_account, from_balance, to_balance, held, original_id, failure_code,
                      coalesce(request_id, partner_reference) AS name
               FROM transactions WHERE id > $1 OR id = ANY ($2)""",
            since.transaction,
            list(refunded),
        )
        return rows

    def _judge_operations(
        self,
        standings: Sequence[Standing],
        rows: Sequence[asyncpg.Record],
        moved: Moved,
        names: Mapping[int, str],
        since: Mark,
    ) -> None:
        found: dict[str, list[asyncpg.Record]] = defaultdict(list)
        for row in rows:
            found[str(row["name"])].append(row)
        for standing in standings:
            if standing.told is not None:
                there = found.pop(standing.operation.name, [])
                self._judge_operation(standing, there, moved, names)
        for name, several in found.items():
            earlier = self._book.standings.get(name)
            for row in several:
                if earlier is None or row["id"] > since.transaction:
                    self._findings.add("unasked", name, f"nobody asked for {_shown(row)}")
                else:  # a payment of before, refunded now
                    self._judge_row(earlier, row, names)
        for transaction in moved.keys() - {row["id"] for row in rows}:
            about = ids.encode(ids.TRANSACTION, transaction)
            self._findings.add("unasked", about, "has entries, and is no transaction")

    def _judge_operation(
        self,
        standing: Standing,
        rows: Sequence[asyncpg.Record],
        moved: Moved,
        names: Mapping[int, str],
    ) -> None:
        told, name = standing.told, standing.operation.name
        assert told is not None
        if told.recorded and not rows:
            self._findings.add("lost", name, f"acknowledged {told}, there is nothing")
        elif len(rows) > told.recorded:
            there = ", ".join(map(_shown, rows))
            self._findings.add("doubled", name, f"acknowledged {told}, there is {there}")
        for row in rows[: told.recorded]:
            self._judge_row(standing, row, names)
            expected, entries = self._book.effect(standing), moved.get(row["id"], {})
            if expected != entries:
                what = f"acknowledged {told}, which moves {expected}; its entries move {entries}"
                self._findings.add("wrong figures", name, what)

    def _judge_row(self, standing: Standing, row: asyncpg.Record, names: Mapping[int, str]) -> None:
        expected = expected_record(self._book, standing) | expected_sides(standing)
        there = _told_by(row, names)
        if wrong := differences(expected, there):
            what = f"acknowledged {standing.told}, in the tables {wrong}"
            self._findings.add("wrong figures", standing.operation.name, what)

    async def _judge_number(self) -> None:
        expected = settling.TRANSACTIONS + self._book.transactions
        there = await self._database.fetchval("SELECT count(*) FROM transactions")
        if there != expected:
            self._findings.add("balance", "transactions", f"there are {there}, not {expected}")

    async def _judge_trail(self, standings: Iterable[Standing], since: Mark) -> None:
        """Each refund is in the audit log once, with what was refunded before and after it."""
        expected: Counter[tuple[str, int, int]] = Counter()
        for standing in standings:
            told = standing.told
            if standing.operation.kind == "refund" and told is not None and told.done:
                paid = self._book.standings[standing.operation.of].operation.amount
                assert paid is not None
                after = paid - told.figures["refundable"]
                expected[standing.original, after - told.figures["amount"], after] += 1
        rows = await self._database.fetch(
            """SELECT resource_id, changes -> 'refunded_amount' ->> 0 AS before,
                      changes -> 'refunded_amount' ->> 1 AS after
               FROM audit_entries WHERE event = 'transaction.refunded' AND sequence > $1""",
            since.audit,
        )
        there = Counter(
            (row["resource_id"], minor(row["before"]), minor(row["after"])) for row in rows
        )
        for entry in (expected - there).elements():
            self._findings.add("audit", entry[0], f"its refund {entry[1:]} is not recorded")
        for entry in (there - expected).elements():
            self._findings.add("audit", entry[0], f"a refund {entry[1:]} too many is recorded")


def _told_by(row: asyncpg.Record, names: Mapping[int, str]) -> Expected:
    """A row in the words of the clients."""
    original = row["original_id"]
    return dict(row) | {
        "id": ids.encode(ids.TRANSACTION, row["id"]),
        "original_transaction_id": original and ids.encode(ids.TRANSACTION, original),
        "from_account": names.get(row["from_account"]),
        "to_account": names.get(row["to_account"]),
    }


def _shown(row: asyncpg.Record) -> str:
    return f"{ids.encode(ids.TRANSACTION, row['id'])} {row['type']} {row['status']} {row['amount']}"
