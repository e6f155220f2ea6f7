"""Compares what the clients know with what is there: in the tables, row by row, and over the
interface. Whatever one of them has and the other has not is a finding."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import asyncpg
import msgspec

from tapgate import ids
from tapgate.audit import chain
from tapgate.ledger.verify import verify
from tapgate.store.database import Database
from torture import plan, settling
from torture.book import CASH, EXPENSE, FEES, Book, Standing, commission
from torture.findings import Findings
from torture.plan import PAYMENTS
from torture.town import Town

_TYPES: Final = {
    "pos": "pos_payment",
    "pos_pin": "pos_payment",
    "in_app": "online_payment",
    "p2p": "transfer_p2p",
    "cash_in": "agent_cashin",
    "cash_out": "agent_cashout",
    "top_up": "partner_fund",
    "refund": "refund",
}
#: By the prefix of its holder's identifier, the kind of an account.
_KINDS: Final = {"sub_": "wallet", "agt_": "float", "prc_": "settlement", "ptn_": "clearing"}


class Mark(msgspec.Struct, frozen=True):
    """Up to where everything has been judged, and what everybody had then."""

    transaction: int
    audit: int
    balances: dict[str, int]


class Judge:
    def __init__(self, database: Database, town: Town, book: Book, findings: Findings) -> None:
        self._database = database
        self._town = town
        self._book = book
        self._findings = findings
        self._names: dict[int, str] = {}  # of accounts

    async def mark(self) -> Mark:
        transaction = await self._database.fetchval("SELECT max(id) FROM transactions")
        audit = await self._database.fetchval("SELECT max(sequence) FROM audit_entries")
        return Mark(transaction or 0, audit or 0, dict(self._book.balances))

    async def judge(self, standings: Sequence[Standing], since: Mark) -> None:
        """Everything that was asked for since then."""
        await self._learn_accounts()
        rows = await self._rows(standings, since)
        moved = await self._moved(since)
        self._judge_operations(standings, rows, moved, since)
        self._judge_steps(rows, moved, since)
        await self._judge_number()
        await self._judge_balances()
        await self._judge_trail(standings, since)

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

    async def _learn_accounts(self) -> None:
        if self._names:
            return
        holders = {
            (_KINDS[public[:4]], ids.read(public[:4], public)): name
            for name, public in self._town.ids.items()
        }
        for agent in plan.AGENTS:
            public = self._town.ids[agent]
            holders["commission", ids.read(public[:4], public)] = commission(agent)
        for kind in (FEES, EXPENSE, CASH):
            holders[kind, None] = kind
        for row in await self._database.fetch("SELECT id, kind, owner_id FROM accounts"):
            name = holders.pop((row["kind"], row["owner_id"]), None)
            if name is None:
                self._findings.add("unasked", f"account {row['id']}", "nobody opened it")
            else:
                self._names[row["id"]] = name
        for name in holders.values():
            self._findings.add("lost", name, "has no account")

    async def _rows(self, standings: Sequence[Standing], since: Mark) -> list[asyncpg.Record]:
        """The transactions since then, and those before that were refunded since."""
        refunded = {ids.read(ids.TRANSACTION, one.original) for one in standings if one.original}
        rows: list[asyncpg.Record] = await self._database.fetch(
            """SELECT id, type, status, amount, fee_amount, refunded_amount, from_account,
                      to_account, from_balance, to_balance, held, original_id, failure_code,
                      coalesce(request_id, partner_reference) AS name
               FROM transactions WHERE id > $1 OR id = ANY ($2)""",
            since.transaction,
            list(refunded),
        )
        return rows

    async def _moved(self, since: Mark) -> dict[int, dict[str, int]]:
        """By the entries: how much each transaction changed whose balance."""
        rows = await self._database.fetch(
            """SELECT transaction_id, account, sum(amount)::bigint AS amount FROM (
                   SELECT transaction_id, debit_account AS account, -amount AS amount FROM entries
                   WHERE transaction_id > $1
                   UNION ALL SELECT transaction_id, credit_account, amount FROM entries
                   WHERE transaction_id > $1) AS sides
               GROUP BY transaction_id, account""",
            since.transaction,
        )
        moved: dict[int, dict[str, int]] = defaultdict(dict)
        for row in rows:
            if row["amount"]:
                name = self._names.get(row["account"], f"account {row['account']}")
                moved[row["transaction_id"]][name] = row["amount"]
        return moved

    def _judge_operations(
        self,
        standings: Sequence[Standing],
        rows: Iterable[asyncpg.Record],
        moved: Mapping[int, dict[str, int]],
        since: Mark,
    ) -> None:
        found: dict[str, list[asyncpg.Record]] = defaultdict(list)
        for row in rows:
            found[row["name"]].append(row)
        asked = {standing.operation.name: standing for standing in standings}
        for name, standing in asked.items():
            self._judge_operation(standing, found.pop(name, []), moved)
        known = {row["id"] for several in found.values() for row in several}
        for name, several in found.items():
            for row in several:
                self._judge_other(name, row, since)
        known |= {row["id"] for row in rows}
        for transaction in moved.keys() - known:
            self._findings.add("unasked", ids.show(ids.TRANSACTION, transaction), "entries alone")

    def _judge_other(self, name: str | None, row: asyncpg.Record, since: Mark) -> None:
        """What is there and was not asked for since: a payment of before that was refunded now."""
        earlier = self._book.standings.get(name or "")
        if earlier is None or row["id"] > since.transaction:
            self._findings.add("unasked", str(name), f"nobody asked for {_shown(row)}")
        else:
            self._judge_row(earlier, row)

    def _judge_operation(
        self,
        standing: Standing,
        rows: Sequence[asyncpg.Record],
        moved: Mapping[int, dict[str, int]],
    ) -> None:
        told, name = standing.told, standing.operation.name
        if told is None:
            return  # told already
        there = [_shown(row) for row in rows]
        if told.recorded and not rows:
            self._findings.add("lost", name, f"acknowledged {told}, there is nothing")
        elif len(rows) > told.recorded:
            self._findings.add("doubled", name, f"acknowledged {told}, there are {there}")
        for row in rows[:1]:
            self._judge_row(standing, row)
            expected, there_moved = self._book.effect(standing), moved.get(row["id"], {})
            if expected != there_moved:
                self._findings.add(
                    "wrong figures", name, f"{told} moves {expected}, entries move {there_moved}"
                )

    def _judge_row(self, standing: Standing, row: asyncpg.Record) -> None:
        expected = self._expected(standing)
        there = {field: _there(row, field, self._names) for field in expected}
        if there != expected:
            wrong = [field for field in expected if expected[field] != there[field]]
            self._findings.add(
                "wrong figures",
                standing.operation.name,
                f"acknowledged {standing.told}; "
                + ", ".join(f"{one} is {there[one]}, not {expected[one]}" for one in wrong),
            )

    def _expected(self, standing: Standing) -> dict[str, Any]:
        """Of its row, as far as the clients know it."""
        operation, told = standing.operation, standing.told
        assert told is not None
        expected: dict[str, Any] = {"type": _TYPES[operation.kind], "held": 0}
        if not told.done:
            return expected | {"status": "failed", "failure_code": told.code}
        figures = told.figures | self._book.figures(standing)
        expected |= {
            "transaction": told.transaction,
            "amount": figures["amount"],
            "fee_amount": figures.get("fee", 0),
            "from_account": operation.payer,
            "to_account": operation.payee,
            "failure_code": None,
            "status": told.status,
        }
        for figure, column in (("payer_balance", "from_balance"), ("payee_balance", "to_balance")):
            if figure in figures:
                expected[column] = figures[figure]
        if operation.kind == "refund":
            expected["original"] = standing.original
        if operation.kind in PAYMENTS:
            refunded = self._book.refunded[operation.name]
            expected["refunded_amount"] = refunded
            if refunded:
                whole = refunded == figures["amount"]
                expected["status"] = "refunded" if whole else "partially_refunded"
        return expected

    def _judge_steps(
        self,
        rows: Iterable[asyncpg.Record],
        moved: Mapping[int, dict[str, int]],
        since: Mark,
    ) -> None:
        """Every balance that a transaction left behind is what the next one began with: together
        they lead from what somebody had to what they have, and no two saw the same money."""
        befores: dict[str, Counter[int]] = defaultdict(Counter)
        afters: dict[str, Counter[int]] = defaultdict(Counter)
        for row in rows:
            if row["id"] <= since.transaction:
                continue
            for side in ("from", "to"):
                name, after = self._names.get(row[f"{side}_account"]), row[f"{side}_balance"]
                change = moved.get(row["id"], {}).get(name or "")
                if name is not None and after is not None and change is not None:
                    afters[name][after] += 1
                    befores[name][after - change] += 1
        for name in afters:
            begun, ended = since.balances.get(name, 0), self._book.balances[name]
            afters[name][begun] += 1
            befores[name][ended] += 1
            if afters[name] != befores[name]:
                gaps = (afters[name] - befores[name]) + (befores[name] - afters[name])
                self._findings.add("balance", name, f"its steps do not join at {sorted(gaps)[:6]}")

    async def _judge_number(self) -> None:
        expected = settling.TRANSACTIONS + self._book.transactions
        there = await self._database.fetchval("SELECT count(*) FROM transactions")
        if there != expected:
            self._findings.add("balance", "transactions", f"there are {there}, not {expected}")

    async def _judge_balances(self) -> None:
        """Of everybody and of the platform, in the tables; nothing is held, all is worth zero."""
        rows = await self._database.fetch(
            """WITH sums AS (
                   SELECT account_id, sum(amount)::bigint AS amount FROM (
                       SELECT debit_account AS account_id, -amount AS amount FROM entries
                       UNION ALL SELECT credit_account, amount FROM entries) AS sides
                   GROUP BY account_id)
               SELECT id, checked, held, balance, coalesce(amount, 0) AS entries
               FROM accounts LEFT JOIN sums ON account_id = id"""
        )
        total = 0
        for row in rows:
            name = self._names.get(row["id"], f"account {row['id']}")
            balance = row["balance"] if row["checked"] else row["entries"]
            total += balance
            expected = self._book.balances[name]
            if balance != expected or row["entries"] != expected:
                self._findings.add(
                    "balance",
                    name,
                    f"has {balance} (entries {row['entries']}), the clients say {expected}",
                )
            if row["checked"] and balance < 0:
                self._findings.add("balance", name, f"is below zero: {balance}")
            if row["held"]:
                self._findings.add("balance", name, f"{row['held']} are held, for nothing")
        if total:
            self._findings.add("balance", "all accounts", f"sum up to {total}")

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
            (row["resource_id"], _minor(row["before"]), _minor(row["after"])) for row in rows
        )
        for entry in (expected - there).elements():
            self._findings.add("audit", entry[0], f"its refund {entry[1:]} is not recorded")
        for entry in (there - expected).elements():
            self._findings.add("audit", entry[0], f"a refund {entry[1:]} too many is recorded")


def _minor(shown: str) -> int:
    return int(shown.replace(".", ""))


def _there(row: asyncpg.Record, field: str, names: Mapping[int, str]) -> Any:
    if field == "transaction":
        return ids.show(ids.TRANSACTION, row["id"])
    if field == "original":
        return ids.show(ids.TRANSACTION, row["original_id"] or 0)
    if field in ("from_account", "to_account"):
        return names.get(row[field])
    return row[field]


def _shown(row: asyncpg.Record) -> str:
    return f"{ids.show(ids.TRANSACTION, row['id'])} {row['type']} {row['status']} {row['amount']}"
