"""Two rounds of crash testing, and proof that the reconciler detects tampering.

A check that cannot fail proves nothing.
"""

import asyncio
import copy
import subprocess
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from drivers.webhooks import ReceivedWebhook, WebhookReceiver
from tapgate_client import ids
from torture import builders
from torture.client_connection import Response
from torture.events import EventReceiver
from torture.findings import Findings
from torture.installation import kill
from torture.load import LoadRound
from torture.plan import build_round
from torture.run import TortureRun, start_run

pytestmark = [pytest.mark.refund, pytest.mark.webhooks]


@pytest.fixture(scope="module")
async def run(cluster: Path) -> AsyncIterator[TortureRun]:
    """A run after two rounds."""
    with tempfile.TemporaryDirectory(prefix="tapgate-test-") as name:
        command: list[str | Path] = ["cp", "-a", cluster, Path(name, "data")]
        await asyncio.to_thread(subprocess.run, command, check=True)
        installation = builders.ForkedInstallation(Path(name))
        try:
            async with start_run(installation, Findings()) as run:
                await builders.run_two_rounds(run)
                yield run
                kill(installation.list_processes())
        finally:
            installation.stop()


def get_transaction_id(run: TortureRun, kind: str) -> int:
    acknowledgment = builders.find_succeeded(run, kind).acknowledgment
    assert acknowledgment is not None
    return ids.decode(ids.TRANSACTION, acknowledgment.transaction_id) or 0


async def test_no_acknowledged_operation_is_lost_duplicated_or_changed(run: TortureRun) -> None:
    assert len(run.client_ledger.operations) > 150
    assert any(state.unanswered_attempts for state in run.client_ledger.operations.values())
    await run.reconcile_all()
    assert run.findings.all == []
    executed, _ = await run.count_executed_approvals()
    assert executed >= 10


