"""Bank statements: import, lines, matching, and column names of CSV files."""

from typing import Any, Final

from tapgate.http.endpoint import MEBIBYTE, Reply
from tapgate.sites.console import step_up
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components import fields
from tapgate.sites.console.components.related import (
    gather_by_name,
    get_account_names,
    get_admin_names,
    get_audit,
    name_account,
)
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.rendering import end_sentence
from tapgate.sites.console.site import Pages
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.bank_accounts import BankAccountOwner
from tapgate_client.schemas.bank_statements import (
    CsvDateFormat,
    CsvDecimalSeparator,
    LineStatus,
)

pages = Pages()

_LIST_PATH: Final = "/api/v1/bank-statements"
_LINES_PATH: Final = f"{_LIST_PATH}/lines"
_LINE_PATH: Final = f"{_LINES_PATH}/{{id}}"
_MAPPING_PATH: Final = "/api/v1/bank-accounts/{id}/csv-mapping"
_PAGE_SIZE: Final = 50
_LATEST_STATEMENTS: Final = 5
_MAX_PAYOUTS: Final = 100
_MAX_FILE_MEBIBYTES: Final = 8

_ALL: Final = "all"
_TO_MATCH: Final = "to_match"
STATEMENT_TABS: Final = {_ALL: "All", _TO_MATCH: "To match"}
TABS: Final = {
    LineStatus.UNMATCHED.value: "Unmatched",
    LineStatus.MATCHED.value: "Matched",
    LineStatus.POSTED.value: "Posted",
    LineStatus.IGNORED.value: "Ignored",
    "all": "All",
}

ACTIONS: Final = (
    Action(
        name="bank_line.match",
        endpoint=f"POST {_LINE_PATH}/match",
        title="Match this line?",
        description="A submitted payout becomes paid, and a paid one becomes returned. A return "
        "gives the owner the amount and the fee back, so it may need an approval. A deposit is "
        "only linked with the line.",
        button="Match",
        fields=(
            Field("payout_id", "Payout", "hidden", required=False),
            Field("transaction_id", "Transaction", "hidden", required=False),
        ),
        success_message="Line matched.",
        moves_money=True,
    ),
    Action(
        name="bank_line.post",
        endpoint=f"POST {_LINE_PATH}/post",
        title="Post this line to suspense?",
        description="The ledger then has the same cash as the bank, and the amount waits in "
        "suspense until somebody explains it.",
        button="Post to suspense",
        fields=(fields.REASON,),
        success_message="Line posted.",
        moves_money=True,
    ),
    Action(
        name="bank_line.ignore",
        endpoint=f"POST {_LINE_PATH}/ignore",
        title="Ignore this line?",
        description="The line stays on the statement and moves no money.",
        button="Ignore",
        fields=(fields.REASON,),
        success_message="Line ignored.",
    ),
    Action(
        name="bank_line.unmatch",
        endpoint=f"POST {_LINE_PATH}/unmatch",
        title="Make this line unmatched again?",
        description="A posted line is booked back.",
        button="Unmatch",
        success_message="Line is unmatched again.",
        moves_money=True,
    ),
    Action(
        name="csv_mapping.update",
        endpoint=f"PUT {_MAPPING_PATH}",
        title="CSV columns of this bank",
        description="Copy the names from the header of the bank's file. Give the amount column, or "
        "the debit and the credit column.",
        button="Save",
        fields=(
            Field("date", "Date column"),
            Field("amount", "Amount column", required=False),
            Field("debit", "Debit column", required=False),
            Field("credit", "Credit column", required=False),
            Field("reference", "Reference column", required=False),
            Field("description", "Description columns", "lines", required=False, hint="One a line"),
            Field("date_format", kind="whole_choice", choices=tuple(CsvDateFormat)),
            Field("decimal_separator", kind="whole_choice", choices=tuple(CsvDecimalSeparator)),
        ),
        success_message="CSV columns saved.",
    ),
)


@pages.get("/console/bank-statements")
async def list_statements(request: PageRequest) -> Reply[bytes]:
    parts = await gather_by_name(
        page=request.get(_LIST_PATH, {**get_filters(request), **request.query.pick("cursor")}),
        account_names=get_account_names(request, owner_type=BankAccountOwner.PLATFORM),
    )
    return request.render(
        "bank_statements/list.html",
        **parts,
        tab=request.query.get("status") or _ALL,
        tabs=STATEMENT_TABS,
    )


