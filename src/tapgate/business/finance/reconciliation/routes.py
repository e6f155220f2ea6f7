"""Bank statement endpoints."""

from tapgate.business.finance.bank_accounts import queries as bank_accounts
from tapgate.business.finance.payouts import queries as payouts
from tapgate.business.finance.payouts.requests import describe_return
from tapgate.business.finance.reconciliation import operations, queries
from tapgate.business.finance.reconciliation.candidates import list_candidates
from tapgate.business.finance.reconciliation.imports import import_statement
from tapgate.business.finance.reconciliation.line_changes import change_line
from tapgate.business.finance.reconciliation.line_commands import RETURNABLE_STATUSES
from tapgate.business.finance.reconciliation.model import to_line_record, to_record
from tapgate.core.pagination import paginate
from tapgate.core.records import (
    BankAccountId,
    BankStatementId,
    BankStatementLineId,
    require_id,
)
from tapgate.http.api.access import Access
from tapgate.http.api.form_files import FORM_TYPE, build_form_schema, extract_file
from tapgate.http.api.guards import Guard, Proposal, Unguarded
from tapgate.http.api.notice_declarations import Unnoticed
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import GuardedRequest, RequestContext
from tapgate.http.endpoint import MEBIBYTE, Endpoints, Reply
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code, require_found
from tapgate_client.schemas.approvals import Operation
from tapgate_client.schemas.bank_statements import (
    BankStatementFilters,
    BankStatementLine,
    BankStatementLineFilters,
    BankStatementQuery,
    BankStatementRecord,
    CsvMapping,
    LineIgnoring,
    LineMatch,
    LinePosting,
    LineStatus,
    LineUnmatching,
    MatchCandidates,
)
from tapgate_client.schemas.pagination import Page

endpoints = Endpoints(
    "Reconciliation",
    access=Access(roles="AF"),
    objects=ObjectAccess.ANY,
    owners=NEVER,
)
_PREFIX = "/api/v1/bank-statements"
_LINE = f"{_PREFIX}/lines/{{id}}"
_MAPPING = "/api/v1/bank-accounts/{id}/csv-mapping"
_LINE_ERRORS = (Code.LINE_NOT_OPEN, Code.DUPLICATE_REQUEST)
_STATEMENT_MEDIA = {
    "application/xml": {
        "schema": {"type": "string", "format": "binary", "description": "camt.053"}
    },
    "text/plain": {"schema": {"type": "string", "format": "binary", "description": "MT940"}},
    "text/csv": {
        "schema": {
            "type": "string",
            "format": "binary",
            "description": "Columns: `date`, `amount`, `reference` and `description`",
        },
        "example": "date,amount,reference,description\n2026-01-31,-500.00,PO04BGX6A000009,Payout\n",
    },
    FORM_TYPE: build_form_schema("BankStatementForm", "The file", "application/octet-stream"),
}


@endpoints.post(
    _PREFIX,
    status=201,
    body_limit=8 * MEBIBYTE,
    body_media=tuple(_STATEMENT_MEDIA),
    body_schema=_STATEMENT_MEDIA,
    moves_money=True,
    unguarded=Unguarded.OWN_MONEY,
    unnoticed=Unnoticed.OUTCOME,
    errors=(
        Code.BANK_ACCOUNT_NOT_FOUND,
        Code.BANK_ACCOUNT_NOT_VERIFIED,
        Code.DUPLICATE_REFERENCE,
        Code.DUPLICATE_REQUEST,
        Code.CURRENCY_NOT_SUPPORTED,
    ),
)
async def import_bank_statement(
    request: RequestContext, body: bytes, query: BankStatementQuery
) -> Reply[BankStatementRecord]:
    """Import a bank statement.

    Send the file as the request body, or as `file` in a multipart form: camt.053 (versions 02 and
    08), MT940 or CSV, at most 8 MiB and 50,000 lines. A CSV file has the columns `date`, `amount`,
    `reference` and `description` with signed amounts, or those in the account's saved mapping.
    `bank_account_id` names the account for CSV; without it, the platform's only verified one is
    used.

    Lines are matched with payouts by their `reference`, with deposits by theirs, and otherwise with
    the only candidate that has the same amount within 3 days. A matched payout becomes paid, or
    returned if the bank sent the money back. With an approval rule for `reversals`, the line of a
    return stays open with `proposed_payout_id` instead, and matching it needs the approval: a
    statement file proves nothing about the bank. The same statement twice gets 409
    `DUPLICATE_REFERENCE`. Lines known from an earlier statement are skipped and counted. An
    unreadable file gets 422 with `details.line`.
    """
    content = extract_file(request.get_header(b"content-type"), body)
    statement, is_replay = await import_statement(request, query, content)
    headers = {"Idempotent-Replayed": "true"} if is_replay else {}
    return Reply(to_record(statement, full=True), headers=headers)


@endpoints.get(_PREFIX)
async def list_bank_statements(
    request: RequestContext, query: BankStatementFilters
) -> Page[BankStatementRecord]:
    """List bank statements, newest first.

    `account` has the last four characters. With `unmatched=true`, only statements with unmatched
    lines are listed.
    """
    return paginate(await queries.list_page(request.services.database, query), query, to_record)


