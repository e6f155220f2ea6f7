"""Simulator site.

The simulators create keys and read demo data, so they are available only in development and
testing.
"""

from functools import cache
from itertools import chain
from typing import Final

from tapgate.http.api.packaged_files import PackagedFiles
from tapgate.http.endpoint import Reply
from tapgate.sites.console.page_request import SECURITY_HEADERS, PageRequest
from tapgate.sites.console.pages.texts import get_file_translator, render_texts
from tapgate.sites.console.rendering import build_environment
from tapgate.sites.console.site import Pages, PageSite
from tapgate.sites.console.translation.translator import Language
from tapgate_sandbox.simulators import phone, pos, sign_in, stage_page, try_it

_PACKAGE: Final = "tapgate_sandbox.simulators"

_index_pages: Final = Pages()

PAGES: Final[tuple[Pages, ...]] = (
    _index_pages,
    pos.pages,
    phone.pages,
    sign_in.pages,
    try_it.pages,
    stage_page.pages,
)


@_index_pages.get("/simulator")
async def render_index(request: PageRequest) -> Reply[bytes]:
    return request.render("simulators.html")


@_index_pages.get("/simulator/texts/{file}", public=True)
async def serve_texts(request: PageRequest, file: str) -> Reply[bytes]:
    """Return a script with all texts in a language, because scripts share many with pages."""
    return render_texts(get_file_translator(file).texts)


@cache
def build_simulator_sites() -> tuple[PageSite, ...]:
    """Return the simulators, and the stage that shows them together."""
    templates = {
        language: build_environment(_PACKAGE, "tapgate.sites.console", language=language)
        for language in Language
    }
    assets = PackagedFiles(_PACKAGE, "assets", SECURITY_HEADERS)
    all_pages = list(chain.from_iterable(PAGES))
    return tuple(
        PageSite(
            prefix,
            [page for page in all_pages if page.path.startswith(prefix)],
            templates,
            assets,
        )
        for prefix in ("/simulator", "/stage")
    )