def get_filters(request: PageRequest) -> dict[str, str]:
    """Return the API's filters for the list page's query."""
    filters = request.query.pick("bank_account_id")
    is_open = request.query.get("status") == _TO_MATCH
    return {**filters, "unmatched": "true"} if is_open else filters


@pages.get("/console/bank-statements/import")
async def show_import_form(request: PageRequest) -> Reply[bytes]:
    await request.require_access(f"POST {_LIST_PATH}")
    accounts = await request.get(
        "/api/v1/bank-accounts", {"owner_type": "platform", "status": "verified"}
    )
    statements = await request.get(_LIST_PATH, {"limit": _LATEST_STATEMENTS})
    chosen = request.query.get("bank_account_id") or None
    mapping = None
    if chosen is not None:
        try:
            mapping = await request.get(_MAPPING_PATH, id=chosen)
        except ApiError as error:
            if error.code != Code.NOT_FOUND:
                raise
    return request.render(
        "bank_statements/import.html",
        accounts={account["id"]: name_account(account) for account in accounts["data"]},
        chosen=chosen,
        mapping=mapping,
        statements=statements["data"],
        max_bytes=_MAX_FILE_MEBIBYTES * MEBIBYTE,
        max_mebibytes=_MAX_FILE_MEBIBYTES,
    )


@pages.post("/console/bank-statements/import")
async def import_statement(request: PageRequest) -> Reply[bytes]:
    try:
        statement = await request.forward_body(
            "POST", _LIST_PATH, request.query.pick("bank_account_id")
        )
    except ApiError as error:
        if step_up.is_answered_by_prompt(error) or error.code == Code.FORBIDDEN:
            raise
        message = end_sentence(request.translator.translate_error(error))
        line = (error.details or {}).get("line")
        return request.render("bank_statements/import_error.html", message=message, line=line)
    return request.render("bank_statements/import_result.html", statement=statement)


@pages.get("/console/bank-statements/{id}")
async def show_statement(request: PageRequest, id: str) -> Reply[bytes]:
    """Render a statement, on the tab of the unmatched lines if there are any."""
    statement = await request.get(f"{_LIST_PATH}/{{id}}", id=id)
    unmatched = LineStatus.UNMATCHED.value
    tab = request.query.get("status") or (unmatched if statement["unmatched"] else _ALL)
    parts = await gather_by_name(
        lines=request.get(_LINES_PATH, _build_lines_query(request, tab, id)),
        account_names=get_account_names(request, owner_type=BankAccountOwner.PLATFORM),
        payees=_get_payees(request, statement),
        audit=get_audit(request, id),
        admin_names=get_admin_names(request),
    )
    next_path = None
    if parts["lines"]["has_more"]:
        next_path = request.build_next_page_path(parts["lines"]["next_cursor"])
    return request.render(
        "bank_statements/statement.html",
        statement=statement,
        **parts,
        tab=tab,
        tabs=TABS,
        next_path=next_path,
    )


async def _get_payees(request: PageRequest, statement: dict[str, Any]) -> dict[str, str]:
    """Return who got the newest payouts until the end of a statement, by payout ID."""
    query = {"to": statement["to"], "limit": _MAX_PAYOUTS}
    payouts = await request.get_if_allowed("/api/v1/payouts", query)
    return {} if payouts is None else {item["id"]: item["owner_name"] for item in payouts["data"]}


def _build_lines_query(request: PageRequest, tab: str, statement_id: str) -> dict[str, Any]:
    query = {"statement_id": statement_id, "limit": _PAGE_SIZE, **request.query.pick("cursor")}
    return query if tab == _ALL else {**query, "status": tab}


@pages.get("/console/bank-statements/lines/{id}/candidates")
async def show_candidates(request: PageRequest, id: str) -> Reply[bytes]:
    found = await request.get(f"{_LINE_PATH}/candidates", id=id)
    return request.render(
        "bank_statements/candidates.html", line=found["line"], candidates=found["data"]
    )
