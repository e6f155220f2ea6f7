"""Batch endpoints."""

import asyncio

from tapgate.business.finance.batches import operations, queries
from tapgate.business.finance.batches.lines_file import render_lines
from tapgate.business.finance.batches.lines_parser import MEDIA_TYPES, ParsedLines, parse_lines
from tapgate.business.finance.batches.model import to_line_record, to_record
from tapgate.business.finance.batches.validation import validate
from tapgate.business.payments.transactions.money_requests import format_amount
from tapgate.core.pagination import paginate
from tapgate.core.records import BatchId
from tapgate.http.api import csv_files
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.idempotency import build_idempotency_key
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import MEBIBYTE, Endpoints, Reply
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import Code
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.batches import (
    BatchFilters,
    BatchLineFilters,
    BatchLineFormat,
    BatchLineRecord,
    BatchRecord,
    BatchRun,
    BatchStatus,
    NewBatch,
)
from tapgate_client.schemas.pagination import Page

endpoints = Endpoints(
    "Batches",
    "/api/v1/batches",
    access=Access(roles="AF"),
    objects=ObjectAccess.ANY,
    owners=NEVER,
)
_REPLAYED = {"Idempotent-Replayed": "true"}


@endpoints.post(
    "",
    status=201,
    errors=(Code.PARTNER_NOT_FOUND, Code.DUPLICATE_REQUEST),
    unguarded=Unguarded.NO_MONEY,
    objects=ObjectAccess.NO_OBJECT,
)
async def create_batch(
    request: RequestContext, tx: Transaction, body: NewBatch
) -> Reply[BatchRecord]:
    """Create a batch.

    A batch credits many wallets, for example with salaries. `source_id` is the partner who pays, or
    `platform` to pay from cash. The batch is a draft: upload its lines, validate it and run it.
    """
    batch, is_replay = await operations.create(
        tx,
        request.actor,
        body,
        admin_id=request.admin_and_session_ids[0],
        currency=request.services.settings.currency,
        key=build_idempotency_key(request, body),
    )
    return Reply(to_record(batch), headers=_REPLAYED if is_replay else {})


@endpoints.get("")
async def list_batches(request: RequestContext, query: BatchFilters) -> Page[BatchRecord]:
    """List batches, newest first."""
    return paginate(await queries.list_page(request.services.database, query), query, to_record)


@endpoints.get("/{id}")
async def get_batch(request: RequestContext, id: BatchId) -> BatchRecord:
    """Get a batch.

    While it is running, `paid` and `failed` count the lines that are done.
    """
    return to_record(await queries.get(request.services.database, id))


async def _parse(request: RequestContext, id: int, body: bytes) -> ParsedLines:
    """Parse in a thread, so that thousands of lines do not block the event loop."""
    batch = await queries.get(request.services.database, id)
    batch.require_status(BatchStatus.DRAFT)
    content_type = request.get_header(b"content-type")
    currency = request.services.settings.currency
    return await asyncio.to_thread(parse_lines, content_type, body, currency)


@endpoints.put(
    "/{id}/lines",
    body_limit=8 * MEBIBYTE,
    body_media=tuple(MEDIA_TYPES),
    body_schema=MEDIA_TYPES,
    errors=(Code.BATCH_NOT_READY, Code.DUPLICATE_REQUEST, Code.VALIDATION_FAILED),
    unguarded=Unguarded.NO_MONEY,
    prepare=_parse,
)
async def upload_batch_lines(
    request: RequestContext, tx: Transaction, id: BatchId, body: bytes, prepared: ParsedLines
) -> BatchRecord:
    """Upload the lines of a draft.

    Send the file as the request body, or as `file` in a multipart form. It is CSV in UTF-8,
    separated by commas or semicolons, with at most 50,000 lines.
    The first line names the columns: `phone_number`, `card_serial` or both, `amount` and
    `reference`. Other columns are ignored. Each line has a phone number or a card. The file
    replaces earlier lines.

    A file that cannot be read gets 422, with rows and columns in `details.fields`. Values that are
    not acceptable are reported by the validation. If another batch with the same name got the same
    lines within the last 24 hours and was not canceled, the response is 409 `DUPLICATE_REQUEST`.
    """
    return to_record(await operations.replace_lines(tx, request.actor, id, prepared))


