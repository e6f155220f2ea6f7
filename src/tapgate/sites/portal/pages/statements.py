"""Statements: a month or another period of the owner's account as a file."""

import asyncio
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple

from tapgate.http.endpoint import Reply
from tapgate.sites.console.components.periods import PRESETS, resolve_preset
from tapgate.sites.console.page_request import PORTAL, PageRequest, get_local_path
from tapgate.sites.console.site import Pages
from tapgate.sites.console.times import MONTHS
from tapgate_client.clock import get_platform_day
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.wallets import StatementFormat

pages = Pages()

_ENDPOINT: Final = "POST /api/v1/statements"
_FORMATS: Final = {StatementFormat.PDF.value: "PDF", StatementFormat.CSV.value: "CSV"}
_PRESETS: Final = {name: PRESETS[name] for name in ("this_month", "last_month", "week", "month")}
_DEFAULT_PRESET: Final = "this_month"
_MAX_MONTHS: Final = 12


class _Month(NamedTuple):
    """Month of the account. The current one ends today."""

    first: str
    last: str
    name: str
    year: int
    is_open: bool


@pages.get(f"{PORTAL}/statements")
async def show_form(request: PageRequest) -> Reply[bytes]:
    await request.require_access(_ENDPOINT)
    preset = request.query.get("period")
    preset = preset if preset in _PRESETS else _DEFAULT_PRESET
    zone = request.context.services.settings.timezone
    return await _render_form(request, resolve_preset(preset, request.now, zone), preset)


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
        return await _render_form(request, values, error=error)
    return request.redirect(get_local_path(statement["statement_url"], PORTAL))


async def _render_form(
    request: PageRequest,
    values: dict[str, str],
    preset: str | None = None,
    error: ApiError | None = None,
) -> Reply[bytes]:
    return request.render(
        "portal/statements.html",
        200 if error is None else error.status,
        values=values,
        formats=_FORMATS,
        presets=_PRESETS,
        preset=preset,
        months=await _list_months(request),
        field_errors=(error.details or {}).get("fields", {}) if error is not None else {},
    )


async def _list_months(request: PageRequest) -> list[_Month]:
    """Return the months since the account exists or has transactions, newest first."""
    zone = request.context.services.settings.timezone
    owner, oldest = await asyncio.gather(
        request.get("/api/v1/me/owner"),
        request.get("/api/v1/transactions", {"order": "oldest", "limit": 1}),
    )
    created = min(
        get_platform_day(datetime.fromisoformat(record["created_at"]), zone)
        for record in (owner, *oldest["data"])
    )
    today = last = get_platform_day(request.now, zone)
    months: list[_Month] = []
    while len(months) < _MAX_MONTHS and (last >= created or not months):
        months.append(_build_month(last, today))
        last = last.replace(day=1) - timedelta(days=1)
    return months


def _build_month(last: date, today: date) -> _Month:
    first = last.replace(day=1)
    return _Month(
        first.isoformat(), last.isoformat(), MONTHS[last.month - 1], last.year, last == today
    )
