"""Reconciles balances and transactions as reported by the HTTP API."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from tapgate_client import ids
from torture import plan
from torture.client_connection import ClientConnection, ConnectFailedError, NoResponseError
from torture.client_ledger import (
    ClientLedger,
    OperationState,
    get_commission_account,
    parse_minor_units,
)
from torture.expected_records import build_expected_record, describe_differences
from torture.findings import Findings
from torture.participants import Participants

_READ_TIMEOUT_SECONDS: Final = 30.0
_AMOUNT_FIELDS: Final = ("amount", "fee_amount", "refunded_amount", "reversed_amount")


class ApiView:
    def __init__(self, port: int, participants: Participants) -> None:
        self._participants = participants
        self._connection = ClientConnection(port)

    def close(self) -> None:
        self._connection.close()

    async def reconcile(
        self,
        operations: Sequence[OperationState],
        since: int,
        client_ledger: ClientLedger,
        findings: Findings,
    ) -> None:
        """Reconcile the operations since a transaction, and all balances."""
        records: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for record in await self._list_transactions(since):
            records[record["request_id"] or record["id"]].append(record)
        for state in operations:
            acknowledgment = state.acknowledgment
            if acknowledgment is None:
                continue
            name = state.recorded_key
            listed = records.pop(name, None) or records.pop(acknowledgment.transaction_id, [])
            if len(listed) != acknowledgment.is_recorded:
                kind = "lost" if acknowledgment.is_recorded and not listed else "duplicated"
                detail = f"acknowledged {acknowledgment}, but the API lists it {len(listed)} times"
                findings.add(kind, name, detail)
            for record in listed[: acknowledgment.is_recorded]:
                differences = describe_differences(
                    build_expected_record(client_ledger, state), record
                )
                if differences:
                    detail = f"acknowledged {acknowledgment}, but over the API {differences}"
                    findings.add("wrong values", name, detail)
        for name in records:
            findings.add("unexpected", name, "the API lists it, but no client requested it")
        await self._reconcile_balances(client_ledger, findings)

    async def _reconcile_balances(self, client_ledger: ClientLedger, findings: Findings) -> None:
        for name, public_id in self._participants.ids.items():
            record = await self._get(f"/api/v1/balance/{public_id}")
            _compare_balance(findings, client_ledger, name, record["balance"])
            if parse_minor_units(record["held"]):
                findings.add("balance", name, f"holds {record['held']} without a reason")
        for name in plan.AGENTS:
            record = await self._get(f"/api/v1/agents/{self._participants.ids[name]}/balance")
            _compare_balance(findings, client_ledger, name, record["float_balance"])
            _compare_balance(
                findings, client_ledger, get_commission_account(name), record["commission_balance"]
            )

    async def _list_transactions(self, since: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor = ""
        while True:
            page = await self._get(f"/api/v1/transactions?limit=100{cursor}")
            for record in page["data"]:
                if (ids.decode(ids.TRANSACTION, record["id"]) or 0) <= since:
                    return found
                amounts = {name: parse_minor_units(record[name]) for name in _AMOUNT_FIELDS}
                given_back = amounts["refunded_amount"] + amounts["reversed_amount"]
                found.append(record | amounts | {"given_back": given_back})
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


def _compare_balance(findings: Findings, client_ledger: ClientLedger, name: str, text: str) -> None:
    if parse_minor_units(text) != client_ledger.balances[name]:
        detail = f"has {text} over the API, expected {client_ledger.balances[name]}"
        findings.add("balance", name, detail)
