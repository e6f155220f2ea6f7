"""Assembly of the console from all its pages and actions."""

from itertools import chain
from typing import Final

from tapgate.api.packaged_files import PackagedFiles
from tapgate.console.actions import Action, build_action_pages
from tapgate.console.page_request import SECURITY_HEADERS
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
from tapgate.console.rendering import build_environment
from tapgate.console.site import Pages, PageSite

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
ACTIONS: Final[tuple[Action, ...]] = (
    *overview.ACTIONS,
    *subscribers.ACTIONS,
    *wallets.ACTIONS,
    *cards.ACTIONS,
    *agents.ACTIONS,
    *processors.ACTIONS,
    *partners.ACTIONS,
    *webhooks.ACTIONS,
    *api_keys.ACTIONS,
    *administrators.ACTIONS,
    *compliance.ACTIONS,
    *compliance_rules.ACTIONS,
    *limits.ACTIONS,
)


def build_console() -> PageSite:
    templates = build_environment(_PACKAGE)
    templates.globals["actions"] = {action.name: action for action in ACTIONS}
    pages = chain.from_iterable([*PAGES, build_action_pages(ACTIONS)])
    return PageSite(
        "/console", pages, templates, PackagedFiles(_PACKAGE, "assets", SECURITY_HEADERS)
    )
