"""Assembles the portal from its pages and actions, with the console's components."""

from functools import cache
from itertools import chain
from typing import Final

from tapgate.http.api.packaged_files import PackagedFiles
from tapgate.sites.console.actions import Action, build_action_pages
from tapgate.sites.console.page_request import PORTAL, SECURITY_HEADERS
from tapgate.sites.console.pages import account
from tapgate.sites.console.rendering import build_environment
from tapgate.sites.console.site import Pages, PageSite
from tapgate.sites.console.translation.translator import Language, get_translator
from tapgate.sites.portal.navigation import list_groups
from tapgate.sites.portal.pages import (
    api_reference,
    approvals,
    developers,
    disputes,
    home,
    payments,
    payouts,
    session,
    statements,
    support,
    team,
    terminals,
)

_PACKAGE: Final = "tapgate.sites.portal"
_CONSOLE_PACKAGE: Final = "tapgate.sites.console"

_MODULES: Final = (
    home,
    payments,
    payouts,
    terminals,
    disputes,
    developers,
    api_reference,
    approvals,
    team,
    statements,
    support,
    session,
)
PAGES: Final[tuple[Pages, ...]] = tuple(module.pages for module in _MODULES)
ACTIONS: Final[tuple[Action, ...]] = tuple(
    chain.from_iterable(getattr(module, "ACTIONS", ()) for module in (account, *_MODULES))
)


@cache
def build_portal() -> PageSite:
    """Return the portal, which is stateless. It serves the console's assets."""
    templates = {
        language: build_environment(_PACKAGE, _CONSOLE_PACKAGE, language=language)
        for language in Language
    }
    for language, environment in templates.items():
        translator = get_translator(language)
        environment.globals["actions"] = {
            action.name: action.translate(translator) for action in ACTIONS
        }
        environment.globals["list_groups"] = list_groups
        environment.globals["exports"] = {}
    return PageSite(
        PORTAL,
        chain.from_iterable([*PAGES, build_action_pages(ACTIONS, PORTAL)]),
        templates,
        PackagedFiles(_CONSOLE_PACKAGE, "assets", SECURITY_HEADERS),
        site=PORTAL,
    )
