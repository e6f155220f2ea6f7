"""Assembles the console from all its pages and actions."""

from functools import cache
from itertools import chain
from typing import Final

from tapgate.http.api.packaged_files import PackagedFiles
from tapgate.sites.console.actions import Action, build_action_pages
from tapgate.sites.console.components import owner_users
from tapgate.sites.console.page_request import CONSOLE, SECURITY_HEADERS
from tapgate.sites.console.pages import (
    account,
    administrators,
    agents,
    api_keys,
    approval_rules,
    approvals,
    audit,
    bank_accounts,
    bank_statements,
    batches,
    book_transfers,
    card_upload,
    cards,
    commission,
    compliance,
    compliance_rules,
    disputes,
    exports,
    finance,
    float_requests,
    general_ledger,
    home,
    keysets,
    kyc,
    limits,
    nodes,
    onboarding,
    partners,
    payouts,
    personalization,
    processors,
    recalls,
    reports,
    request_logs,
    saved_replies,
    search,
    settings,
    sign_in,
    single_sign_on,
    subscribers,
    support,
    texts,
    transactions,
    wallets,
    webhooks,
    work,
)
from tapgate.sites.console.rendering import build_environment
from tapgate.sites.console.site import Pages, PageSite
from tapgate.sites.console.translation.translator import Language, get_translator

_PACKAGE: Final = "tapgate.sites.console"

#: Modules with `pages`, with `ACTIONS`, or with both.
_MODULES: Final = (
    sign_in,
    single_sign_on,
    account,
    home,
    onboarding,
    work,
    reports,
    search,
    subscribers,
    wallets,
    cards,
    card_upload,
    keysets,
    personalization,
    transactions,
    recalls,
    general_ledger,
    agents,
    processors,
    partners,
    finance,
    payouts,
    batches,
    book_transfers,
    bank_accounts,
    bank_statements,
    webhooks,
    api_keys,
    request_logs,
    administrators,
    audit,
    compliance,
    compliance_rules,
    kyc,
    limits,
    commission,
    approval_rules,
    approvals,
    disputes,
    float_requests,
    support,
    saved_replies,
    nodes,
    exports,
    settings,
    texts,
)
PAGES: Final[tuple[Pages, ...]] = tuple(
    module.pages for module in _MODULES if hasattr(module, "pages")
)
ACTIONS: Final[tuple[Action, ...]] = tuple(
    chain.from_iterable(getattr(module, "ACTIONS", ()) for module in (*_MODULES, owner_users))
)


@cache
def build_console() -> PageSite:
    """Return the console, which is stateless."""
    templates = {language: build_environment(_PACKAGE, language=language) for language in Language}
    for language, environment in templates.items():
        translator = get_translator(language)
        environment.globals["actions"] = {
            action.name: action.translate(translator) for action in ACTIONS
        }
        environment.globals["approval_pages"] = frozenset(approvals.PAGE_OPERATIONS)
        environment.globals["exports"] = exports.EXPORTS
    pages = chain.from_iterable([*PAGES, build_action_pages(ACTIONS, CONSOLE)])
    return PageSite(CONSOLE, pages, templates, PackagedFiles(_PACKAGE, "assets", SECURITY_HEADERS))
