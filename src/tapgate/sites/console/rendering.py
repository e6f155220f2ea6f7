"""The console's template environment and filters.

User input is always escaped. Templates contain no inline scripts.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final
from urllib.parse import quote

import msgspec
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, Template
from jinja2.environment import TemplateModule
from markupsafe import Markup, escape

from tapgate.core.id_generator import get_time
from tapgate.sites.console import times
from tapgate.sites.console.devices import describe_device
from tapgate.sites.console.icons import get_action_icon
from tapgate.sites.console.labels import (
    get_chat_command_label,
    get_decline_reason,
    get_resource_label,
    get_transaction_status_label,
    humanize,
)
from tapgate.sites.console.navigation import HOME_PATH, is_current
from tapgate.sites.console.translation.template_texts import TranslatingEnvironment
from tapgate.sites.console.translation.translator import (
    Language,
    Translator,
    get_translator,
    source_text,
)
from tapgate_client import ids
from tapgate_client.clock import format_rfc3339
from tapgate_client.schemas.search import SearchType

#: ID prefix -> (page path, endpoint that the page reads)
_PAGES_BY_PREFIX: Final = {
    ids.SUBSCRIBER: ("/console/subscribers/", "GET /api/v1/subscribers/{id}"),
    ids.ADMIN: ("/console/administrators/", "GET /api/v1/admin/users/{id}"),
    ids.AGENT: ("/console/agents/", "GET /api/v1/agents/{id}"),
    ids.PROCESSOR: ("/console/processors/", "GET /api/v1/processors/{id}"),
    ids.PARTNER: ("/console/partners/", "GET /api/v1/admin/partners/{id}"),
    ids.TRANSACTION: ("/console/transactions/", "GET /api/v1/transactions/{id}"),
    ids.ALERT: ("/console/compliance/alerts/", "GET /api/v1/compliance/alerts/{id}"),
    ids.BANK_ACCOUNT: ("/console/bank-accounts/", "GET /api/v1/bank-accounts/{id}"),
    ids.BATCH: ("/console/batches/", "GET /api/v1/batches/{id}"),
    ids.BANK_STATEMENT: ("/console/bank-statements/", "GET /api/v1/bank-statements/{id}"),
    ids.PAYOUT: ("/console/payouts/", "GET /api/v1/payouts/{id}"),
    ids.PAYOUT_RUN: ("/console/payout-runs/", "GET /api/v1/payout-runs/{id}"),
    ids.APPROVAL: ("/console/approvals/", "GET /api/v1/approvals/{id}"),
    ids.REQUEST_LOG: ("/console/request-logs/", "GET /api/v1/admin/request-logs/{id}"),
    ids.DISPUTE: ("/console/disputes/", "GET /api/v1/disputes/{id}"),
    ids.FLOAT_REQUEST: ("/console/float-requests/", "GET /api/v1/float-requests/{id}"),
    ids.RECALL: ("/console/recalls/", "GET /api/v1/recalls/{id}"),
    ids.SUPPORT_REQUEST: ("/console/support/", "GET /api/v1/support/requests/{id}"),
    ids.SAVED_REPLY: ("/console/saved-replies#", "GET /api/v1/support/saved-replies/{id}"),
}
#: ID prefixes with a page in the portal, whose paths are those of the console.
_PORTAL_PREFIXES: Final = frozenset({ids.DISPUTE, ids.PAYOUT, ids.REQUEST_LOG, ids.TRANSACTION})
_NOT_VALID: Final = source_text("is not valid")
_COLON: Final = source_text(":")
_LABEL_FILTERS: Final[Mapping[str, Callable[..., str]]] = {
    "humanize": humanize,
    "transaction_status": get_transaction_status_label,
    "decline_reason": get_decline_reason,
    "chat_command": get_chat_command_label,
    "resource_label": get_resource_label,
}


#: Name of the dict that keeps the modules of a page while the page is rendered.
_MODULES: Final = "macro_modules"


class _PageTemplate(Template):
    """Template that is imported once per page, although many parts of a page import it.

    Its macros can use the page's values, but no variable that a template sets.
    """

    def make_module(
        self,
        vars: dict[str, Any] | None = None,
        shared: bool = False,
        locals: Mapping[str, Any] | None = None,
    ) -> TemplateModule:
        modules = (vars or {}).get(_MODULES)
        if modules is None:
            return super().make_module(vars, shared, locals)
        if self.name not in modules:
            modules[self.name] = super().make_module(vars, shared)
        return modules[self.name]  # type: ignore[no-any-return]


@cache
def build_environment(*packages: str, language: Language = Language.EN) -> Environment:
    """Return the environment for the packages' templates; earlier packages take precedence."""
    translator = get_translator(language)
    numbers = translator.numbers
    build = Environment if translator.is_source else TranslatingEnvironment
    environment = build(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.template_class = _PageTemplate
    if isinstance(environment, TranslatingEnvironment):
        environment.translate = translator.translate
    environment.filters |= {
        "money": numbers.format_amount,
        "percent": numbers.format_percent,
        "input_number": numbers.format_input,
        **times.build_filters(translator),
        "number": numbers.format_number,
        "breakable": _allow_breaks,
        "id_time": get_id_time,
        "is_current": is_current,
        "action_icon": get_action_icon,
        "api_message": lambda message: translator.translate_message(message) or message,
        "value_error": lambda message: (
            translator.translate_message(message) or translator.translate(_NOT_VALID)
        ),
        "error_text": translator.translate_error,
        "end_sentence": end_sentence,
        "device": partial(describe_device, translator=translator),
        "audit_event": translator.translate_event,
        "state_label": translator.translate_state,
        "tab_label": translator.translate_tab,
        "builtin_name": translator.translate_name,
        "resource_type": translator.translate_resource_type,
        "field_label": translator.translate_field,
        "approval_summary": translator.translate_summary,
        "reason": translator.translate_reason,
        **{
            name: _build_label_filter(get_label, translator)
            for name, get_label in _LABEL_FILTERS.items()
        },
    }
    environment.globals |= {
        "_": translator.translate,
        "plural": translator.translate_plural,
        "colon": translator.translate(_COLON),
        "dash": times.DASH,
        "approval_pages": frozenset(),  # only the console has pages with waiting requests
        "language": language,
    }
    return environment


def _build_label_filter(get_label: Callable[..., str], translator: Translator) -> Any:
    if translator.is_source:
        return get_label
    return lambda *values: translator.translate_label(get_label(*values))


def _allow_breaks(text: str, separator: str) -> Markup:
    """Let lines break after each separator rather than within words."""
    return escape(text).replace(separator, Markup("{}<wbr>").format(separator))


def format_json(value: Any) -> str:
    """Format a JSON value with indentation."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def get_id_time(public_id: str) -> str | None:
    """Return the time at which a record was created, which is part of its ID."""
    number = ids.decode(ids.get_prefix(public_id), public_id)
    return None if number is None else format_rfc3339(get_time(number))


def end_sentence(text: str) -> str:
    """Return an API message with a final period."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def get_page_path(
    public_id: str | None, can_access: Callable[[str], bool], site: str = HOME_PATH
) -> str | None:
    """Return the page path for an ID; None if there is no page or the viewer has no access."""
    page = None if public_id is None else _PAGES_BY_PREFIX.get(ids.get_prefix(public_id))
    if public_id is None or page is None or not can_access(page[1]):
        return None
    if site != HOME_PATH and ids.get_prefix(public_id) not in _PORTAL_PREFIXES:
        return None
    return page[0].replace(HOME_PATH, site, 1) + str(escape(public_id))


def get_result_path(type: str, public_id: str) -> str | None:
    """Return the page path for a search result; None if there is no page."""
    if type == SearchType.CARD:
        return f"/console/cards/{quote(public_id, safe='')}"
    if type == SearchType.KEY:
        return f"/console/request-logs?api_key_id={quote(public_id, safe='')}"
    return get_page_path(public_id, lambda endpoint: True)
