"""List pages. Invalid filters are dropped and reported on the page, if they have labels."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tapgate.http.endpoint import Reply
from tapgate.sites.console import pickers
from tapgate.sites.console.components.periods import resolve_period
from tapgate.sites.console.form_errors import describe_value_error
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate.sites.console.translation.translator import source_text
from tapgate.sites.console.typed_input import clean_phone_number
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code

NO_PICKERS: Final[Mapping[str, str]] = {}


class FilteredList(NamedTuple):
    page: Any
    #: Error messages for the filters that were dropped.
    problems: list[str]


def add_list_page(
    pages: Pages,
    path: str,
    source: str,
    template: str,
    filters: tuple[str, ...] = (),
    **values: Any,
) -> None:
    """Add the page of a list. `source` is the API's path, and `filters` are its query parameters.

    The template gets the API's response as `page`, `filters` and `values`.
    """

    @pages.get(path)
    async def show_list(request: PageRequest) -> Reply[bytes]:
        page = await request.get(source, pick_filters(request, *filters, "cursor"))
        return request.render(template, page=page, filters=filters, **values)


def add_totals_page(pages: Pages, path: str, source: str, filters: tuple[str, ...]) -> None:
    """Add balance list totals, which the page loads after the list."""

    @pages.get(f"{path}/totals")
    async def show_totals(request: PageRequest) -> Reply[bytes]:
        totals = await request.get(f"{source}/totals", pick_filters(request, *filters))
        return request.render("balance_totals.html", totals=totals)


def add_sublist_page(
    pages: Pages, path: str, *, name: str, item: str, source: str, template: str
) -> None:
    """Add the page of a list that belongs to a record, whose own page shows only the first rows.

    `item` and `source` are the API's paths with the parameter `id`. The template gets the record
    under `name`, and the list as `page`.
    """

    @pages.get(path)
    async def show_sublist(request: PageRequest, id: str) -> Reply[bytes]:
        record, page = await asyncio.gather(
            request.get(item, id=id), request.get(source, request.query.pick("cursor"), id=id)
        )
        return request.render(template, page=page, **{name: record})


async def get_filtered_list(
    request: PageRequest,
    path: str,
    labels: Mapping[str, str],
    picks: Mapping[str, str] = NO_PICKERS,
    *,
    allows_text: bool = False,
    fixed: Mapping[str, str] = NO_PICKERS,
) -> FilteredList:
    """Load a list, dropping the filters that the API rejects.

    `fixed` are filters that the page has chosen, such as those of a tab.

    `labels` maps the API's filter names to the labels on the page. `picks` maps those that are
    pickers to the kinds of records that they find. A preset in `period` replaces `from` and `to`.
    With `allows_text`, a text in a picker that matches no record is passed to the API.
    """
    filters = pick_filters(request, *labels, "cursor") | resolve_period(request) | dict(fixed)
    problems = await _resolve_pickers(request, filters, labels, picks, allows_text=allows_text)
    while True:
        try:
            return FilteredList(await request.get(path, filters), problems)
        except ApiError as error:
            invalid = _get_invalid_filters(error, filters)
            if not invalid:
                raise
        for name, message in invalid.items():
            del filters[name]
            label = request.translate(labels.get(name, name))
            problem = describe_value_error(label, message, request.translator)
            problems.append(f"{problem}.")


def pick_filters(request: PageRequest, *names: str) -> dict[str, str]:
    """Return a list's filters. A phone number may be in local form."""
    filters = request.query.pick(*names)
    if "search" in filters:
        country = request.context.services.settings.country
        filters["search"] = clean_phone_number(filters["search"], country) or ""
    return filters


async def _resolve_pickers(
    request: PageRequest,
    filters: dict[str, str],
    labels: Mapping[str, str],
    picks: Mapping[str, str],
    *,
    allows_text: bool,
) -> list[str]:
    """Replace picker texts with IDs, and return the problems for dropped filters."""
    problems = []
    for name in picks.keys() & filters.keys():
        chosen = request.query.get(pickers.get_chosen_name(name))
        public_id, problem = await pickers.resolve(
            request, filters[name], chosen, picks[name], allows_text=allows_text
        )
        if public_id is None:
            del filters[name]
            label = request.translate(labels[name])
            problems.append(request.translate("{label}: {problem}.", label=label, problem=problem))
        else:
            filters[name] = public_id
            if ids.is_id(request.query.get(name) or "") and not request.is_partial:
                record = await pickers.load_record(request, public_id, picks[name])
                request.picked_records[name] = record
    return problems


def _get_invalid_filters(error: ApiError, filters: Mapping[str, str]) -> dict[str, str]:
    if error.code is Code.OTP_REQUIRED and "card_serial" in filters:
        # The message must not reveal whose card it is.
        return {
            "card_serial": source_text(
                "belongs to a restricted customer. Request an access code on their page"
            )
        }
    if error.code is not Code.VALIDATION_FAILED:
        return {}
    fields: Mapping[str, str] = (error.details or {}).get("fields", {})
    return {name: message for name, message in fields.items() if name in filters}
