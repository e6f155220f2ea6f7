"""Statements: a period of the owner's account as a file."""

from typing import Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.page_request import PORTAL, PageRequest, get_local_path
from tapgate.sites.console.site import Pages
from tapgate_client.clock import get_platform_day
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.wallets import StatementFormat

pages = Pages()

_ENDPOINT: Final = "POST /api/v1/statements"
_FORMATS: Final = {StatementFormat.PDF.value: "PDF", StatementFormat.CSV.value: "CSV"}


@pages.get(f"{PORTAL}/statements")
async def show_form(request: PageRequest) -> Reply[bytes]:
    await request.require_access(_ENDPOINT)
    today = get_platform_day(request.now, request.context.services.settings.timezone)
    values = {"from": today.replace(day=1).isoformat(), "to": today.isoformat()}
    return _render_form(request, values)


@pages.post(f"{PORTAL}/statements")
async def create_statement(request: PageRequest) -> Reply[bytes]:
    """Create the file and open its link. Works without scripts."""
    await request.require_access(_ENDPOINT)
    values = request.form.pick("from", "to", "format")
    try:
        statement = await request.send("POST", _ENDPOINT.partition(" ")[2], values)
    except ApiError as error:
        if error.code is not Code.VALIDATION_FAILED:
            raise
        return _render_form(request, values, error)
    return request.redirect(get_local_path(statement["statement_url"], PORTAL))


def _render_form(
    request: PageRequest, values: dict[str, str], error: ApiError | None = None
) -> Reply[bytes]:
    return request.render(
        "portal/statements.html",
        200 if error is None else error.status,
        values=values,
        formats=_FORMATS,
        field_errors=(error.details or {}).get("fields", {}) if error is not None else {},
    )
