"""The console, put together: every page and every act."""

from itertools import chain
from typing import Final

from tapgate.console.acts import Act, act_pages
from tapgate.console.pages import card_upload, cards, overview, sign_in, subscribers, transactions
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
    card_upload.pages,
    transactions.pages,
)
ACTS: Final[tuple[Act, ...]] = (
    *overview.ACTS,
    *subscribers.ACTS,
    *cards.ACTS,
)


def console() -> PageSite:
    templates = environment(_PACKAGE)
    templates.globals["acts"] = {act.name: act for act in ACTS}
    pages = chain.from_iterable([*PAGES, act_pages(ACTS)])
    return PageSite("/console", pages, templates, PackagedFiles(_PACKAGE, "assets", HEADERS))
