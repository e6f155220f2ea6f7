"""What the gateway itself says of balances and transactions, over HTTP."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from tapgate import ids
from torture import plan
from torture.book import Book, Standing, commission, minor
from torture.expectation import differences, expected_record
from torture.findings import Findings
from torture.town import Town
from torture.wire import Line, NotSentError, UnansweredError

_PATIENCE_SECONDS: Final = 30.0
_AMOUNTS: Final = ("amount", "fee_amount", "refunded_amount")


class Interface:
    def __init__(self, port: int, town: Town) -> None:
        self._town = town
        self._line = Line(port)

    def hang_up(self) -> None:
        self._line.close()

    async def judge(
        self, standings: Sequence[Standing], since: int, book: Book, findings: Findings
    ) -> None:
        """What was asked for since a transaction, and what everybody has."""
        records: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for record in await self._transactions(since):
            records[record["request_id"] or record["id"]].append(record)
        for standing in standings:
            told = standing.told
            if told is None:
                continue
            name = standing.operation.name
            there = records.pop(name, None) or records.pop(told.transaction, [])
            if len(there) != told.recorded:
                kind = "lost" if told.recorded and not there else "doubled"
                what = f"acknowledged {told}, the interface lists it {len(there)} times"
                findings.add(kind, name, what)
            for record in there[: told.recorded]:
                wrong = differences(expected_record(book, standing), record)
                if wrong:
                    what = f"acknowledged {told}, over the interface {wrong}"
                    findings.add("wrong figures", name, what)
        for name in records:
            findings.add("unasked", name, "the interface lists it, and nobody asked for it")
        await self._judge_balances(book, findings)

    async def _judge_balances(self, book: Book, findings: Findings) -> None:
        for name, public_id in self._town.ids.items():
            there = await self._get(f"/api/v1/balance/{public_id}")
            _compare(findings, book, name, there["balance"])
            if minor(there["held"]):
                findings.add("balance", name, f"{there['held']} are held, for nothing")
        for name in plan.AGENTS:
            there = await self._get(f"/api/v1/agents/{self._town.ids[name]}/balance")
            _compare(findings, book, name, there["float_balance"])
            _compare(findings, book, commission(name), there["commission_balance"])

    async def _transactions(self, since: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor = ""
        while True:
            page = await self._get(f"/api/v1/transactions?limit=100{cursor}")
            for record in page["data"]:
                if (ids.decode(ids.TRANSACTION, record["id"]) or 0) <= since:
                    return found
                found.append(record | {name: minor(record[name]) for name in _AMOUNTS})
            if not page["has_more"]:
                return found
            cursor = f"&cursor={page['next_cursor']}"

    async def _get(self, path: str) -> dict[str, Any]:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                answer = await self._line.ask(self._town.read(path))
            except (NotSentError, UnansweredError):
                if time.monotonic() > deadline:
                    raise
            else:
                if answer.status == 200:
                    return answer.body
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{path}: {answer.status} {answer.body}")
            await asyncio.sleep(0.05)


def _compare(findings: Findings, book: Book, name: str, shown: str) -> None:
    if minor(shown) != book.balances[name]:
        what = f"has {shown} over the interface, the clients say {book.balances[name]}"
        findings.add("balance", name, what)
