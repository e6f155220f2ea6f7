"""Search over all record kinds: suggestions for the search box and pickers, and results."""

from collections import defaultdict
from typing import Any, Final, NamedTuple

from tapgate.http.endpoint import Reply
from tapgate.sites.console.components import palette
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.pickers import find_records
from tapgate.sites.console.rendering import get_result_path
from tapgate.sites.console.site import Pages
from tapgate.sites.console.translation.translator import source_text
from tapgate_client.schemas.search import SearchType

pages = Pages()

_SUGGESTIONS: Final = 8
_RESULTS: Final = 50


class _Kind(NamedTuple):
    """Kind of records: its heading and symbol, and what finds one."""

    label: str
    symbol: str
    hint: str = ""
    example: str = ""


_KINDS: Final = {
    SearchType.SUBSCRIBER: _Kind(
        source_text("Customers"),
        "users",
        source_text("Name, phone number or ID"),
        "+23276123456",
    ),
    SearchType.CARD: _Kind(
        source_text("Cards"), "credit-card", source_text("Serial or UID"), "04A1B2C3D4E5F6"
    ),
    SearchType.TRANSACTION: _Kind(
        source_text("Transactions"),
        "arrow-left-right",
        source_text("ID, approval code, idempotency key or reference"),
        "txn_06ws2s34w0800",
    ),
    SearchType.PROCESSOR: _Kind(
        source_text("Merchants"), "store", source_text("Name, phone number, email or ID")
    ),
    SearchType.AGENT: _Kind(
        source_text("Agents"), "hand-coins", source_text("Name, business name, phone number or ID")
    ),
    SearchType.PARTNER: _Kind(source_text("Partners"), "wallet", source_text("Name or ID")),
    SearchType.ALERT: _Kind(source_text("Alerts"), "shield-alert", source_text("ID")),
    SearchType.SUPPORT_REQUEST: _Kind(source_text("Support"), "headset", source_text("ID")),
    SearchType.ADMIN: _Kind(
        source_text("Administrators"), "id-card", source_text("Name, email or ID")
    ),
    SearchType.ACCOUNT: _Kind(source_text("Accounts"), "book-open-text"),
    SearchType.KEY: _Kind(source_text("Keys"), "key-round", source_text("Name or ID")),
    SearchType.API_REQUEST: _Kind(
        source_text("API requests"),
        "code-xml",
        source_text("Request ID or idempotency key"),
        "5f2c81d09a4b-1f",
    ),
}


@pages.get("/console/search")
async def show_results(request: PageRequest) -> Reply[bytes]:
    """Render the results, or redirect to the only one: Enter opens it before suggestions appear."""
    text = request.query.get("q")
    if request.is_partial:
        groups = await palette.list_groups(request, text or "", request.query.get("recent") or "")
        return request.render("search/palette.html", text=text or "", groups=groups)
    results = [] if text is None else await find_records(request, text, limit=_RESULTS)
    for result in results:
        result["path"] = get_result_path(result["type"], result["id"])
    results = [result for result in results if result["path"] is not None]
    commands = [] if text is None else palette.list_commands(request, text)
    if len(results) == 1 and not commands:
        return request.redirect(results[0]["path"])
    by_kind = defaultdict[SearchType, list[Any]](list)
    for result in results:
        by_kind[SearchType(result["type"])].append(result)
    chosen = request.query.get("type")
    return request.render(
        "search/page.html",
        text=text,
        count=len(results) + len(commands),
        is_limited=len(results) == _RESULTS,
        kinds=_KINDS,
        by_kind=by_kind,
        chosen=chosen if chosen in by_kind else None,
        commands=commands,
    )


@pages.get("/console/search/recent")
async def show_recent(request: PageRequest) -> Reply[bytes]:
    """Render the records that the viewer opened last. Their IDs are in the browser."""
    records = await palette.load_recent(request, request.query.get("recent") or "")
    return request.render("search/recent.html", kinds=_KINDS, records=records)


@pages.get("/console/search/pick")
async def list_choices(request: PageRequest) -> Reply[bytes]:
    """Render a picker's suggestions, whose text is in the parameter named by `field`."""
    field, types = request.query.get("field") or "", request.query.get("types") or ""
    text = request.query.get(field)
    found = (
        [] if text is None else await find_records(request, text, types=types, limit=_SUGGESTIONS)
    )
    return _render_options(request, text, found, list_id=f"choice-{field}")


def _render_options(
    request: PageRequest, text: str | None, results: list[Any], *, list_id: str
) -> Reply[bytes]:
    return request.render(
        "search/options.html",
        text=text or "",
        results=results,
        list_id=list_id,
    )
