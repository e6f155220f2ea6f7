"""The console, put together: every page and every act."""

from itertools import chain
from typing import Final

from tapgate.console.acts import Act, act_pages
from tapgate.console.pages import (
    administrators,
    agents,
    api_keys,
    audit,
    card_upload,
    cards,
    commission,
    compliance,
    compliance_rules,
    limits,
    overview,
    partners,
    processors,
    sign_in,
    subscribers,
    transactions,
    wallets,
    webhooks,
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
    card_upload.pages,
    transactions.pages,
    agents.pages,
    processors.pages,
    partners.pages,
    webhooks.pages,
    api_keys.pages,
    administrators.pages,
    audit.pages,
    compliance.pages,
    compliance_rules.pages,
    limits.pages,
    commission.pages,
)
ACTS: Final[tuple[Act, ...]] = (
    *overview.ACTS,
    *subscribers.ACTS,
    *wallets.ACTS,
    *cards.ACTS,
    *agents.ACTS,
    *processors.ACTS,
    *partners.ACTS,
    *webhooks.ACTS,
    *api_keys.ACTS,
    *administrators.ACTS,
    *compliance.ACTS,
    *compliance_rules.ACTS,
    *limits.ACTS,
)


def console() -> PageSite:
    templates = environment(_PACKAGE)
    templates.globals["acts"] = {act.name: act for act in ACTS}
    pages = chain.from_iterable([*PAGES, act_pages(ACTS)])
    return PageSite("/console", pages, templates, PackagedFiles(_PACKAGE, "assets", HEADERS))