#: Tampering statement, the kind of operation it targets, and the expected findings.
TAMPERING_CASES = {
    "a transaction is deleted": (
        "DELETE FROM transactions WHERE id = $1",
        "p2p",
        {"lost", "unexpected", "balance", "ledger"},
    ),
    "a transaction and its entries are deleted": (
        """WITH gone AS (DELETE FROM entries WHERE transaction_id = $1)
           DELETE FROM transactions WHERE id = $1""",
        "p2p",
        {"lost", "balance", "ledger"},
    ),
    "a transaction is duplicated": (
        """INSERT INTO transactions (id, type, status, channel, amount, fee_amount, currency,
               from_account, to_account, scope, request_id, created_at)
           SELECT (SELECT max(id) FROM transactions) + 1, type, status, channel, amount, fee_amount,
               currency, from_account, to_account, 'another', request_id, created_at
           FROM transactions WHERE id = $1""",
        "pos",
        {"duplicated", "balance", "ledger"},
    ),
    "a transaction is added": (
        """INSERT INTO transactions (id, type, status, channel, amount, fee_amount, currency,
               from_account, to_account, scope, request_id, created_at)
           SELECT (SELECT max(id) FROM transactions) + 1, type, 'failed', channel, amount,
               fee_amount, currency, from_account, to_account, scope, 'unknown', created_at
           FROM transactions WHERE id = $1""",
        "pos",
        {"unexpected", "balance", "ledger"},
    ),
    "an amount is changed": (
        "UPDATE transactions SET amount = amount + 1 WHERE id = $1",
        "cash_out",
        {"wrong values", "ledger"},
    ),
    "a recorded balance is changed": (
        "UPDATE transactions SET from_balance = from_balance - 1 WHERE id = $1",
        "pos_pin",
        {"wrong values", "balance"},
    ),
    "an entry is changed": (
        "UPDATE entries SET amount = amount + 1 WHERE transaction_id = $1",
        "top_up",
        {"wrong values", "balance", "ledger"},
    ),
    "an entry and its amount are moved to another account": (
        """WITH other AS (
               SELECT entry.ctid AS place, entry.amount, entry.credit_account AS was, account.id
               FROM entries entry, accounts account
               WHERE entry.transaction_id = $1 AND position = 0 AND account.kind = 'settlement'
                 AND account.id <> entry.credit_account LIMIT 1
           ), moved AS (
               UPDATE entries SET credit_account = other.id FROM other WHERE entries.ctid = place)
           UPDATE accounts SET balance = balance
               + CASE WHEN accounts.id = other.id THEN other.amount ELSE -other.amount END
           FROM other WHERE accounts.id IN (other.id, other.was)""",
        "in_app",
        {"wrong values", "balance", "ledger"},
    ),
    "a balance is raised": (
        """UPDATE accounts SET balance = balance + 1
           WHERE id = (SELECT to_account FROM transactions WHERE id = $1)""",
        "cash_in",
        {"balance", "ledger"},
    ),
    "funds are held without a review": (
        """UPDATE accounts SET held = 1
           WHERE id = (SELECT from_account FROM transactions WHERE id = $1)""",
        "p2p",
        {"balance", "ledger"},
    ),
    "a refund is deleted from the audit log": (
        """DELETE FROM audit_entries WHERE id = (
               SELECT min(id) FROM audit_entries
               WHERE event = 'transaction.refunded' AND $1::bigint IS NOT NULL)""",
        "refund",
        {"audit"},
    ),
    "an audit entry is changed": (
        """UPDATE audit_entries SET reason = 'another' WHERE hash IS NOT NULL
           AND sequence = (SELECT min(sequence) FROM audit_entries WHERE $1::bigint IS NOT NULL)""",
        "refund",
        {"audit"},
    ),
    "a tap pays several times": (
        """UPDATE transactions SET context = context || '{"card_counter": 1}'
           WHERE context ? 'card_counter' AND $1::bigint IS NOT NULL""",
        "pos",
        {"duplicated", "wrong values"},
    ),
    "an approved request is not executed": (
        """UPDATE approvals SET status = 'approved' WHERE id = (
               SELECT min(id) FROM approvals WHERE $1::bigint IS NOT NULL)""",
        "fund",
        {"approvals"},
    ),
    "an approved amount is changed": (
        """UPDATE approvals SET amount = amount + 1 WHERE id = (
               SELECT min(id) FROM approvals WHERE $1::bigint IS NOT NULL)""",
        "fund",
        {"approvals"},
    ),
    "a reversal is deleted": (
        "DELETE FROM transactions WHERE id = $1",
        "reversal",
        {"lost", "unexpected", "balance", "ledger"},
    ),
    "a recall's reversal moves another amount": (
        "UPDATE entries SET amount = amount + 1 WHERE transaction_id = $1",
        "recall",
        {"wrong values", "balance", "ledger"},
    ),
    "a payout is returned without a movement": (
        """UPDATE payouts SET status = 'returned' WHERE id = (
               SELECT min(id) FROM payouts
               WHERE status = 'submitted' AND $1::bigint IS NOT NULL)""",
        "payout",
        {"wrong values", "ledger"},
    ),
    "a paid payout is taken from its run": (
        """UPDATE payouts SET run_id = NULL WHERE id = (
               SELECT min(id) FROM payouts WHERE status = 'paid' AND $1::bigint IS NOT NULL)""",
        "payout",
        {"wrong values"},
    ),
    "a batch line is paid without its result": (
        """UPDATE batch_lines SET status = 'pending', transaction_id = NULL
           WHERE transaction_id = $1""",
        "batch_line",
        {"ledger"},
    ),
    "a batch line is not paid": (
        """WITH gone AS (DELETE FROM entries WHERE transaction_id = $1)
           DELETE FROM transactions WHERE id = $1""",
        "batch_line",
        {"lost", "balance", "ledger"},
    ),
    "a transaction is removed from its closed day": (
        """UPDATE closed_day_chunks SET transaction_ids = array_remove(transaction_ids, $1)
           WHERE $1 = ANY (transaction_ids)""",
        "top_up",
        {"lost"},
    ),
    "a closed day has another root": (
        """UPDATE closed_days SET merkle_root = sha256(merkle_root)
           WHERE $1::bigint IS NOT NULL AND merkle_root IS NOT NULL""",
        "top_up",
        {"wrong values", "ledger"},
    ),
    "an event is deleted": (
        "DELETE FROM events WHERE type = 'transaction.completed' AND subject_id = $1",
        "p2p",
        {"events"},
    ),
    "a delivery is deleted": (
        """DELETE FROM deliveries WHERE event_id = (
               SELECT id FROM events WHERE type = 'transaction.completed' AND subject_id = $1)""",
        "p2p",
        {"events"},
    ),
}


@pytest.mark.parametrize("description", TAMPERING_CASES)
async def test_reconciler_detects_tampering_with_the_tables(
    run: TortureRun, description: str
) -> None:
    sql, kind, expected = TAMPERING_CASES[description]
    findings = await builders.reconcile_after_tampering(run, sql, get_transaction_id(run, kind))
    assert set(findings.count_by_kind()) == expected, [str(finding) for finding in findings.all]


async def test_approved_fundings_are_executed_under_faults(run: TortureRun) -> None:
    fundings = [
        state for state in run.client_ledger.operations.values() if state.operation.kind == "fund"
    ]
    assert len(fundings) == 20
    assert all(state.acknowledgment and state.acknowledgment.succeeded for state in fundings)


async def test_staff_work_is_done_under_faults(run: TortureRun) -> None:
    done: Counter[str] = Counter(
        state.operation.kind
        for state in run.client_ledger.operations.values()
        if state.acknowledgment and state.acknowledgment.succeeded
    )
    kinds = ("reversal", "recall", "payout", "payout_cancel", "payout_paid", "payout_returned")
    assert min(done[kind] for kind in kinds) > 0, done
    assert (done["batch"], done["day_close"]) == (2, 1)
    assert done["batch_line"] > 200


