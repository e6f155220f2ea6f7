"""Reconciliation of balances and transactions as reported by the HTTP API."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from tapgate import ids
from torture import plan
from torture.client_connection import ClientConnection, ConnectFailedError, NoResponseError
from torture.client_ledger import (
    ClientLedger,
    OperationState,
    commission_account,
    parse_minor_units,
)
from torture.expected_records import build_expected_record, describe_differences
from torture.findings import Findings
from torture.participants import Participants

_READ_TIMEOUT_SECONDS: Final = 30.0
_AMOUNT_FIELDS: Final = ("amount", "fee_amount", "refunded_amount")


class ApiView:
    def __init__(self, port: int, participants: Participants) -> None:
        self._participants = participants
        self._connection = ClientConnection(port)

    def close(self) -> None:
        self._connection.close()

    async def reconcile(
        self,
        standings: Sequence[OperationState],
        since: int,
        book: ClientLedger,
        findings: Findings,
    ) -> None:
        """Reconcile the operations since a transaction, and all balances."""
        records: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for record in await self._list_transactions(since):
            records[record["request_id"] or record["id"]].append(record)
        for state in standings:
            acknowledgment = state.acknowledgment
            if acknowledgment is None:
                continue
            name = state.operation.idempotency_key
            there = records.pop(name, None) or records.pop(acknowledgment.transaction_id, [])
            if len(there) != acknowledgment.is_recorded:
                kind = "lost" if acknowledgment.is_recorded and not there else "duplicated"
                what = f"acknowledged {acknowledgment}, but the API lists it {len(there)} times"
                findings.add(kind, name, what)
            for record in there[: acknowledgment.is_recorded]:
                wrong = describe_differences(build_expected_record(book, state), record)
                if wrong:
                    what = f"acknowledged {acknowledgment}, but over the API {wrong}"
                    findings.add("wrong values", name, what)
        for name in records:
            findings.add("unexpected", name, "the API lists it, but no client requested it")
        await self._reconcile_balances(book, findings)

    async def _reconcile_balances(self, book: ClientLedger, findings: Findings) -> None:
        for name, public_id in self._participants.ids.items():
            there = await self._get(f"/api/v1/balance/{public_id}")
            _compare_balance(findings, book, name, there["balance"])
            if parse_minor_units(there["held"]):
                findings.add("balance", name, f"holds {there['held']} without a reason")
        for name in plan.AGENTS:
            there = await self._get(f"/api/v1/agents/{self._participants.ids[name]}/balance")
            _compare_balance(findings, book, name, there["float_balance"])
            _compare_balance(findings, book, commission_account(name), there["commission_balance"])

    async def _list_transactions(self, since: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor = ""
        while True:
            page = await self._get(f"/api/v1/transactions?limit=100{cursor}")
            for record in page["data"]:
                if (ids.decode(ids.TRANSACTION, record["id"]) or 0) <= since:
                    return found
                found.append(
                    record | {name: parse_minor_units(record[name]) for name in _AMOUNT_FIELDS}
                )
            if not page["has_more"]:
                return found
            cursor = f"&cursor={page['next_cursor']}"

    async def _get(self, path: str) -> dict[str, Any]:
        deadline = time.monotonic() + _READ_TIMEOUT_SECONDS
        while True:
            try:
                response = await self._connection.send(self._participants.build_read_request(path))
            except (ConnectFailedError, NoResponseError):
                if time.monotonic() > deadline:
                    raise
            else:
                if response.status == 200:
                    return response.body
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{path}: {response.status} {response.body}")
            await asyncio.sleep(0.05)


def _compare_balance(findings: Findings, book: ClientLedger, name: str, text: str) -> None:
    if parse_minor_units(text) != book.balances[name]:
        what = f"has {text} over the API, expected {book.balances[name]}"
        findings.add("balance", name, what)
