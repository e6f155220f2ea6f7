"""Template environment and filters of the console.

User input is always escaped. Templates contain no inline scripts.
"""

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Final
from urllib.parse import quote

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from tapgate import ids
from tapgate.console.labels import (
    get_decline_reason,
    get_resource_label,
    get_transaction_status_label,
    humanize,
    use_console_terms,
)
from tapgate.schemas.search import SearchType

#: ID prefix -> (path of the page, endpoint that the page reads)
_PAGES_BY_PREFIX: Final = {
    ids.SUBSCRIBER: ("/console/subscribers/", "GET /api/v1/subscribers/{id}"),
    ids.AGENT: ("/console/agents/", "GET /api/v1/agents/{id}"),
    ids.PROCESSOR: ("/console/processors/", "GET /api/v1/processors/{id}"),
    ids.PARTNER: ("/console/partners/", "GET /api/v1/admin/partners/{id}"),
    ids.TRANSACTION: ("/console/transactions/", "GET /api/v1/transactions/{id}"),
    ids.ALERT: ("/console/compliance/alerts/", "GET /api/v1/compliance/alerts/{id}"),
    ids.APPROVAL: ("/console/approvals/", "GET /api/v1/approvals/{id}"),
    ids.SUPPORT_REQUEST: ("/console/support/", "GET /api/v1/support/requests/{id}"),
}


@cache
def build_environment(*packages: str) -> Environment:
    """Return the environment for the packages' templates; earlier packages take precedence."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "money": format_amount,
        "format_time": format_time,
        "humanize": humanize,
        "transaction_status": get_transaction_status_label,
        "decline_reason": get_decline_reason,
        "resource_label": get_resource_label,
        "number": format_number,
        "age": format_age,
        "console_terms": use_console_terms,
        "end_sentence": end_sentence,
    }
    return environment


def format_amount(amount: str | None, currency: str = "") -> str:
    """Format an amount: `12345.60` -> `12,345.60 SLE`. The minus sign is as wide as a digit."""
    if amount is None:
        return "–"
    sign = "−" if amount.startswith("-") else ""
    whole, point, fraction = amount.removeprefix("-").partition(".")
    grouped = f"{int(whole):,}" if whole.isascii() and whole.isdigit() else whole
    return f"{sign}{grouped}{point}{fraction}{' ' if currency else ''}{currency}"


def format_number(value: int | float | None) -> str:
    return "–" if value is None else f"{value:,}"


def format_time(moment: str | None) -> Markup | str:
    """Render a time in UTC; a script converts it to the viewer's time zone."""
    if not moment:
        return "–"
    try:
        text = datetime.fromisoformat(moment).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return moment
    return Markup('<time datetime="{}">{}</time>').format(moment, text)


def format_age(moment: str, now: datetime) -> str:
    """Format the time since `moment` in the largest whole unit: `3 days`, or `just now`."""
    seconds = max(0, int((now - datetime.fromisoformat(moment)).total_seconds()))
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            count = seconds // size
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return "just now"


def end_sentence(text: str) -> str:
    """Return an API message with a final period."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def get_page_path(public_id: str | None, can_access: Callable[[str], bool]) -> str | None:
    """Return the path of the page for an ID; None if there is none or the viewer has no access."""
    page = None if public_id is None else _PAGES_BY_PREFIX.get(public_id[:4])
    return page[0] + str(escape(public_id)) if page is not None and can_access(page[1]) else None


def get_result_path(type: str, public_id: str) -> str | None:
    """Return the path of the page for a search result; None if there is none."""
    if type == SearchType.CARD:
        return f"/console/cards/{quote(public_id, safe='')}"
    if type == SearchType.ADMIN:
        return "/console/administrators"
    return get_page_path(public_id, lambda endpoint: True)