async def test_reconciler_detects_an_acknowledged_operation_that_is_missing(
    run: TortureRun,
) -> None:
    client_ledger = copy.deepcopy(run.client_ledger)
    paid = copy.deepcopy(builders.find_succeeded(run, "pos"))
    assert paid.acknowledgment is not None
    paid.operation = msgspec.structs.replace(paid.operation, idempotency_key="never-sent")
    paid.acknowledgment = msgspec.structs.replace(
        paid.acknowledgment, transaction_id=ids.encode(ids.TRANSACTION, 1)
    )
    client_ledger.operations["never-sent"] = paid
    client_ledger.apply(paid)
    findings = await builders.reconcile_with(run, client_ledger)
    assert set(findings.count_by_kind()) == {"lost", "balance", "events"}
    assert {finding.subject for finding in findings.all if finding.kind == "lost"} == {"never-sent"}


async def test_reconciler_detects_amounts_that_differ_from_the_acknowledgment(
    run: TortureRun,
) -> None:
    client_ledger = copy.deepcopy(run.client_ledger)
    sent = client_ledger.operations[builders.find_succeeded(run, "p2p").operation.idempotency_key]
    assert sent.acknowledgment is not None
    sent.acknowledgment.amounts["payer_balance"] += 1
    findings = await builders.reconcile_with(run, client_ledger)
    assert set(findings.count_by_kind()) == {"wrong values"}
    assert {finding.subject for finding in findings.all} == {sent.operation.idempotency_key}


async def test_reconciler_detects_a_transaction_unknown_to_the_clients(run: TortureRun) -> None:
    client_ledger = copy.deepcopy(run.client_ledger)
    removed = builders.find_succeeded(run, "cash_in").operation.idempotency_key
    del client_ledger.operations[removed]
    findings = await builders.reconcile_with(run, client_ledger)
    assert set(findings.count_by_kind()) == {"unexpected", "events"}


def build_response(status: int, body: dict[str, str]) -> Response:
    return Response(status=status, body=body, replayed=False)


async def test_invalid_responses_are_reported_as_findings(run: TortureRun) -> None:
    findings = Findings()
    load = LoadRound(
        run.installation,
        run.participants,
        run.client_ledger,
        findings,
        build_round(1, 1, operations=1),
    )
    paid = copy.deepcopy(builders.find_succeeded(run, "pos"))
    assert paid.acknowledgment is not None
    receipt = {
        "transaction_id": paid.acknowledgment.transaction_id,
        "status": "completed",
        "amount": f"{paid.acknowledgment.amounts['amount'] / 100:.2f} SLE",
        "fee_amount": f"{paid.acknowledgment.amounts['fee'] / 100:.2f} SLE",
        "remaining_balance": f"{paid.acknowledgment.amounts['payer_balance'] / 100:,.2f} SLE",
    }
    load.handle_response(paid, build_response(200, receipt))
    load.handle_response(paid, build_response(503, {"code": "SERVICE_UNAVAILABLE"}))
    assert findings.all == []
    load.handle_response(paid, build_response(200, receipt | {"transaction_id": "txn_another"}))
    load.handle_response(paid, build_response(402, {"code": "INSUFFICIENT_FUNDS"}))
    load.handle_response(paid, build_response(500, {"code": "INTERNAL_ERROR"}))
    load.handle_response(paid, build_response(403, {"code": "COMPLIANCE_REJECTED"}))
    assert [finding.kind for finding in findings.all[:3]] == [
        "wrong values",
        "wrong values",
        "failure",
    ]
    assert {finding.kind for finding in findings.all[3:]} == {"rejection", "wrong values"}


async def test_invalid_event_deliveries_are_reported_as_findings(run: TortureRun) -> None:
    findings, receiver = Findings(), WebhookReceiver()
    event_receiver, sent = EventReceiver(receiver), builders.find_succeeded(run, "p2p")
    assert sent.acknowledgment is not None
    body = {"type": "transaction.completed", "data": {"id": sent.acknowledgment.transaction_id}}
    for webhook_id, extra in (("dlv_1", {}), ("dlv_1", {}), ("dlv_2", {}), ("dlv_1", {"x": 1})):
        raw = msgspec.json.encode(body | extra)
        receiver.received.append(
            ReceivedWebhook("POST / HTTP/1.1", {"webhook-id": webhook_id}, raw)
        )
    await event_receiver.reconcile([sent], findings, timeout_seconds=0)
    assert [finding.subject for finding in findings.all] == [
        "dlv_1",
        f"transaction.completed {sent.acknowledgment.transaction_id}",
    ]
    findings = Findings()
    await EventReceiver(WebhookReceiver()).reconcile([sent], findings, timeout_seconds=0)
    assert [finding.detail for finding in findings.all] == ["missing 1 times"]