@endpoints.get("/{id}/lines", media=("application/json", "text/csv"), heavy="expensive_format")
async def list_batch_lines(
    request: RequestContext, id: BatchId, query: BatchLineFilters
) -> Reply[Page[BatchLineRecord]]:
    """List a batch's lines in the order of the file.

    `code` says why a line is invalid or failed, and `column` which column of the file is concerned.
    A pending line with a `transaction_id` is held for review. With `format=csv`, the response is a
    file with all lines.
    """
    services = request.services
    batch = await queries.get(services.database, id)
    if query.format == BatchLineFormat.JSON:
        lines = await queries.list_lines(services.database, id, query)
        page = paginate(lines, query, lambda line: to_line_record(line, batch.currency))
        return Reply(page)
    rows = await queries.fetch_all_lines(services.database, id, query.status)
    content = await asyncio.to_thread(
        lambda: render_lines(map(queries.build_line, rows), batch.currency)
    )
    headers = {"Content-Disposition": f'attachment; filename="{batch.public_id}.csv"'}
    return Reply(content, headers=headers, content_type=csv_files.CONTENT_TYPE)


@endpoints.post(
    "/{id}/validate",
    errors=(Code.BATCH_NOT_READY, Code.INSUFFICIENT_FUNDS, Code.PARTNER_SUSPENDED),
    unguarded=Unguarded.NO_MONEY,
)
async def validate_batch(request: RequestContext, tx: Transaction, id: BatchId) -> BatchRecord:
    """Validate a draft.

    Every line is checked: the receiver exists and is active, the amount, the room under the maximum
    balance with all lines for that receiver added up, and that no line repeats another one's
    receiver, amount and reference. Invalid lines get a `code` and are left out. If the source
    cannot pay the valid lines with their fees, the response is `INSUFFICIENT_FUNDS` and the batch
    stays a draft.
    """
    return to_record(await validate(tx, request.actor, id))


async def _describe_run(request: GuardedRequest, id: int, body: BatchRun) -> Proposal | None:
    batch = await queries.get(request.services.database, id)
    if batch.status == BatchStatus.DRAFT:
        # Not left to the operation: it waits for a validation, and then accepts the run.
        key = build_idempotency_key(request, body)
        if key is not None:
            await queries.find_started(request.services.database, key)  # of another batch: conflict
        batch.require_status(BatchStatus.VALIDATED)
    if batch.status != BatchStatus.VALIDATED:
        return None  # the operation replays the response, or rejects the request
    source = batch.source_name or "the platform"
    amount = format_amount(request, batch.total_amount)
    return Proposal(
        # Otherwise a batch of one line would avoid the rules for transfers.
        operations=(Operation.BATCHES, Operation.WALLET_TRANSFER),
        summary=f"Pay {amount} from {source} in {batch.valid} lines of batch {batch.name}",
        resource_id=batch.public_id,
        before={"status": batch.status},
        implied={"status": BatchStatus.RUNNING},
        amount=batch.total_amount,
    )


@endpoints.post(
    "/{id}/run",
    status=202,
    errors=(Code.BATCH_NOT_READY, Code.DUPLICATE_REQUEST),
    guard=Guard(_describe_run, Operation.BATCHES, Operation.WALLET_TRANSFER),
    step_up=True,
)
async def run_batch(
    request: GuardedRequest, tx: Transaction, id: BatchId, body: BatchRun
) -> Reply[BatchRecord]:
    """Run a validated batch.

    The lines are paid in the background, each exactly once, as transactions of the type
    `batch_credit` whose `request_id` is the batch's ID, a colon and the row. The batch ends as
    `completed`, or as `completed_with_errors` if a line is invalid or failed. A line that a
    compliance rule holds stays pending, and the batch running, until the review is decided.
    """
    principal, approval = request.principal, request.approval
    batch, is_replay = await operations.start(
        tx,
        request.actor,
        id,
        run_by=principal.id,
        approval_id=None if approval is None else ids.decode(ids.APPROVAL, approval.id),
        key=build_idempotency_key(request, body),
    )
    return Reply(to_record(batch), headers=_REPLAYED if is_replay else {})


@endpoints.post("/{id}/cancel", errors=(Code.BATCH_NOT_READY,), unguarded=Unguarded.TAKES_RIGHTS)
async def cancel_batch(request: RequestContext, tx: Transaction, id: BatchId) -> BatchRecord:
    """Cancel a batch.

    A running batch stops before the next line. Lines that were paid stay paid, and the others are
    skipped.
    """
    return to_record(await operations.cancel(tx, request.actor, id))
