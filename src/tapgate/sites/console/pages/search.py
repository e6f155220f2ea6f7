"""Search over all record kinds: suggestions for the search box and pickers, and results."""

from typing import Any, Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.components import palette
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.pickers import find_records
from tapgate.sites.console.rendering import get_result_path
from tapgate.sites.console.site import Pages

pages = Pages()

_SUGGESTIONS: Final = 8
_RESULTS: Final = 50


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
    if len(results) == 1:
        return request.redirect(results[0]["path"])
    return request.render("search/page.html", text=text, results=results)


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
