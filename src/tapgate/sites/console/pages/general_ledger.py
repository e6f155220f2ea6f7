"""General ledger: balances by account kind, trial balance, journal download and GL codes."""

from typing import Any, Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console import stale_check
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.lists import get_filtered_list
from tapgate.sites.console.form_errors import describe_value_error
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.clock import get_platform_day
from tapgate_client.errors import ApiError, Code

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
_LABELS: Final = {"gl_code": "GL code", "name": "Name"}
_CHANGE_ACTION: Final = Action(
    name="ledger.gl_codes",
    endpoint=f"PUT {_CODES_PATH}",
    title="GL codes",
    description="Reports and journals use the new codes for all days. Download past journals again "
    "if your accounting software must use them too.",
    button="Save",
    success_message="GL codes updated.",
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
        codes_endpoint=_CHANGE_ACTION.endpoint,
    )


@pages.get(f"{_PAGE_PATH}/journal")
async def download_journal(request: PageRequest) -> Reply[bytes]:
    """Return the API's export. A script on the page offers the next file if there are more rows."""
    query = request.query.pick("day", "from", "to", "format", "cursor", "limit")
    file: Reply[bytes] = await request.get(f"{_API_PATH}/journal", query)
    return file


@pages.get(f"{_PAGE_PATH}/gl-codes")
async def show_codes_form(request: PageRequest) -> Reply[bytes]:
    await request.require_access(_CHANGE_ACTION.endpoint)
    codes = (await request.get(_CODES_PATH))["data"]
    return _render_form(request, codes, stale_check.fingerprint(codes))


@pages.post(f"{_PAGE_PATH}/gl-codes")
async def change_codes(request: PageRequest) -> Reply[bytes]:
    await request.require_access(_CHANGE_ACTION.endpoint)
    current = (await request.get(_CODES_PATH))["data"]
    codes = [
        {
            "kind": code["kind"],
            "gl_code": request.form.get(f"gl_code_{code['kind']}") or "",
            "name": request.form.get(f"name_{code['kind']}") or "",
        }
        for code in current
    ]
    try:
        stale_check.require_unchanged(request.form.get("seen"), current)
        await request.send("PUT", _CODES_PATH, {"data": codes})
    except ApiError as error:
        if error.code is Code.UNAUTHORIZED:
            raise
        return _render_form(request, codes, request.form.get("seen"), error)
    return request.redirect(_PAGE_PATH, _CHANGE_ACTION.success_message)


def _render_form(
    request: PageRequest,
    codes: list[dict[str, Any]],
    fingerprint: str | None,
    error: ApiError | None = None,
) -> Reply[bytes]:
    fields = {} if error is None else (error.details or {}).get("fields", {})
    return request.render(
        "general_ledger/gl_codes.html",
        action=_CHANGE_ACTION.translate(request.translator),
        address=request.context.path,
        error=error,
        is_marked=bool(fields),
        problems={
            code["kind"]: {
                name: describe_value_error(
                    request.translate(label), fields[path], request.translator
                )
                + "."
                for name, label in _LABELS.items()
                if (path := f"data[{index}].{name}") in fields
            }
            for index, code in enumerate(codes)
        },
        codes=codes,
        fingerprint=fingerprint,
    )
