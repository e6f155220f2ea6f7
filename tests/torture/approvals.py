"""Agent fundings that need an approval: each is executed once or not at all."""

import contextlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import asyncpg

from tapgate.runtime.store.database import Database
from tapgate_client import ids
from torture.client_connection import Response
from torture.client_ledger import OperationState
from torture.findings import Findings
from torture.participants import Participants, StaffRequest, build_funding

#: Steps after the maker's request.
_APPROVE, _READ = "approve", "read"


def build_approval_step(
    participants: Participants, state: OperationState, step: str
) -> StaffRequest:
    """Build the maker's request, its approval or, once approved, a request for its outcome."""
    if not step:
        return build_funding(participants, state.operation)
    method, suffix = ("GET", "") if step == _READ else ("POST", "/approve")
    path = f"/api/v1/approvals/{state.resource_id}{suffix}"
    return StaffRequest(method, path, by_approver=True)


def follow_approval(
    state: OperationState, response: Response, step: str, findings: Findings
) -> Response | None:
    """Return an executed request's receipt, or None if another request must follow.

    The maker's request returns the approval. The next one approves it, and later ones read it
    until it is executed.
    """
    if step and response.code == "APPROVAL_NOT_PENDING":
        state.step = _READ  # approved by a duplicate, or by a request without a response
        return None
    if response.status not in (200, 202):
        return response
    approval = response.body.get("approval", response.body)
    state.resource_id = approval["id"]
    state.step = state.step or _APPROVE
    status = approval["status"]
    if status == "executed":
        receipt = {**approval["result"], "amount": approval["amount"]}
        return Response(status=200, body=receipt, replayed=False)
    if status == "approved":
        state.step = _READ
    elif status != "pending":
        findings.add("rejection", state.operation.idempotency_key, f"the approval is {status}")
    return None


async def shorten_leases(database_url: str) -> None:
    """Let workers continue approved requests and batches of killed processes now.

    If a fault interrupts this, they continue when the lease expires.
    """
    with contextlib.suppress(
        OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError
    ):
        connection = await asyncpg.connect(database_url, timeout=2)
        try:
            for statement in _SHORTEN_LEASES:
                await connection.execute(statement)
        finally:
            connection.terminate()


_SHORTEN_LEASES: Final = (
    "UPDATE approvals SET next_attempt_at = now() WHERE status = 'approved'",
    "UPDATE batches SET leased_until = NULL WHERE status = 'running'",
)


async def reconcile_approvals(
    database: Database, operations: Sequence[OperationState], findings: Findings
) -> None:
    """Require one transaction with the same amount per executed approval, and none for others."""
    stored = {
        ids.encode(ids.APPROVAL, row["id"]): row
        for row in await database.fetch("SELECT id, status, amount FROM approvals")
    }
    paid: dict[str, list[int]] = defaultdict(list)
    for row in await database.fetch(
        """SELECT context ->> 'approval_id' AS approval_id, amount FROM transactions
           WHERE context ? 'approval_id'"""
    ):
        paid[row["approval_id"]].append(row["amount"])
    for approval_id, row in stored.items():
        expected = [row["amount"]] if row["status"] == "executed" else []
        if paid[approval_id] != expected:
            detail = f"{row['status']}, paid {paid[approval_id]}, expected {expected}"
            findings.add("approvals", approval_id, detail)
    for state in operations:
        if state.operation.kind == "fund" and state.resource_id not in ("", *stored):
            findings.add("lost", state.resource_id, "is not stored")


async def count_executed(database: Database) -> tuple[int, int]:
    """Return the number of executed approvals, and of those that a worker executed after a kill."""
    row = await database.fetchrow(
        """SELECT count(*) AS executed, count(*) FILTER (WHERE attempts > 0) AS resumed
           FROM approvals WHERE status = 'executed'"""
    )
    assert row is not None
    return row["executed"], row["resumed"]
