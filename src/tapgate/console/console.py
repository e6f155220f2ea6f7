"""The console, put together: every page and every act."""

from itertools import chain
from typing import Final

from tapgate.console.acts import Act, act_pages
from tapgate.console.pages import (
    agents,
    cards,
    overview,
    partners,
    processors,
    sign_in,
    subscribers,
)
from tapgate.console.rendering import environment
from tapgate.console.site import Pages, PageSite
from tapgate.console.visit import HEADERS
from tapgate.edge.packaged_files import PackagedFiles

_PACKAGE: Final = "tapgate.console"

PAGES: Final[tuple[Pages, ...]] = (
    sign_in.pages,
    overview.pages,
    subscribers.pages,
    cards.pages,
    agents.pages,
    processors.pages,
    partners.pages,
)
ACTS: Final[tuple[Act, ...]] = (
    *subscribers.ACTS,
    *cards.ACTS,
    *agents.ACTS,
    *processors.ACTS,
    *partners.ACTS,
)


def console() -> PageSite:
    templates = environment(_PACKAGE)
    templates.globals["acts"] = {act.name: act for act in ACTS}
    pages = chain.from_iterable([*PAGES, act_pages(ACTS)])
    return PageSite("/console", pages, templates, PackagedFiles(_PACKAGE, "assets", HEADERS))
