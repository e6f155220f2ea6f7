"""Reconciles the client ledger with the tables, row by row, and with the API.

Every difference is a finding.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import asyncpg
import msgspec

from tapgate.events.audit import chain
from tapgate.ledger.verification.closed_days import list_broken_days
from tapgate.ledger.verification.verify import verify
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from torture import provisioning
from torture.accounts import (
    BalanceChanges,
    load_balance_changes,
    map_account_names,
    reconcile_balances,
    reconcile_running_balances,
)
from torture.api_view import ApiView
from torture.approvals import reconcile_approvals
from torture.client_ledger import ClientLedger, OperationState, parse_minor_units
from torture.events import reconcile_events
from torture.expected_records import (
    Expected,
    build_expected_accounts,
    build_expected_record,
    describe_differences,
)
from torture.finance import reconcile_days, reconcile_payouts
from torture.findings import Findings
from torture.participants import Participants
from torture.tap_proofs import reconcile_taps


class Checkpoint(msgspec.Struct, frozen=True):
    """Position up to which everything is reconciled, and the balances at that point."""

    last_transaction_id: int
    last_audit_sequence: int
    last_event_id: int
    balances: dict[str, int]


async def create_checkpoint(database: Database, client_ledger: ClientLedger) -> Checkpoint:
    transaction = await database.fetchval("SELECT coalesce(max(id), 0) FROM transactions")
    audit = await database.fetchval("SELECT coalesce(max(sequence), 0) FROM audit_entries")
    event = await database.fetchval("SELECT coalesce(max(id), 0) FROM events")
    return Checkpoint(transaction, audit, event, dict(client_ledger.balances))


class Reconciler:
    def __init__(
        self,
        database: Database,
        api_view: ApiView,
        participants: Participants,
        client_ledger: ClientLedger,
        findings: Findings,
    ) -> None:
        self._database = database
        self._api_view = api_view
        self._participants = participants
        self._client_ledger = client_ledger
        self._findings = findings

    async def reconcile(self, operations: Sequence[OperationState], since: Checkpoint) -> None:
        """Reconcile all operations since the checkpoint."""
        database, client_ledger, findings = self._database, self._client_ledger, self._findings
        names = await map_account_names(database, self._participants, findings)
        changes = await load_balance_changes(database, since.last_transaction_id, names)
        rows = await self._load_rows(operations, since)
        new = [row for row in rows if row["id"] > since.last_transaction_id]
        self._reconcile_operations(operations, rows, changes, names, since)
        reconcile_running_balances(
            new, changes, names, since.balances, client_ledger.balances, findings
        )
        await reconcile_balances(database, client_ledger, names, findings)
        await self._reconcile_count()
        await reconcile_taps(database, self._participants, findings)
        await reconcile_approvals(database, operations, findings)
        await reconcile_payouts(database, client_ledger, findings)
        await reconcile_days(database, operations, findings)
        await self._reconcile_audit_log(operations, since)
        await reconcile_events(database, operations, since.last_event_id, findings)
        await self._api_view.reconcile(
            operations, since.last_transaction_id, client_ledger, findings
        )

    async def verify_books(self) -> None:
        """Run the checks of `tapgate verify` and verify the audit chain."""
        async with self._database.connection() as connection:
            verification = await verify(connection)
            broken_days = await list_broken_days(connection, 0)
        for finding in verification.findings:
            if finding.broken:
                examples = "; ".join(finding.examples)
                self._findings.add(
                    "ledger", finding.invariant, f"{finding.broken} exceptions: {examples}"
                )
        for day in broken_days:
            self._findings.add("ledger", "closed day", day)
        audit = await chain.verify(self._database)
        if not audit.valid:
            self._findings.add("audit", "hash chain", f"broken at {audit.first_broken}")

    async def _load_rows(
        self, operations: Sequence[OperationState], since: Checkpoint
    ) -> list[asyncpg.Record]:
        """Load the transactions since the checkpoint, and earlier ones refunded since."""
        refunded = {
            ids.decode(ids.TRANSACTION, state.original_transaction_id)
            for state in operations
            if state.original_transaction_id
        }
        rows: list[asyncpg.Record] = await self._database.fetch(
            """SELECT id, type, status, amount, fee_amount, refunded_amount AS given_back,
                      from_account, to_account, from_balance, to_balance, held, original_id,
                      failure_code,
                      coalesce(request_id, partner_reference) AS name
               FROM transactions WHERE id > $1 OR id = ANY ($2)""",
            since.last_transaction_id,
            list(refunded),
        )
        return rows

    def _reconcile_operations(
        self,
        operations: Sequence[OperationState],
        rows: Sequence[asyncpg.Record],
        changes: BalanceChanges,
        names: Mapping[int, str],
        since: Checkpoint,
    ) -> None:
        found: dict[str, list[asyncpg.Record]] = defaultdict(list)
        for row in rows:
            found[row["name"] or ids.encode(ids.TRANSACTION, row["id"])].append(row)
        for state in operations:
            if state.acknowledgment is not None:
                matching = found.pop(state.recorded_key, [])
                self._reconcile_operation(state, matching, changes, names)
        for name, unmatched in found.items():
            earlier = self._client_ledger.operations.get(name)
            for row in unmatched:
                if earlier is None or row["id"] > since.last_transaction_id:
                    self._findings.add("unexpected", name, f"not requested: {_format_row(row)}")
                else:  # a payment before the checkpoint that is refunded now
                    self._reconcile_row(earlier, row, names)
        for transaction in changes.keys() - {row["id"] for row in rows}:
            subject = ids.encode(ids.TRANSACTION, transaction)
            self._findings.add("unexpected", subject, "has entries but no transaction")

    def _reconcile_operation(
        self,
        state: OperationState,
        rows: Sequence[asyncpg.Record],
        changes: BalanceChanges,
        names: Mapping[int, str],
    ) -> None:
        acknowledgment, name = state.acknowledgment, state.operation.idempotency_key
        assert acknowledgment is not None
        if acknowledgment.is_recorded and not rows:
            self._findings.add("lost", name, f"acknowledged {acknowledgment}, but not stored")
        elif len(rows) > acknowledgment.is_recorded:
            stored = ", ".join(map(_format_row, rows))
            self._findings.add(
                "duplicated", name, f"acknowledged {acknowledgment}, but stored {stored}"
            )
        for row in rows[: acknowledgment.is_recorded]:
            self._reconcile_row(state, row, names)
            self._reconcile_prediction(state)
            expected, entries = (
                self._client_ledger.calculate_balance_changes(state),
                changes.get(row["id"], {}),
            )
            if expected != entries:
                detail = (
                    f"acknowledged {acknowledgment}, which moves {expected},"
                    f" but its entries move {entries}"
                )
                self._findings.add("wrong values", name, detail)

    def _reconcile_row(
        self, state: OperationState, row: asyncpg.Record, names: Mapping[int, str]
    ) -> None:
        expected = build_expected_record(self._client_ledger, state) | build_expected_accounts(
            state
        )
        actual = _to_expected(row, names)
        state.stored_id = actual["id"]
        for side in ("from", "to"):
            column = f"{side}_balance"
            if column in expected and actual[column] is not None:
                account = expected[f"{side}_account"]
                held = actual[column] - expected[column]
                if held in self._client_ledger.list_possible_holds(state, account):
                    expected[column] = actual[column]
        if differences := describe_differences(expected, actual):
            detail = f"acknowledged {state.acknowledgment}, but in the tables {differences}"
            self._findings.add("wrong values", state.operation.idempotency_key, detail)

    def _reconcile_prediction(self, state: OperationState) -> None:
        """Require the acknowledged amounts that the clients can compute themselves."""
        assert state.acknowledgment is not None
        if state.acknowledgment.succeeded:
            actual = state.acknowledgment.amounts
            predicted = self._client_ledger.predict_amounts(state)
            if differences := describe_differences(predicted, actual):
                name = state.operation.idempotency_key
                self._findings.add("wrong values", name, f"acknowledged {differences}")

    async def _reconcile_count(self) -> None:
        expected = (
            provisioning.PROVISIONING_TRANSACTION_COUNT + self._client_ledger.transaction_count
        )
        stored = await self._database.fetchval("SELECT count(*) FROM transactions")
        if stored != expected:
            self._findings.add("balance", "transactions", f"stored {stored}, expected {expected}")

    async def _reconcile_audit_log(
        self, operations: Iterable[OperationState], since: Checkpoint
    ) -> None:
        """Require one audit entry per refund, with the refunded amount before and after it."""
        expected: Counter[tuple[str, int, int]] = Counter()
        for state in operations:
            acknowledgment = state.acknowledgment
            if (
                state.operation.kind == "refund"
                and acknowledgment is not None
                and acknowledgment.succeeded
            ):
                paid = self._client_ledger.operations[state.operation.original_key].operation.amount
                assert paid is not None
                after = paid - acknowledgment.amounts["refundable"]
                expected[
                    state.original_transaction_id, after - acknowledgment.amounts["amount"], after
                ] += 1
        rows = await self._database.fetch(
            """SELECT resource_id, changes -> 'refunded_amount' ->> 0 AS before,
                      changes -> 'refunded_amount' ->> 1 AS after
               FROM audit_entries WHERE event = 'transaction.refunded' AND sequence > $1""",
            since.last_audit_sequence,
        )
        recorded = Counter(
            (row["resource_id"], parse_minor_units(row["before"]), parse_minor_units(row["after"]))
            for row in rows
        )
        for entry in (expected - recorded).elements():
            self._findings.add("audit", entry[0], f"refund {entry[1:]} is not recorded")
        for entry in (recorded - expected).elements():
            self._findings.add("audit", entry[0], f"unexpected refund {entry[1:]} is recorded")


def _to_expected(row: asyncpg.Record, names: Mapping[int, str]) -> Expected:
    """Convert a row to the expected record form."""
    original = row["original_id"]
    return dict(row) | {
        "id": ids.encode(ids.TRANSACTION, row["id"]),
        "original_transaction_id": original and ids.encode(ids.TRANSACTION, original),
        "from_account": names.get(row["from_account"]),
        "to_account": names.get(row["to_account"]),
    }


def _format_row(row: asyncpg.Record) -> str:
    return f"{ids.encode(ids.TRANSACTION, row['id'])} {row['type']} {row['status']} {row['amount']}"
