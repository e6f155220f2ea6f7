"""General ledger: balances by account kind, trial balance, journal download and GL codes."""

from datetime import date
from decimal import Decimal
from typing import Any, Final

import msgspec

from tapgate.business.finance.general_ledger.journal_formats import DESCRIPTIONS
from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.lists import get_filtered_list
from tapgate.sites.console.components.related import gather_by_name
from tapgate.sites.console.components.table_form import TableForm
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client import ids
from tapgate_client.clock import get_platform_day
from tapgate_client.errors import ApiError
from tapgate_client.schemas.general_ledger import AccountKind

pages = Pages()

_PAGE_PATH: Final = "/console/ledger"
_API_PATH: Final = "/api/v1/ledger"
_CODES_PATH: Final = f"{_API_PATH}/gl-codes"
_TRIAL_BALANCE_PATH: Final = f"{_API_PATH}/trial-balance"
#: Account kinds of the income statement.
_RESULT_KINDS: Final = (AccountKind.FEES, AccountKind.COMMISSION_EXPENSE)
#: Transaction types by their descriptions in the journal, which has one language.
_TYPES: Final = {description: name for name, description in DESCRIPTIONS.items()}
_ZERO: Final = Decimal("0.00")
_SIDES: Final = ("debit", "credit")
#: Transactions whose entries one page shows.
_MAX_TRANSACTIONS: Final = 500
_FORMATS: Final = (
    ("csv", "CSV"),
    ("pdf", "PDF"),
    ("json", "JSON"),
    ("hledger", "hledger"),
    ("beancount", "Beancount"),
)
GL_CODES_FORM: Final = TableForm(
    Action(
        name="ledger.gl_codes",
        endpoint=f"PUT {_CODES_PATH}",
        title="GL codes",
        description="Reports and journals use the new codes for all days. Download past journals "
        "again if your accounting software must use them too.",
        button="Save",
        success_message="GL codes updated.",
    ),
    "general_ledger/gl_codes.html",
    _PAGE_PATH,
)


@pages.get(_PAGE_PATH)
async def show_general_ledger(request: PageRequest) -> Reply[bytes]:
    accounts = await request.get(f"{_API_PATH}/accounts")
    trial_balance, filter_errors = await get_filtered_list(
        request, _TRIAL_BALANCE_PATH, {"as_of": "Date"}
    )
    today = _get_today(request)
    day = _parse_day(request.query.get("as_of")) or today
    by_code = {account["gl_code"]: account for account in accounts["data"]}
    return request.render(
        "general_ledger/ledger.html",
        accounts=by_code,
        trial_balance=trial_balance,
        income=await _build_income_statement(request, by_code, trial_balance, day.replace(day=1)),
        day=day.isoformat(),
        filter_errors=filter_errors,
        formats=_FORMATS,
        today=today.isoformat(),
        codes_endpoint=GL_CODES_FORM.action.endpoint,
    )


@pages.get(f"{_PAGE_PATH}/entries")
async def show_entries(request: PageRequest) -> Reply[bytes]:
    """Render the entries of one GL code on one day."""
    gl_code = request.query.get("gl_code")
    if not gl_code:
        return request.redirect(_PAGE_PATH)
    day = request.query.get("day") or _get_today(request).isoformat()
    query = {"day": day, "limit": str(_MAX_TRANSACTIONS), **request.query.pick("cursor")}
    parts = await gather_by_name(
        journal=request.get(f"{_API_PATH}/journal", query), codes=request.get(_CODES_PATH)
    )
    page = msgspec.json.decode(parts["journal"].body)
    end = date.fromisoformat(day)
    rows = [_split_description(row) for row in page["data"] if row["gl_code"] == gl_code]
    debit, credit = (sum((Decimal(row[side]) for row in rows), _ZERO) for side in _SIDES)
    names = {code["gl_code"]: code["name"] for code in parts["codes"]["data"]}
    return request.render(
        "general_ledger/entries.html",
        gl_code=gl_code,
        name=names.get(gl_code, gl_code),
        names=names,
        day=day,
        rows=rows,
        totals={"debit": f"{debit:f}", "credit": f"{credit:f}"},
        opening=await _get_balance(request, gl_code, _get_day_before(end)),
        closing=await _get_balance(request, gl_code, end),
        is_whole_day="cursor" not in query and not page["has_more"],
        next_path=request.build_next_page_path(page["next_cursor"]) if page["has_more"] else None,
    )