@endpoints.get(f"{_PREFIX}/lines")
async def list_bank_statement_lines(
    request: RequestContext, query: BankStatementLineFilters
) -> Page[BankStatementLine]:
    """List statement lines, newest first."""
    services = request.services
    rows = await queries.list_lines(services.database, query)
    return paginate(rows, query, lambda line: to_line_record(line, services.settings.currency))


@endpoints.get(f"{_PREFIX}/{{id}}")
async def get_bank_statement(request: RequestContext, id: BankStatementId) -> BankStatementRecord:
    """Get a bank statement with its complete account number."""
    return to_record(await queries.get(request.services.database, id), full=True)


@endpoints.get(f"{_LINE}/candidates")
async def list_match_candidates(
    request: RequestContext, id: BankStatementLineId
) -> MatchCandidates:
    """List what a statement line could be matched with.

    The list has payouts and deposits with the line's amount that no other line belongs to: first
    payouts that the line names, and deposits within 30 days.
    """
    return await list_candidates(request.services, id)


async def _describe_match(request: GuardedRequest, id: int, body: LineMatch) -> Proposal | None:
    if body.payout_id is None:
        return None  # a link moves no money
    database = request.services.database
    line = await queries.get_line(database, id)
    payout = await payouts.get(database, require_id(ids.PAYOUT, body.payout_id))
    if line.amount < 0:
        return None  # the payout becomes paid, which no owner gets
    proposal = describe_return(request, payout, RETURNABLE_STATUSES)
    if proposal is not None and line.status != LineStatus.UNMATCHED:
        raise ApiError(Code.LINE_NOT_OPEN)  # it may be open again when the request runs
    return proposal


@endpoints.post(
    f"{_LINE}/match",
    moves_money=True,
    guard=Guard(_describe_match, Operation.REVERSALS),
    step_up=("payout_id",),
    unnoticed=Unnoticed.OUTCOME,
    errors=(
        *_LINE_ERRORS,
        Code.PAYOUT_NOT_FOUND,
        Code.PAYOUT_NOT_PENDING,
        Code.TRANSACTION_NOT_FOUND,
        Code.DUPLICATE_REFERENCE,
    ),
)
async def match_bank_statement_line(
    request: GuardedRequest, id: BankStatementLineId, body: LineMatch
) -> Reply[BankStatementLine]:
    """Match a statement line with a transaction or a payout.

    The amounts must agree. A submitted payout becomes paid, and a paid one becomes returned if the
    line is a credit, which counts as a reversal. A transaction, or a payout that staff have marked
    already, is only linked. A
    transaction belongs to at most one line: otherwise 409 `DUPLICATE_REFERENCE`.
    """
    return await change_line(request, id, body)


@endpoints.post(
    f"{_LINE}/post",
    moves_money=True,
    unguarded=Unguarded.OWN_MONEY,
    unnoticed=Unnoticed.NO_CHANGE,
    errors=_LINE_ERRORS,
)
async def post_bank_statement_line(
    request: RequestContext, id: BankStatementLineId, body: LinePosting
) -> Reply[BankStatementLine]:
    """Post a statement line to suspense.

    The amount moves between cash and `suspense`, in a transaction of the type `bank_posting`.
    """
    return await change_line(request, id, body)


@endpoints.post(f"{_LINE}/ignore", unguarded=Unguarded.NO_EFFECT, errors=_LINE_ERRORS)
async def ignore_bank_statement_line(
    request: RequestContext, id: BankStatementLineId, body: LineIgnoring
) -> Reply[BankStatementLine]:
    """Ignore a statement line."""
    return await change_line(request, id, body)


@endpoints.post(
    f"{_LINE}/unmatch",
    moves_money=True,
    unguarded=Unguarded.OWN_MONEY,
    unnoticed=Unnoticed.NO_CHANGE,
    errors=_LINE_ERRORS,
)
async def unmatch_bank_statement_line(
    request: RequestContext, id: BankStatementLineId, body: LineUnmatching
) -> Reply[BankStatementLine]:
    """Make a statement line unmatched again.

    A posted line is booked back. A line that paid or returned a payout gets 409 `LINE_NOT_OPEN`.
    """
    return await change_line(request, id, body)


@endpoints.get(_MAPPING, errors=(Code.NOT_FOUND,))
async def get_csv_mapping(request: RequestContext, id: BankAccountId) -> CsvMapping:
    """Get the column names in a bank's CSV statements.

    Without a saved mapping, the response is 404 `NOT_FOUND`.
    """
    database = request.services.database
    await bank_accounts.get(database, id)
    return require_found(await queries.find_mapping(database, id), Code.NOT_FOUND)


@endpoints.put(_MAPPING, unguarded=Unguarded.NO_EFFECT)
async def set_csv_mapping(
    request: RequestContext, tx: Transaction, id: BankAccountId, body: CsvMapping
) -> CsvMapping:
    """Save the column names in a bank's CSV statements.

    Later imports for the account use the mapping if a file has its columns. Names are compared
    without case, and lines above the header are ignored.
    """
    await bank_accounts.get(tx, id)
    admin_id = request.admin_and_session_ids[0]
    await operations.set_mapping(tx, request.actor, id, body, admin_id=admin_id)
    return body
