"""General ledger: balances by account kind, trial balance, journal download and GL codes."""

from typing import Any, Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.lists import get_filtered_list
from tapgate.sites.console.components.table_form import TableForm
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.clock import get_platform_day

pages = Pages()

_PAGE_PATH: Final = "/console/ledger"
_API_PATH: Final = "/api/v1/ledger"
_CODES_PATH: Final = f"{_API_PATH}/gl-codes"
_FORMATS: Final = (
    ("csv", "CSV"),
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
    services = request.context.services
    accounts = await request.get(f"{_API_PATH}/accounts")
    trial_balance, filter_errors = await get_filtered_list(
        request, f"{_API_PATH}/trial-balance", {"as_of": "Date"}
    )
    return request.render(
        "general_ledger/ledger.html",
        accounts=accounts["data"],
        trial_balance=trial_balance,
        filter_errors=filter_errors,
        formats=_FORMATS,
        today=get_platform_day(services.clock(), services.settings.timezone).isoformat(),
        codes_endpoint=GL_CODES_FORM.action.endpoint,
    )


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