async def _get_balance(request: PageRequest, gl_code: str, day: date) -> tuple[str, str] | None:
    """Return the side and the amount of a GL code's balance at the end of a day.

    Return None if the ledger has archived the day, or the GL code has no balance.
    """
    try:
        trial_balance = await request.get(_TRIAL_BALANCE_PATH, {"as_of": day.isoformat()})
    except ApiError:
        return None
    for row in trial_balance["rows"]:
        if row["gl_code"] == gl_code:
            credit = _get_credit(row)
            return ("debit" if credit < 0 else "credit"), f"{abs(credit):f}"
    return None


def _split_description(row: dict[str, Any]) -> dict[str, Any]:
    """Return a journal row with its transaction type, and the ID of an original transaction."""
    description, _, original = row["description"].partition(f" of {ids.TRANSACTION}")
    original_id = f"{ids.TRANSACTION}{original}" if original else None
    return {**row, "type": _TYPES[description], "original_id": original_id}


@pages.get(f"{_PAGE_PATH}/seal")
async def show_seal(request: PageRequest) -> Reply[bytes]:
    """Render when the ledger was last verified."""
    overview = await request.get("/api/v1/overview")
    return request.render("general_ledger/seal.html", verification=overview["ledger"]["last_proof"])


async def _build_income_statement(
    request: PageRequest, accounts: dict[str, Any], end: dict[str, Any], first_day: date
) -> dict[str, Any] | None:
    """Return income and expenses from a day to the end of a trial balance.

    Return None if the ledger has archived the days before.
    """
    try:
        start = await request.get(
            _TRIAL_BALANCE_PATH, {"as_of": _get_day_before(first_day).isoformat()}
        )
    except ApiError:
        return None
    before = {row["gl_code"]: _get_credit(row) for row in start["rows"]}
    rows = [
        (row["name"], _get_credit(row) - before.get(row["gl_code"], Decimal(0)))
        for row in end["rows"]
        if accounts.get(row["gl_code"], {}).get("kind") in _RESULT_KINDS
    ]
    return {
        "since": first_day.isoformat(),
        "rows": [(name, f"{amount:f}") for name, amount in rows],
        "net": f"{sum((amount for _, amount in rows), _ZERO):f}",
    }


def _get_credit(row: dict[str, str]) -> Decimal:
    """Return a balance that is positive for income and negative for expenses."""
    return Decimal(row["credit"]) - Decimal(row["debit"])


def _get_today(request: PageRequest) -> date:
    services = request.context.services
    return get_platform_day(services.clock(), services.settings.timezone)


def _get_day_before(day: date) -> date:
    """Return the previous day, or the first day of the calendar for itself."""
    return date.fromordinal(max(day.toordinal() - 1, 1))


def _parse_day(text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        return None


@pages.get(f"{_PAGE_PATH}/journal")
async def download_journal(request: PageRequest) -> Reply[bytes]:
    """Return the API's export. A script on the page offers the next file if there are more rows."""
    query = request.query.pick("day", "from", "to", "format", "cursor", "limit")
    file: Reply[bytes] = await request.get(f"{_API_PATH}/journal", query)
    return file


@pages.get(f"{_PAGE_PATH}/gl-codes")
async def show_codes_form(request: PageRequest) -> Reply[bytes]:
    codes = await _load_codes(request)
    return GL_CODES_FORM.show(request, codes, {"codes": codes})


@pages.post(f"{_PAGE_PATH}/gl-codes")
async def change_codes(request: PageRequest) -> Reply[bytes]:
    current = await _load_codes(request)
    codes = {
        kind: {
            "kind": kind,
            "gl_code": request.form.get(f"gl_code_{kind}") or "",
            "name": request.form.get(f"name_{kind}") or "",
        }
        for kind in [code["kind"] for code in current]
    }
    return await GL_CODES_FORM.submit(request, current, codes, {"codes": [*codes.values()]})


async def _load_codes(request: PageRequest) -> list[dict[str, Any]]:
    await request.require_access(GL_CODES_FORM.action.endpoint)
    codes: list[dict[str, Any]] = (await request.get(_CODES_PATH))["data"]
    return codes
