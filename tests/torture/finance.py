"""Payout runs, batch lines and closed days, from what the responses acknowledged."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tapgate.runtime.store.database import Database
from tapgate_client import ids
from torture.client_ledger import (
    Acknowledgment,
    ClientLedger,
    OperationState,
    parse_minor_units,
)
from torture.findings import Findings
from torture.plan import Operation
from torture.staff_plan import NOBODY

_PAYOUT_STATUSES: Final = {
    "payout": "requested",
    "payout_cancel": "cancelled",
    "payout_paid": "paid",
    "payout_returned": "returned",
}


def list_paid_lines(state: OperationState, findings: Findings) -> Iterator[OperationState]:
    """Return each line of a completed batch as an operation of its own."""
    operation, listed = state.operation, state.batch_lines
    if len(listed) != len(operation.lines):
        detail = f"{len(operation.lines)} lines were sent, {len(listed)} are listed"
        findings.add("lost", operation.idempotency_key, detail)
    for line, (receiver, amount) in zip(listed, operation.lines, strict=False):
        key = f"{state.resource_id}:{line['row']}"
        expected = "invalid" if receiver == NOBODY else "paid"
        if (line["status"], parse_minor_units(line["amount"])) != (expected, amount):
            findings.add("wrong values", key, f"is {line}, expected {expected} {amount}")
        if line["status"] == "paid":
            paid = Operation(
                idempotency_key=key,
                kind="batch_line",
                payer=operation.payer,
                payee=receiver,
                amount=amount,
            )
            acknowledgment = Acknowledgment(
                "", line["transaction_id"], "completed", {"amount": amount}
            )
            yield OperationState(paid, acknowledgment)


async def reconcile_payouts(
    database: Database, client_ledger: ClientLedger, findings: Findings
) -> None:
    """Require every payout once, in its last acknowledged status, and runs as acknowledged."""
    expected = {}
    for state in client_ledger.operations.values():
        status = _PAYOUT_STATUSES.get(state.operation.kind)
        if status and state.acknowledgment is not None and state.acknowledgment.succeeded:
            expected[state.resource_id or state.target_id] = status
    stored = {}
    for row in await database.fetch("SELECT id, status, run_id FROM payouts"):
        payout_id = ids.encode(ids.PAYOUT, row["id"])
        is_waiting = expected.get(payout_id) == "requested" and row["status"] == "submitted"
        stored[payout_id] = "requested" if is_waiting else row["status"]
        if (row["run_id"] is None) != (row["status"] in ("requested", "cancelled")):
            findings.add("wrong values", payout_id, f"{row['status']} with run {row['run_id']}")
    _report_differences(expected, stored, findings)
    runs = {
        state.originals[""]["id"]: (
            state.originals[""]["payouts"],
            parse_minor_units(state.originals[""]["total"]),
        )
        for state in client_ledger.operations.values()
        if state.operation.kind == "payout_paid" and "" in state.originals
    }
    rows = await database.fetch(
        """SELECT r.id, count(p.id) AS payouts, coalesce(sum(p.amount), 0)::bigint AS total
           FROM payout_runs r LEFT JOIN payouts p ON p.run_id = r.id GROUP BY r.id"""
    )
    stored_runs = {
        ids.encode(ids.PAYOUT_RUN, row["id"]): (row["payouts"], row["total"]) for row in rows
    }
    _report_differences(runs, stored_runs, findings)


def _report_differences(
    expected: Mapping[str, object], stored: Mapping[str, object], findings: Findings
) -> None:
    for name in expected.keys() | stored.keys():
        if name not in stored:
            findings.add("lost", name, f"acknowledged {expected[name]}, but not stored")
        elif name not in expected:
            findings.add("unexpected", name, f"stored {stored[name]}, but not acknowledged")
        elif expected[name] != stored[name]:
            detail = f"stored {stored[name]}, acknowledged {expected[name]}"
            findings.add("wrong values", name, detail)


async def reconcile_days(
    database: Database, operations: Sequence[OperationState], findings: Findings
) -> None:
    """Require days as acknowledged, and every transaction of a closed day in exactly one."""
    rows = await database.fetch(
        """SELECT day, ends_at, transactions, entries, encode(merkle_root, 'hex') AS merkle_root
           FROM closed_days ORDER BY day"""
    )
    stored = {row["day"].isoformat(): row for row in rows}
    for state in operations:
        if state.operation.kind != "day_close" or state.acknowledgment is None:
            continue
        record = state.originals[""]
        row = stored.get(record["date"])
        if row is None:
            findings.add("lost", record["date"], "is acknowledged as closed, but is open")
            continue
        for name in ("transactions", "entries", "merkle_root"):
            if row[name] != record[name]:
                detail = f"{name} is {row[name]}, acknowledged {record[name]}"
                findings.add("wrong values", record["date"], detail)
    if not rows:
        return
    chunks = await database.fetch("SELECT transaction_ids FROM closed_day_chunks")
    closed = Counter(number for (numbers,) in chunks for number in numbers)
    posted = await database.fetch(
        """SELECT id FROM transactions t WHERE completed_at < $1
           AND EXISTS (SELECT FROM entries WHERE transaction_id = t.id)""",
        rows[-1]["ends_at"],
    )
    expected = Counter(row["id"] for row in posted)
    for number in expected - closed:
        findings.add("lost", ids.encode(ids.TRANSACTION, number), "is in no closed day")
    for number in closed - expected:
        subject = ids.encode(ids.TRANSACTION, number)
        if closed[number] > 1:
            findings.add("duplicated", subject, f"is in {closed[number]} closed days")
        else:
            findings.add("lost", subject, "is in a closed day, but not posted on it")
