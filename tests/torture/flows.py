"""Operations that need several requests: the next request, and which response is the outcome.

A flow is at one step at a time. Responses are handled by the step whose request was sent.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from tapgate_client.money import format_decimal
from torture.approvals import build_approval_step, follow_approval
from torture.client_connection import Response
from torture.client_ledger import OperationState
from torture.findings import Findings
from torture.participants import Participants, StaffRequest
from torture.plan import BANK, Kind
from torture.staff_plan import NOBODY, RETURN

#: Lines of a batch per response.
_PAGE_SIZE: Final = 100


class Flow(NamedTuple):
    build: Callable[[Participants, OperationState, str], StaffRequest]
    #: Returns the outcome, or None if another request must follow.
    follow: Callable[[OperationState, Response, str, Findings], Response | None]
    #: Steps whose requests have an idempotency key.
    keyed_steps: tuple[str, ...] = ("",)
    #: Fields of the original response that a replay must repeat. None: the whole response.
    replayed_fields: tuple[str, ...] | None = None


def _build_recall(participants: Participants, state: OperationState, step: str) -> StaffRequest:
    operation = state.operation
    if step == "decide":
        body = {"decision": operation.answer, "reason": "checked"}
        path = f"/api/v1/recalls/{state.resource_id}/decide"
        return StaffRequest("POST", path, body, by_approver=True)
    if step == "read":
        return StaffRequest("GET", f"/api/v1/recalls/{state.resource_id}", by_approver=True)
    body = {"request_id": operation.idempotency_key, "reason": "wrong person"}
    path = f"/api/v1/transactions/{state.target_id}/recall"
    return StaffRequest("POST", path, body, by_approver=True)


def _follow_recall(
    state: OperationState, response: Response, step: str, findings: Findings
) -> Response | None:
    body = response.body
    if not step and response.status == 201:
        state.resource_id = body["id"]
        state.step = state.step or "decide"
        return None
    if response.code == "RECALL_NOT_OPEN":
        state.step = "read"
        return None
    if response.status != 200 or body["status"] == "open":
        return response
    is_returned = state.operation.answer == RETURN
    if (body["decision"], body["reversal_id"] is not None) != (state.operation.answer, is_returned):
        findings.add("wrong values", state.operation.idempotency_key, f"the recall is {body}")
    outcome = {"transaction_id": body["reversal_id"] or "", "amount": body["held_amount"]}
    status = "completed" if is_returned else "released"
    return Response(status=200, body=outcome | {"status": status}, replayed=response.replayed)


def _build_paid(participants: Participants, state: OperationState, step: str) -> StaffRequest:
    key = state.operation.idempotency_key
    if step == "paid":
        return StaffRequest("POST", f"/api/v1/payouts/{state.target_id}/paid", {"request_id": key})
    return StaffRequest("POST", "/api/v1/payout-runs", {"request_id": f"{key}-run"})


def _follow_paid(
    state: OperationState, response: Response, step: str, findings: Findings
) -> Response | None:
    """Submit the payout to the bank first, unless another run took it or it was canceled."""
    if step == "paid" or (response.status != 200 and response.code != "PAYOUT_NOT_PENDING"):
        return response
    state.step = "paid"
    return None


def _build_batch(participants: Participants, state: OperationState, step: str) -> StaffRequest:
    operation, path = state.operation, f"/api/v1/batches/{state.resource_id}"
    key = operation.idempotency_key
    if step == "lines":
        phones = participants.phones | {NOBODY: "+23299999999"}
        rows = [
            f"{phones[name]},{format_decimal(amount, 'SLE')},L{row}"
            for row, (name, amount) in enumerate(operation.lines, 1)
        ]
        content = "\n".join(["phone_number,amount,reference", *rows]).encode()
        return StaffRequest("PUT", f"{path}/lines", content=content)
    if step == "validate":
        return StaffRequest("POST", f"{path}/validate")
    if step == "run":
        return StaffRequest("POST", f"{path}/run", {"request_id": f"{key}-run"})
    if step == "read":
        return StaffRequest("GET", path)
    if step.startswith("page"):
        cursor = step.removeprefix("page")
        query = f"limit={_PAGE_SIZE}" + (f"&cursor={cursor}" if cursor else "")
        return StaffRequest("GET", f"{path}/lines?{query}")
    source = participants.ids[BANK] if operation.payer == BANK else "platform"
    body = {"request_id": key, "name": f"Batch {key}", "source_id": source}
    return StaffRequest("POST", "/api/v1/batches", body)


_NEXT_BATCH_STEPS: Final = {"": "lines", "lines": "validate", "validate": "run", "run": "read"}
#: Steps that are done if the batch is no longer ready for them.
_BATCH_STATUS_STEPS: Final = frozenset({"lines", "validate"})


def _follow_batch(
    state: OperationState, response: Response, step: str, findings: Findings
) -> Response | None:
    body = response.body
    is_done = step in _BATCH_STATUS_STEPS and response.code == "BATCH_NOT_READY"
    if response.status >= 300 and not is_done:
        return response
    if step in _NEXT_BATCH_STEPS:
        state.resource_id = state.resource_id or body["id"]
        if state.step == step:
            state.step = _NEXT_BATCH_STEPS[step]
        return None
    if step == "read":
        if body["status"] != "running":
            state.step = "page"
        return None
    state.batch_lines += body["data"]
    if body["has_more"]:
        state.step = f"page{body['next_cursor']}"
        return None
    outcome = {"transaction_id": "", "status": "batch"}
    return Response(status=200, body=outcome, replayed=response.replayed)


FLOWS: Final[dict[Kind, Flow]] = {
    "fund": Flow(build_approval_step, follow_approval, keyed_steps=()),
    "recall": Flow(_build_recall, _follow_recall),
    "payout_paid": Flow(_build_paid, _follow_paid, keyed_steps=("", "paid")),
    # A replay has the batch as it is now.
    "batch": Flow(_build_batch, _follow_batch, ("", "run"), ("id", "name")),
}
